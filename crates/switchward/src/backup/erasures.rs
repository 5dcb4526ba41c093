//! The list of erased and deleted sessions, as `switchward export` writes it: an older backup still has them.

use anyhow::Context as _;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_shard::Cluster;
use switchward_state::catalogue::Role;
use switchward_state::session::{Cancel, CancelComment, Remove, Removing, SessionCommand};
use switchward_state::{Actor, Body, Command, Scope};

/// Entries of all lists.
const ENTRIES_MAX: usize = 1_000_000;
/// A line of a list, bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How often the end of a removal is checked for.
const LOOK: Duration = Duration::from_millis(20);

/// An erased or deleted session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    tenant: String,
    session: SessionId,
    /// When it started. A later session with the same business key has the same id.
    created: Time,
    how: Removing,
    by: String,
}

/// A line of an export; the others are of no interest here.
#[derive(Deserialize)]
struct Line {
    removal: Option<Removal>,
    /// The last line of a whole export.
    end: Option<serde_json::Value>,
}

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
enum Record {
    Removed(Erasure),
    End,
    Other,
}

#[derive(Deserialize)]
struct Removal {
    session: String,
    how: String,
    #[serde(default)]
    by: String,
    #[serde(rename = "createTime")]
    created: String,
}

/// Reads the removals of these exports.
///
/// # Errors
/// A file cannot be read, a line is none of an export (the error names it), or the last line of the export is missing.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Erasure>> {
    let mut found = Vec::new();
    for path in files {
        read_file(path, &mut found).with_context(|| path.display().to_string())?;
    }
    Ok(found)
}

fn read_file(path: &Path, found: &mut Vec<Erasure>) -> anyhow::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    let mut whole = false;
    for number in 1_usize.. {
        let mut line = Vec::new();
        std::io::Read::take(&mut file, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        let one = erasure(&line).with_context(|| format!("line {number} is not a line of an export"))?;
        whole = one == Record::End;
        if let Record::Removed(erasure) = one {
            found.push(erasure);
        }
        anyhow::ensure!(found.len() <= ENTRIES_MAX, "the exports hold more than {ENTRIES_MAX} removals");
    }
    anyhow::ensure!(whole, "the export is incomplete: its last line, {{\"end\": ...}}, is missing");
    Ok(())
}

fn erasure(line: &[u8]) -> anyhow::Result<Record> {
    let line = serde_json::from_slice::<Line>(line)?;
    let Some(removal) = line.removal else {
        return Ok(if line.end.is_some() { Record::End } else { Record::Other });
    };
    let parts: Vec<&str> = removal.session.split('/').collect();
    let ["tenants", tenant, "sessions", session] = parts[..] else {
        anyhow::bail!("{:?} is not the name of a session", removal.session);
    };
    let session = session.parse().ok().with_context(|| format!("{session:?} is not a session id"))?;
    let how = match removal.how.as_str() {
        "erased" => Removing::Erased,
        "deleted" => Removing::Deleted,
        // What expired by a rule expires by it again.
        "expired" | "trimmed" => return Ok(Record::Other),
        other => anyhow::bail!("unknown kind of removal {other:?}"),
    };
    let created = removal.created.parse().ok().and_then(millis);
    let created = created.with_context(|| format!("{:?} is not a time", removal.created))?;
    Ok(Record::Removed(Erasure { tenant: tenant.to_owned(), session, created, how, by: removal.by }))
}

fn millis(time: prost_types::Timestamp) -> Option<Time> {
    let seconds = u64::try_from(time.seconds).ok()?.checked_mul(1_000)?;
    seconds.checked_add(u64::try_from(time.nanos).ok()? / 1_000_000).map(Time)
}

/// Repeats the erasures and deletions on a restored backup, and waits until the rows are gone. Returns the number of
/// sessions.
///
/// # Errors
/// A shard does not answer.
pub(crate) async fn repeat(
    cluster: &Cluster,
    tenants: &BTreeMap<String, TenantId>,
    list: &[Erasure],
) -> anyhow::Result<usize> {
    let (mut removed, mut unknown) = (0, BTreeSet::new());
    for erasure in list {
        let Some(tenant) = tenants.get(&erasure.tenant).copied() else {
            unknown.insert(&erasure.tenant);
            continue;
        };
        let Some(session) = cluster.session(tenant, erasure.session).await? else { continue };
        // An earlier session of the same key was gone before this one started; a later one is another session.
        if session.created > erasure.created {
            continue;
        }
        let before = session.removal.as_deref().map(|removal| removal.how);
        if before == Some(erasure.how) || before.is_some_and(Removing::hides) {
            continue;
        }
        let command = |body| Command::of_server(tenant, Scope::Session(erasure.session), body);
        if session.ended.is_none() {
            // It had not ended when the backup was taken, and has ended and was removed since.
            let comment = CancelComment::RemovedAfterBackup;
            cluster.execute(command(Body::Session(SessionCommand::Cancel(Cancel { comment })))).await?;
        }
        let remove = Remove { how: erasure.how, ended_by: None };
        let actor = Actor { subject: erasure.by.clone(), role: Role::Admin };
        cluster.execute(Command { actor, ..command(Body::Session(SessionCommand::Remove(remove))) }).await?;
        removed += 1;
    }
    for erasure in list {
        let Some(tenant) = tenants.get(&erasure.tenant).copied() else { continue };
        while under_way(cluster, tenant, erasure.session).await? {
            tokio::time::sleep(LOOK).await;
        }
    }
    for tenant in unknown {
        tracing::warn!(%tenant, "the list of erasures names a tenant that is not in the backup");
    }
    Ok(removed)
}

async fn under_way(cluster: &Cluster, tenant: TenantId, id: SessionId) -> anyhow::Result<bool> {
    let session = cluster.session(tenant, id).await?;
    Ok(session.is_some_and(|session| session.removal.as_ref().is_some_and(|removal| removal.under_way())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_read_and_other_records_passed_over() {
        let id = SessionId([7; 16]);
        let line = |how: &str| {
            format!(
                r#"{{"removal":{{"session":"tenants/acme/sessions/{id}","how":"{how}","by":"kim","time":"2026-01-01T00:00:00Z","createTime":"1970-01-01T00:01:00.250Z"}}}}"#
            )
        };
        let read = |line: &str| erasure(line.as_bytes());
        let erased = Erasure {
            tenant: "acme".into(),
            session: id,
            created: Time(60_250),
            how: Removing::Erased,
            by: "kim".into(),
        };
        assert_eq!(read(&line("erased")).unwrap(), Record::Removed(erased.clone()));
        let deleted = Erasure { how: Removing::Deleted, ..erased };
        assert_eq!(read(&line("deleted")).unwrap(), Record::Removed(deleted));
        assert_eq!(read(&line("expired")).unwrap(), Record::Other);
        assert_eq!(read(r#"{"event":{"sequence":"4"}}"#).unwrap(), Record::Other);
        assert_eq!(read(r#"{"end":{"records":4}}"#).unwrap(), Record::End);
        let of = |from: &str, to: &str| line("erased").replace(from, to);
        let wrongs =
            [line("forgotten"), of("tenants/", "t/"), of("createTime", "other"), of("1970", "x"), "x".into()];
        for wrong in wrongs {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
