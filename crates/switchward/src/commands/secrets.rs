//! `switchward secrets`: the key ring of a server, and the use of its keys.

use anyhow::Context as _;
use serde_json::json;
use std::path::{Path, PathBuf};
use switchward_messages::cli::secrets as texts;
use switchward_shard::{SealedUnder, sealed_in_backup};
use switchward_state::seal::{RingKey, RingKeyId};
use switchward_store::{Backup, DataDir};

use super::backup::unanswered;
use super::offline::{Purpose, ServerFolder, Stopped};
use crate::args::{DropKey, Output, SecretsArgs, SecretsCommand, SecretsStatus};
use crate::backup::known;
use crate::control::{Frame, Request, Secrets};
use crate::exit::Exit;
use crate::output::{Printer, Table, clean, count, print};
use crate::{control, key_ring, private};

/// Missing backups that a refusal names, the newest.
const MISSING_SHOWN_MAX: usize = 20;

/// Creates or changes a key ring, or shows the use of its keys.
pub(crate) fn run(args: SecretsArgs, output: Output) -> Result<(), Exit> {
    private::begin();
    let done = match args.what {
        SecretsCommand::Create(ring) => create(&ring.file, output),
        SecretsCommand::Rotate(ring) => rotate(&ring.file, output),
        SecretsCommand::Status(of) => status(&of, output),
        SecretsCommand::Drop(drop) => self::drop(&drop, output),
    };
    done.map_err(|exit| exit.in_format(output))
}

fn create(file: &Path, output: Output) -> Result<(), Exit> {
    if file.symlink_metadata().is_ok() {
        let message = format!("{} already exists", file.display());
        return Err(
            Exit::conflict(message).next("switchward secrets rotate FILE    adds a key to a key ring")
        );
    }
    let key = key_ring::create(file)?;
    report(file, &[key.id()], output, &texts::created(file, &key.id()))?;
    Printer::new(output).advice(texts::KEEP_COPY_AND_SET);
    Ok(())
}

fn rotate(file: &Path, output: Output) -> Result<(), Exit> {
    let mut keys = key_ring::read(file)?;
    keys.insert(0, key_ring::drawn());
    key_ring::write(file, &keys)?;
    let ids: Vec<RingKeyId> = keys.iter().map(RingKey::id).collect();
    report(file, &ids, output, &texts::current_key(file, &ids[0]))?;
    Printer::new(output).advice(texts::USED_AFTER_START);
    Ok(())
}

fn report(file: &Path, ids: &[RingKeyId], output: Output, sentence: &str) -> Result<(), Exit> {
    if output.json() {
        let ids: Vec<String> = ids.iter().map(RingKeyId::to_string).collect();
        return print(&format!("{}\n", json!({ "file": file.to_string_lossy(), "keys": ids })));
    }
    print(&format!("{}\n", clean(sentence)))
}

/// The use of keys.
struct Status {
    /// The server's keys, the current one first.
    ring: Vec<RingKeyId>,
    /// The secrets in rows under each key.
    rows: SealedUnder,
    /// The secrets in each backup under each key.
    backups: Vec<(PathBuf, SealedUnder)>,
    /// Backups that are missing from where they were written.
    gone: Vec<PathBuf>,
}

impl Status {
    fn of(of: &SecretsStatus) -> Result<Self, Exit> {
        let folder = ServerFolder::find(of.data_dir.clone(), of.config.as_ref())?;
        folder.is_there()?;
        let data = folder.data.as_path();
        let Secrets { ring, rows } = match control::ask(data, &Request::Secrets)? {
            Some(mut frames) => match frames.next()? {
                Frame::Answer(bytes) => control::SecretsAnswer::read(&bytes)?,
                Frame::Failed(why) => {
                    return Err(Exit::unreachable(format!("the server cannot list its secrets: {why}")));
                }
                Frame::Begin(_) | Frame::Data(_) | Frame::End(_) | Frame::Manifest(_) => {
                    return Err(Exit::unreachable("the server sent an unexpected response"));
                }
            },
            None if DataDir::in_use(data) => return Err(unanswered(data)),
            None => of_stopped(&folder)?,
        };
        let (mut here, gone) = known::backups(data)?.into_iter().partition::<Vec<_>, _>(|path| path.exists());
        here.extend(of.backups.iter().cloned());
        let look = |folder: PathBuf| {
            let under = Backup::open(&folder).and_then(|backup| sealed_in_backup(&backup));
            under
                .map(|under| (folder.clone(), under))
                .with_context(|| format!("failed to read {}", folder.display()))
        };
        let backups = here.into_iter().map(look).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { ring, rows, backups, gone })
    }

    /// The number of secrets in rows under a key, and of backups that need it.
    fn needs(&self, key: RingKeyId) -> (usize, usize) {
        let rows = self.rows.get(&key).copied().unwrap_or_default();
        (rows, self.backups.iter().filter(|(_, under)| under.contains_key(&key)).count())
    }
}

