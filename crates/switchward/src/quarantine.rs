//! Mail that was not taken, in a folder of the server's data: one file each, which is there whole or not at all.
//!
//! Why here and not in the replicated state is written where the mail comes in, in the gateway's `mail::quarantine`.

mod sweeper;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use switchward_gateway::limits::MAIL_KEPT_BYTES_MAX;
use switchward_gateway::mail::{QuarantineStore, QuarantinedMail};
use switchward_machine::{IdError, TenantId, Time};
use switchward_store::write_secret;

pub(crate) use sweeper::Sweeper;

/// The folder's name, below the data folder.
const FOLDER: &str = "quarantine";
/// The ending of a mail's file.
const ENDING: &str = "mail";
/// The form of such a file.
const FORM: u32 = 1;
/// Mails of one tenant that are kept, and mails that name none.
const OF_OWNER_MAX: usize = 1_000;
/// What is kept of their content, bytes.
const OF_OWNER_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Mails that are kept in all.
const ALL_MAX: usize = 10_000;
/// What is kept of their content, bytes.
const ALL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The first line of a file, bytes; what is longer is none of ours.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// What is kept of an address or a subject, bytes.
const FIELD_BYTES_MAX: usize = 1_024;
/// Recipients that are kept.
const RECIPIENTS_MAX: usize = 100;

/// The first line of a file, JSON; below it stands the content. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct QuarantineHead {
    form: u32,
    at_ms: u64,
    tenant: Option<u32>,
    session: Option<String>,
    outcome: String,
    why: String,
    sender: Option<String>,
    recipients: Vec<String>,
    from: String,
    subject: String,
    bytes: u64,
}

impl QuarantineHead {
    fn of(mail: &QuarantinedMail) -> Self {
        let cut = |text: &String| text[..text.floor_char_boundary(FIELD_BYTES_MAX)].to_owned();
        Self {
            form: FORM,
            at_ms: mail.at.0,
            tenant: mail.tenant.map(|tenant| tenant.0),
            session: mail.session.map(|session| session.to_string()),
            outcome: mail.outcome.clone(),
            why: mail.why.clone(),
            sender: mail.sender.as_ref().map(cut),
            recipients: mail.recipients.iter().take(RECIPIENTS_MAX).map(cut).collect(),
            from: cut(&mail.from),
            subject: cut(&mail.subject),
            bytes: mail.bytes,
        }
    }

    /// # Errors
    /// It names a session by what is no id of one: whose mail it is cannot be known.
    fn mail(self, id: String) -> Result<QuarantinedMail, IdError> {
        Ok(QuarantinedMail {
            id,
            at: Time(self.at_ms),
            tenant: self.tenant.map(TenantId),
            session: self.session.map(|session| session.parse()).transpose()?,
            outcome: self.outcome,
            why: self.why,
            sender: self.sender,
            recipients: self.recipients,
            from: self.from,
            subject: self.subject,
            bytes: self.bytes,
        })
    }

    /// The stored file: the head as one line of JSON, then the message as it came.
    fn file(&self, content: &[u8]) -> Vec<u8> {
        let mut file = serde_json::to_vec(self).expect("texts and numbers are JSON");
        file.push(b'\n');
        file.extend_from_slice(content);
        file
    }
}

/// A mail, and how much is kept of its content, bytes.
type Entry = (QuarantinedMail, u64);

/// See the module.
pub(crate) struct Quarantine {
    folder: PathBuf,
    kept: Mutex<BTreeMap<String, Entry>>,
}

impl Quarantine {
    /// Opens the folder below this data folder, and reads what is in it. What is no mail there is left alone.
    ///
    /// # Errors
    /// It cannot be made or read.
    pub(crate) fn open(data: &Path) -> anyhow::Result<Self> {
        let folder = data.join(FOLDER);
        let message = || format!("failed to open the quarantine {}", folder.display());
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(message);
            }
            // The folder's own entry is as durable as what is put into it.
            Ok(()) => fs::File::open(data).and_then(|data| data.sync_all()).with_context(message)?,
            Err(_) => {}
        }
        let mut kept = BTreeMap::new();
        for entry in fs::read_dir(&folder).with_context(message)? {
            let path = entry.with_context(message)?.path();
            match read(&path) {
                Ok(Some((mail, bytes))) => drop(kept.insert(mail.id.clone(), (mail, bytes))),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "failed to read a mail in quarantine")
                }
            }
        }
        Ok(Self { folder, kept: Mutex::new(kept) })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ENDING}"))
    }

    /// Deletes the oldest mail beyond the limits.
    fn trim(&self, kept: &mut BTreeMap<String, Entry>) {
        while let Some(id) = surplus(kept) {
            if let Err(error) = remove(&self.path(&id)) {
                tracing::warn!(%error, "failed to delete a mail in quarantine");
            }
            kept.remove(&id);
        }
    }
}

