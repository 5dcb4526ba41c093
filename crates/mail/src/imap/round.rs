//! One conversation with a mailbox: reads all unseen messages, in rounds.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use async_imap::error::Error;
use async_imap::extensions::idle::IdleResponse;
use async_imap::types::{Fetch, UnsolicitedResponse};
use backon::ExponentialBackoff;
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _};

use super::link::{ImapError, Session, within};
use super::probe::exists;
use super::{Account, Collect, MailOutcome};
use crate::incoming::sender_of;
use crate::limits::{
    IMAP_AT_ONCE_MAX, IMAP_ATTEMPTS_MAX, IMAP_COMMAND_TIME_MAX, IMAP_MESSAGE_TIME_MAX,
    IMAP_NOTIFIED_ROUNDS_MAX, IMAP_ROUND_MESSAGES_MAX, MESSAGE_BYTES_MAX,
};

/// How often each message of a folder was begun and not finished.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The `UIDVALIDITY` of the numbers.
    validity: Option<u32>,
    begun: HashMap<u32, u32>,
    /// Messages that could not be taken; others come before them.
    put_off: HashSet<u32>,
}

impl Attempts {
    /// Forgets the numbers of a folder that was created again, and those that are gone.
    fn keep(&mut self, validity: Option<u32>, there: &[u32]) {
        if self.validity != validity {
            self.begun.clear();
            self.put_off.clear();
            self.validity = validity;
        }
        self.begun.retain(|uid, _| there.contains(uid));
        self.put_off.retain(|uid| there.contains(uid));
    }

    /// Forgets a message that was dealt with.
    fn done(&mut self, uid: u32) {
        self.begun.remove(&uid);
        self.put_off.remove(&uid);
    }

    /// Counts an attempt; returns true if the message may be tried once more.
    fn begin(&mut self, uid: u32) -> bool {
        let begun = self.begun.entry(uid).or_default();
        *begun += 1;
        *begun <= IMAP_ATTEMPTS_MAX
    }
}

/// The context of a conversation.
pub(super) struct Rounds<'a, C> {
    pub(super) account: &'a Account,
    pub(super) collector: &'a C,
    pub(super) attempts: &'a mut Attempts,
    /// The waits after failures in a row; they begin again after a good round.
    pub(super) waits: &'a mut ExponentialBackoff,
}

/// The capabilities of a server.
#[derive(Clone, Copy)]
struct Able {
    idle: bool,
    moving: bool,
    uid_expunge: bool,
}

/// The result of reading a message.
enum Read {
    /// It is not there any more.
    Gone,
    /// It cannot be read, which was reported.
    Unreadable,
    /// Its bytes.
    Whole(Vec<u8>),
}

/// Returns true if the server has announced new messages in unsolicited responses.
fn notified_of_new(session: &Session) -> bool {
    let unsolicited = std::iter::from_fn(|| session.unsolicited_responses.try_recv().ok());
    unsolicited.filter(|response| matches!(response, UnsolicitedResponse::Exists(_))).count() > 0
}

/// How a round ended.
enum Round {
    /// Nothing unseen is left.
    Clear,
    /// There are more that were not tried.
    More,
    /// Something could not be taken now, and it makes no sense to go on at once.
    Later,
}