fn of_stopped(of: &ServerFolder) -> Result<Secrets, Exit> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Stopped::open(of, Purpose::Secrets, None).await?;
        let secrets = control::secrets(&server.cluster).await;
        server.close().await?;
        Ok(secrets?)
    })
}

fn status(of: &SecretsStatus, output: Output) -> Result<(), Exit> {
    let status = Status::of(of)?;
    let mut keys = status.ring.clone();
    let others = status.rows.keys().chain(status.backups.iter().flat_map(|(_, under)| under.keys()));
    for key in others {
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    if output.json() {
        let keys = keys.iter().map(|key| {
            let (rows, backups) = status.needs(*key);
            let (at, current) = (status.ring.iter().position(|id| id == key), status.ring.first() == Some(key));
            json!({ "key": key.to_string(), "current": current, "held": at.is_some(), "secrets": rows, "backups": backups })
        });
        let object = json!({ "keys": keys.collect::<Vec<_>>(), "missingBackups": status.gone });
        return print(&format!("{object}\n"));
    }
    let mut table = Table::new(&["KEY", "HELD", "SECRETS", "BACKUPS"]);
    for key in keys {
        let (rows, backups) = status.needs(key);
        let position = match status.ring.iter().position(|id| *id == key) {
            Some(0) => "current",
            Some(_) => "older",
            None => "no",
        };
        table.row([key.to_string(), position.to_owned(), rows.to_string(), backups.to_string()]);
    }
    print(&table.text(texts::NO_KEYS))?;
    if !status.gone.is_empty() {
        let gone = count(status.gone.len(), "backup");
        Printer::new(output).advice(&texts::missing_backups(&gone));
    }
    Ok(())
}

/// Refuses to drop a key that rows or backups need, or that a missing backup may need.
fn spared(status: &Status, id: RingKeyId, missing_deleted: bool) -> Result<(), Exit> {
    match status.needs(id) {
        (0, 0) => {}
        (0, backups) => {
            let message = format!("{} cannot be restored without the key {id}", count(backups, "backup"));
            return Err(Exit::conflict(message).next("take a new backup and delete the older ones first"));
        }
        (rows, _) => {
            let message = format!("the server has {} encrypted with the key {id}", count(rows, "secret"));
            return Err(Exit::conflict(message)
                .next("first restart the server with the rotated key ring, or reload it"));
        }
    }
    if !status.gone.is_empty() && !missing_deleted {
        let first = status.gone.iter().take(MISSING_SHOWN_MAX);
        let shown: Vec<String> = first.map(|path| path.display().to_string()).collect();
        let more = match status.gone.len() - shown.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let message = format!("a missing backup may need the key {id}: {}{more}", shown.join(", "));
        return Err(Exit::conflict(message)
            .next("--backup DIR                 names a moved backup")
            .next("--missing-deleted            confirms that the others were deleted"));
    }
    Ok(())
}

fn drop(drop: &DropKey, output: Output) -> Result<(), Exit> {
    let id: RingKeyId =
        drop.id.parse().map_err(|_| Exit::usage(format!("{:?} is not a key's id", drop.id)))?;
    let mut keys = key_ring::read(&drop.file)?;
    let Some(at) = keys.iter().position(|key| key.id() == id) else {
        return Err(Exit::missing(format!("{} has no key {id}", drop.file.display())));
    };
    if at == 0 {
        return Err(Exit::conflict(format!("{id} is the current key"))
            .next("switchward secrets rotate FILE    makes a new key current"));
    }
    let status = Status::of(&drop.of)?;
    spared(&status, id, drop.missing_deleted)?;
    if status.ring.first() == Some(&id) {
        let message = format!("the server still encrypts with the key {id}");
        return Err(
            Exit::conflict(message).next("first restart the server with the rotated key ring, or reload it")
        );
    }
    keys.remove(at);
    key_ring::write(&drop.file, &keys)?;
    let ids: Vec<RingKeyId> = keys.iter().map(RingKey::id).collect();
    report(&drop.file, &ids, output, &texts::removed(&drop.file, &id))
}