/// The mail that has to go first: the oldest of those that are too many.
fn surplus(kept: &BTreeMap<String, Entry>) -> Option<String> {
    let mut owners: BTreeMap<Option<TenantId>, (usize, u64)> = BTreeMap::new();
    for (mail, bytes) in kept.values() {
        let sums = owners.entry(mail.tenant).or_default();
        *sums = (sums.0 + 1, sums.1 + bytes);
    }
    let all = owners.values().fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
    let over = |sums: (usize, u64), most: (usize, u64)| sums.0 > most.0 || sums.1 > most.1;
    let of_all = over(all, (ALL_MAX, ALL_BYTES_MAX));
    let goes = |(mail, _): &&Entry| {
        let own = owners.get(&mail.tenant).copied().unwrap_or_default();
        of_all || over(own, (OF_OWNER_MAX, OF_OWNER_BYTES_MAX))
    };
    let oldest = kept.values().filter(goes).min_by_key(|(mail, _)| (mail.at, mail.id.clone()));
    oldest.map(|(mail, _)| mail.id.clone())
}

/// Reads the head of a file, and how long its content is; `None` if it is none of ours.
fn read(path: &Path) -> anyhow::Result<Option<Entry>> {
    let ours = path.extension().is_some_and(|ending| ending == ENDING);
    let Some(id) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| ours) else { return Ok(None) };
    let file = fs::File::open(path)?;
    let whole = file.metadata()?.len();
    let mut line = Vec::new();
    std::io::Read::take(BufReader::new(file), u64::try_from(HEAD_BYTES_MAX)?).read_until(b'\n', &mut line)?;
    let head: QuarantineHead = serde_json::from_slice(&line)?;
    anyhow::ensure!(head.form == FORM, "the file has form {}, this program reads form {FORM}", head.form);
    let content = whole.saturating_sub(u64::try_from(line.len())?);
    Ok(Some((head.mail(id.to_owned())?, content)))
}

/// Deletes a file; whether there was one.
fn remove(path: &Path) -> Result<bool, String> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

impl QuarantineStore for Quarantine {
    fn keep(&self, mail: QuarantinedMail, content: &[u8]) -> Result<(), String> {
        let content = &content[..content.len().min(MAIL_KEPT_BYTES_MAX)];
        let head = QuarantineHead::of(&mail);
        let file = head.file(content);
        let mail = head.mail(mail.id).map_err(|error| error.to_string())?;
        // One at a time: what strangers send must not take the disk from the log.
        let mut kept = self.kept.lock();
        write_secret(&self.path(&mail.id), &file).map_err(|error| error.to_string())?;
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        kept.insert(mail.id.clone(), (mail, bytes));
        self.trim(&mut kept);
        Ok(())
    }

    fn list(&self) -> Vec<QuarantinedMail> {
        self.kept.lock().values().map(|(mail, _)| mail.clone()).collect()
    }

    fn content(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
        let kept = self.kept.lock();
        if !kept.contains_key(id) {
            return Ok(None);
        }
        let file = fs::read(self.path(id)).map_err(|error| format!("{id}: {error}"))?;
        let below = file.iter().position(|byte| *byte == b'\n').map_or(file.len(), |at| at + 1);
        Ok(Some(file[below..].to_vec()))
    }