impl<C: Collect> Rounds<'_, C> {
    /// Runs until the conversation breaks; returns the error.
    pub(super) async fn go(&mut self, session: Session) -> ImapError {
        match self.talk(session).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn talk(&mut self, mut session: Session) -> Result<Infallible, ImapError> {
        let able = within(IMAP_COMMAND_TIME_MAX, "report its capabilities", session.capabilities()).await?;
        let (idle, moving) = (able.has_str("IDLE"), able.has_str("MOVE"));
        let able = Able { idle, moving, uid_expunge: able.has_str("UIDPLUS") };
        for name in [&self.account.done_folder, &self.account.quarantine_folder].into_iter().flatten() {
            if !exists(&mut session, name).await? {
                within(IMAP_COMMAND_TIME_MAX, "create a folder", session.create(name)).await?;
            }
        }
        let pace = self.account.pace;
        let (mut later, mut notified) = (pace.waits(), 0);
        loop {
            let round = self.once(&mut session, able).await?;
            // Messages that came after the search are announced once, and by no later command: do not rest then.
            notified = if notified_of_new(&session) { notified + 1 } else { 0 };
            *self.waits = pace.waits();
            match round {
                Round::More => {}
                Round::Clear | Round::Later if (1..=IMAP_NOTIFIED_ROUNDS_MAX).contains(&notified) => {}
                Round::Clear => {
                    later = pace.waits();
                    session = self.rest(session, able, pace.poll).await?;
                }
                Round::Later => session = self.rest(session, able, pace.wait(&mut later)).await?,
            }
        }
    }

    /// Waits until the server announces something, or for this long. Where it announces nothing, new messages are looked for
    /// as often as ever.
    async fn rest(&self, session: Session, able: Able, time: Duration) -> Result<Session, ImapError> {
        if !able.idle {
            tokio::time::sleep(time.min(self.account.pace.poll)).await;
            return Ok(session);
        }
        let mut idle = session.idle();
        within(IMAP_COMMAND_TIME_MAX, "wait for mail", idle.init()).await?;
        let (event, _interrupt) = idle.wait_with_timeout(time);
        match event.await {
            Ok(IdleResponse::NewData(_) | IdleResponse::Timeout | IdleResponse::ManualInterrupt) => {}
            Err(error) => return Err(ImapError::Broken("wait for mail", error)),
        }
        within(IMAP_COMMAND_TIME_MAX, "stop waiting for mail", idle.done()).await
    }

    /// Takes the unseen messages, the oldest first.
    async fn once(&mut self, session: &mut Session, able: Able) -> Result<Round, ImapError> {
        let folder = &self.account.folder;
        let opened = tokio::time::timeout(IMAP_COMMAND_TIME_MAX, session.select(folder)).await;
        let opened = opened.map_err(|_| ImapError::TooSlow("open the folder"))?;
        let opened = opened.map_err(|error| ImapError::Folder(folder.clone(), error))?;
        let unseen = session.uid_search("UNSEEN UNDELETED");
        let mut unseen: Vec<u32> =
            within(IMAP_COMMAND_TIME_MAX, "search", unseen).await?.into_iter().collect();
        self.attempts.keep(opened.uid_validity, &unseen);
        unseen.sort_unstable_by_key(|uid| (self.attempts.put_off.contains(uid), *uid));
        let (put_off, at_once) = (self.attempts.put_off.len(), IMAP_ROUND_MESSAGES_MAX);
        let untried = unseen.len() - put_off;
        unseen.truncate(at_once);
        self.take(session, &unseen, able).await?;
        // Where none of a whole round could be taken, the next ones could not either.
        let more = untried > at_once && self.attempts.put_off.len() < put_off + at_once;
        Ok(match (more, self.attempts.put_off.is_empty()) {
            (true, _) => Round::More,
            (false, true) => Round::Clear,
            (false, false) => Round::Later,
        })
    }

    /// Takes several messages at once, so that the lookup of one sender does not delay others; those of one sender are taken
    /// in order.
    async fn take(&mut self, session: &mut Session, uids: &[u32], able: Able) -> Result<(), ImapError> {
        let (collector, mut taken, mut senders) = (self.collector, FuturesUnordered::new(), HashMap::new());
        let mut went = Ok(());
        for uid in uids.iter().copied() {
            let read = match self.read(session, uid).await {
                Ok(Read::Gone) => continue,
                Ok(Read::Unreadable) => {
                    self.put_away(session, uid, MailOutcome::Quarantine, able).await.map(|()| None)
                }
                Ok(Read::Whole(raw)) => Ok(Some(raw)),
                Err(error) => Err(error),
            };
            let raw = match read {
                Ok(None) => continue,
                Ok(Some(raw)) => raw,
                Err(error) => {
                    went = Err(error);
                    break;
                }
            };
            let sender = sender_of(&raw);
            while went.is_ok()
                && (taken.len() >= IMAP_AT_ONCE_MAX
                    || (!sender.is_empty() && senders.values().any(|known| *known == sender)))
                && let Some((uid, outcome)) = taken.next().await
            {
                senders.remove(&uid);
                went = self.settle(session, uid, outcome, able).await;
            }
            if went.is_err() {
                self.attempts.done(uid);
                break;
            }
            senders.insert(uid, sender);
            taken.push(async move { (uid, collector.collect(raw).await) });
        }
        while let Some((uid, outcome)) = taken.next().await {
            if went.is_ok() {
                went = self.settle(session, uid, outcome, able).await;
            } else {
                // It will be fetched again, and this is no failed attempt.
                self.attempts.done(uid);
            }
        }
        went
    }

    /// Reads a message, and reports one that cannot be read.
    async fn read(&mut self, session: &mut Session, uid: u32) -> Result<Read, ImapError> {
        if !self.attempts.begin(uid) {
            self.collector.unread("unreadable");
            return Ok(Read::Unreadable);
        }
        let Some(size) = fetched(session, uid, "(UID RFC822.SIZE)").await? else { return Ok(Read::Gone) };
        if size.size.is_none_or(|size| size as usize > MESSAGE_BYTES_MAX) {
            self.collector.unread("too_large");
            return Ok(Read::Unreadable);
        }
        // One byte more than allowed, to detect a message that is longer than announced.
        let part = format!("(UID BODY.PEEK[]<0.{}>)", MESSAGE_BYTES_MAX + 1);
        let Some(message) = fetched(session, uid, &part).await? else { return Ok(Read::Gone) };
        Ok(Read::Whole(message.body().unwrap_or_default().to_vec()))
    }

    /// Files a message that was taken; one that was not is fetched again.
    async fn settle(
        &mut self,
        session: &mut Session,
        uid: u32,
        outcome: MailOutcome,
        able: Able,
    ) -> Result<(), ImapError> {
        if outcome != MailOutcome::Later {
            return self.put_away(session, uid, outcome, able).await;
        }
        // The message is not the cause.
        self.attempts.done(uid);
        self.attempts.put_off.insert(uid);
        Ok(())
    }

    /// Marks a message as seen, and moves it to where it belongs.
    async fn put_away(
        &mut self,
        session: &mut Session,
        uid: u32,
        outcome: MailOutcome,
        able: Able,
    ) -> Result<(), ImapError> {
        let (folder, flags) = match outcome {
            MailOutcome::Quarantine => (&self.account.quarantine_folder, "\\Seen \\Flagged"),
            MailOutcome::Done | MailOutcome::Later => (&self.account.done_folder, "\\Seen"),
        };
        let limit = IMAP_COMMAND_TIME_MAX;
        let uid_text = uid.to_string();
        within(limit, "mark a message", stored(session, &uid_text, flags)).await?;
        if let Some(folder) = folder {
            if able.moving {
                within(limit, "move a message", session.uid_mv(&uid_text, folder)).await?;
            } else {
                within(limit, "copy a message", session.uid_copy(&uid_text, folder)).await?;
                within(limit, "mark a message", stored(session, &uid_text, "\\Deleted")).await?;
                if able.uid_expunge {
                    let expunged =
                        async { session.uid_expunge(&uid_text).await?.try_collect::<Vec<_>>().await };
                    within(limit, "expunge a message", expunged).await?;
                }
            }
        }
        self.attempts.done(uid);
        Ok(())
    }
}

async fn stored(session: &mut Session, uid: &str, flags: &str) -> Result<(), Error> {
    session.uid_store(uid, format!("+FLAGS.SILENT ({flags})")).await?.try_collect::<Vec<_>>().await.map(drop)
}

/// Returns the server's answer about one message; `None` if it is gone.
async fn fetched(session: &mut Session, uid: u32, what: &str) -> Result<Option<Fetch>, ImapError> {
    let answer = async {
        let all: Vec<_> = session.uid_fetch(uid.to_string(), what).await?.try_collect().await?;
        // A server may send data of other messages meanwhile.
        Ok(all.into_iter().find(|it| it.uid == Some(uid) && (it.size.is_some() || it.body().is_some())))
    };
    let found = within(IMAP_MESSAGE_TIME_MAX, "read a message", answer).await?;
    if found.is_none() {
        // A closed connection looks like a missing message.
        within(IMAP_COMMAND_TIME_MAX, "answer", session.noop()).await?;
    }
    Ok(found)
}
