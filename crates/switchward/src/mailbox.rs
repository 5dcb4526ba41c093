//! The mailbox of a development server: outbound mails are kept here, and pages show them, with a box to answer them as
//! their recipient.

mod pages;

use anyhow::Context as _;
use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_delivery::{
    Failed,
    mail::{Composed, Post},
};
use switchward_machine::Time;
use switchward_shard::Clock;
use switchward_store::write_secret;

use crate::page_guard::Token;
pub(crate) use pages::{guarded, ingress, pages, whole, worded};

/// Mails that are kept; beyond it the oldest goes.
const KEPT_MAX: usize = 500;
/// The host of a development server's addresses; no host outside has this name.
pub(crate) const HOST: &str = "switchward.localhost";

/// Where a data folder keeps the mails, one JSON a line, the oldest first.
const FILE: &str = "dev-mail.jsonl";

/// A mail as its line has it.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    number: u64,
    at_ms: u64,
    from: String,
    to: String,
    author: String,
    named: Vec<String>,
    message_id: String,
    subject: String,
    reply_to: Option<String>,
    bounce_to: Option<String>,
    text: String,
    /// A mail is sent in ASCII.
    raw: String,
}

impl Line {
    fn of(kept: &SentMail) -> Self {
        let mail = Composed::clone(&kept.mail);
        Self {
            id: kept.id.clone(),
            number: kept.number,
            at_ms: kept.at.0,
            from: mail.from,
            to: mail.to,
            author: mail.author,
            named: mail.named,
            message_id: mail.message_id,
            subject: mail.subject,
            reply_to: mail.reply_to,
            bounce_to: mail.bounce_to,
            text: mail.text,
            raw: String::from_utf8_lossy(&mail.raw).into_owned(),
        }
    }

    fn kept(self) -> SentMail {
        let mail = Composed {
            from: self.from,
            to: self.to,
            author: self.author,
            named: self.named,
            message_id: self.message_id,
            subject: self.subject,
            reply_to: self.reply_to,
            bounce_to: self.bounce_to,
            text: self.text,
            raw: self.raw.into_bytes(),
        };
        SentMail {
            id: self.id,
            number: self.number,
            form: Token::draw(),
            at: Time(self.at_ms),
            mail: Arc::new(mail),
            replies: Vec::new(),
        }
    }

    fn text(&self) -> anyhow::Result<String> {
        Ok(format!("{}\n", serde_json::to_string(self)?))
    }
}

#[derive(Clone)]
struct SentMail {
    /// The name of its page, which nobody can guess.
    id: String,
    /// The how-manieth it is.
    number: u64,
    /// What the form on its page holds.
    form: Token,
    at: Time,
    mail: Arc<Composed>,
    /// What was answered on its page, and what became of that.
    replies: Vec<(String, String)>,
}

#[derive(Default)]
struct State {
    last: u64,
    kept: VecDeque<SentMail>,
}

/// The mails of a development server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mailbox {
    state: Arc<Mutex<State>>,
    file: Arc<PathBuf>,
    clock: Arc<dyn Clock>,
}

impl Mailbox {
    /// The mailbox of a data folder, with what it held when the server stopped. A line that is none, because the server
    /// was killed while it wrote it, is passed over: its mail is sent again.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn open(folder: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let file = folder.join(FILE);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("failed to read {}", file.display()))?,
        };
        // A line may end within a character.
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let mut kept: VecDeque<SentMail> = lines.map(Line::kept).collect();
        kept.drain(..kept.len().saturating_sub(KEPT_MAX));
        let last = kept.back().map_or(0, |kept| kept.number);
        if text.lines().count() != kept.len() || !(text.is_empty() || text.ends_with('\n')) {
            let whole: anyhow::Result<String> = kept.iter().map(|kept| Line::of(kept).text()).collect();
            write_secret(&file, whole?.as_bytes())?;
        }
        let state = Arc::new(Mutex::new(State { last, kept }));
        Ok(Self { state, file: Arc::new(file), clock })
    }

    fn write(&self, kept: &SentMail) -> anyhow::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&*self.file)?;
        file.write_all(Line::of(kept).text()?.as_bytes())?;
        Ok(())
    }

    /// The newest first.
    fn all(&self) -> Vec<SentMail> {
        self.state.lock().kept.iter().rev().cloned().collect()
    }

    fn get(&self, id: &str) -> Option<SentMail> {
        self.state.lock().kept.iter().find(|kept| kept.id == id).cloned()
    }

    fn answered(&self, id: &str, text: String, outcome: String) {
        let mut state = self.state.lock();
        if let Some(kept) = state.kept.iter_mut().find(|kept| kept.id == id) {
            kept.replies.push((text, outcome));
        }
    }
}

#[async_trait]
impl Post for Mailbox {
    async fn send(&self, _tenant: u32, mail: &Composed) -> Result<(), Failed> {
        let mut state = self.state.lock();
        // The same mail again, after an answer that was lost.
        if state.kept.iter().any(|kept| kept.mail.message_id == mail.message_id) {
            return Ok(());
        }
        state.last += 1;
        let (number, at) = (state.last, self.clock.now());
        let (id, form) = (Token::draw().text().to_owned(), Token::draw());
        let kept = SentMail { id, number, form, at, mail: Arc::new(mail.clone()), replies: Vec::new() };
        if let Err(error) = self.write(&kept) {
            tracing::warn!(%error, "failed to write a mail to disk; it is not in the mailbox after a restart");
        }
        state.kept.push_back(kept);
        if state.kept.len() > KEPT_MAX {
            state.kept.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use switchward_shard::ManualClock;

    use super::*;

    #[test]
    fn a_line_that_ends_within_a_character_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, b"{\"id\":\"caf\xc3").unwrap();
        let mailbox = Mailbox::open(folder.path(), Arc::new(ManualClock::new(Time(0)))).unwrap();
        assert!(mailbox.all().is_empty());
        assert_eq!(fs::read(&file).unwrap(), b"");
    }
}