    fn delete(&self, mail: &QuarantinedMail) -> Result<bool, String> {
        let mut kept = self.kept.lock();
        if kept.get(&mail.id).is_none_or(|(known, _)| known.at != mail.at) {
            return Ok(false);
        }
        // The file goes first: one that cannot be deleted stays listed, so that somebody tries it again.
        remove(&self.path(&mail.id))?;
        kept.remove(&mail.id);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::SessionId;

    /// What this writes is `quarantine.v1.mail`, for good.
    const GOLDEN: &[u8] = include_bytes!("quarantine/golden/quarantine.v1.mail");

    fn mail(id: &str, tenant: Option<u32>, at: u64) -> QuarantinedMail {
        QuarantinedMail {
            id: id.to_owned(),
            at: Time(at),
            tenant: tenant.map(TenantId),
            session: tenant.map(|_| SessionId([5; 16])),
            outcome: "quarantined".to_owned(),
            why: "token_invalid".to_owned(),
            sender: Some(String::new()),
            recipients: vec!["r+x@reply.example".to_owned()],
            from: "ann@a.example".to_owned(),
            subject: "\"Ja\"\nund".to_owned(),
            bytes: 4,
        }
    }

    fn ids(quarantine: &Quarantine) -> Vec<String> {
        quarantine.list().into_iter().map(|mail| mail.id).collect()
    }

    #[test]
    fn a_file_of_the_first_form_is_written_and_read_for_good() {
        let kept = mail("one", Some(2), 1_700_000_000_000);
        let file = QuarantineHead::of(&kept).file(b"a\n\xffb");
        assert_eq!(file, GOLDEN);
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join(FOLDER)).unwrap();
        fs::write(data.path().join(FOLDER).join("one.mail"), GOLDEN).unwrap();
        let quarantine = Quarantine::open(data.path()).unwrap();
        assert_eq!(quarantine.list(), [kept]);
        assert_eq!(quarantine.content("one").unwrap().unwrap(), b"a\n\xffb");
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_until_it_is_deleted() {
        let data = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::open(data.path()).unwrap();
        quarantine.keep(mail("one", None, 1), b"1").unwrap();
        quarantine.keep(mail("two", None, 2), b"2").unwrap();
        fs::write(data.path().join(FOLDER).join("broken.mail"), b"{").unwrap();
        let odd =
            QuarantineHead { session: Some("ses_x".to_owned()), ..QuarantineHead::of(&mail("odd", None, 3)) };
        fs::write(data.path().join(FOLDER).join("odd.mail"), odd.file(b"3")).unwrap();
        fs::write(data.path().join(FOLDER).join("note.txt"), b"mine").unwrap();
        let quarantine = Quarantine::open(data.path()).unwrap();
        assert_eq!(ids(&quarantine), ["one", "two"]);
        let one = mail("one", None, 1);
        assert_eq!((quarantine.delete(&one), quarantine.delete(&one)), (Ok(true), Ok(false)));
        assert_eq!(quarantine.content("one"), Ok(None));
        let quarantine = Quarantine::open(data.path()).unwrap();
        assert_eq!(ids(&quarantine), ["two"]);
        assert!(data.path().join(FOLDER).join("note.txt").exists());
    }

    #[test]
    fn the_oldest_go_where_one_owner_has_too_many_and_others_keep_theirs() {
        let mut kept = BTreeMap::new();
        let mut add = |id: &str, tenant, at, bytes| {
            kept.insert(id.to_owned(), (mail(id, tenant, at), bytes));
            surplus(&kept)
        };
        assert_eq!(add("other", Some(1), 1, OF_OWNER_BYTES_MAX), None);
        for number in 0..OF_OWNER_MAX {
            assert_eq!(add(&format!("n{number}"), None, 2 + u64::try_from(number).unwrap(), 1), None);
        }
        assert_eq!(add("last", None, 9_999, 1), Some("n0".to_owned()));
        assert_eq!(add("large", Some(1), 9_999, 1), Some("other".to_owned()));
    }

    #[test]
    fn what_was_kept_once_more_is_not_deleted_as_it_was_before() {
        let data = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::open(data.path()).unwrap();
        quarantine.keep(mail("one", None, 5), b"1").unwrap();
        let [before] = &quarantine.list()[..] else { panic!("one is kept") };
        quarantine.keep(mail("one", None, 6), b"1").unwrap();
        assert_eq!(quarantine.delete(before), Ok(false));
        assert_eq!(quarantine.content("one"), Ok(Some(b"1".to_vec())));
        let [now] = &quarantine.list()[..] else { panic!("one is kept") };
        assert_eq!(quarantine.delete(now), Ok(true));
        assert!(!data.path().join(FOLDER).join("one.mail").exists());
        quarantine.keep(before.clone(), b"1").unwrap();
        assert_eq!(ids(&quarantine), ["one"], "what was deleted can be kept again");
    }

    #[test]
    fn what_cannot_be_deleted_stays_listed() {
        let data = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::open(data.path()).unwrap();
        quarantine.keep(mail("one", None, 5), b"1").unwrap();
        let file = data.path().join(FOLDER).join("one.mail");
        fs::remove_file(&file).unwrap();
        // A folder in its place cannot be deleted as a file.
        fs::create_dir(&file).unwrap();
        assert!(quarantine.delete(&mail("one", None, 5)).is_err());
        assert_eq!(ids(&quarantine), ["one"]);
        fs::remove_dir(&file).unwrap();
        assert_eq!(quarantine.delete(&mail("one", None, 5)), Ok(true));
    }
}
