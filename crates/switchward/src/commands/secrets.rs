//! `switchward secrets`: the key ring of a server, and what needs its keys.

use anyhow::Context as _;
use serde_json::json;
use std::path::{Path, PathBuf};
use switchward_engine::{RingKey, RingKeyId};
use switchward_shard::SealedUnder;
use switchward_store::{Backup, DataDir};

use super::backup::{data_dir, unanswered};
use super::offline::Stopped;
use crate::args::{DropKey, Output, SecretsArgs, SecretsCommand, SecretsStatus};
use crate::backup::{known, restore};
use crate::control::{self, Frame, Request, Secrets};
use crate::exit::Exit;
use crate::key_ring;
use crate::output::{Printer, Table, clean, count, print};
use crate::private;

/// Makes or changes a key ring, or says what needs it.
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
        let message = format!("{} is there already", file.display());
        return Err(Exit::conflict(message).next("switchward secrets rotate FILE    adds a key to a ring"));
    }
    let key = key_ring::create(file)?;
    report(file, &[key.id()], output, &format!("made {}, with the key {}", file.display(), key.id()))?;
    Printer::new(output, false)
        .advice("keep a copy of it apart from the backups; the server is told it by keys_file");
    Ok(())
}

fn rotate(file: &Path, output: Output) -> Result<(), Exit> {
    let mut keys = key_ring::read(file)?;
    keys.insert(0, key_ring::drawn());
    key_ring::write(file, &keys)?;
    let ids: Vec<RingKeyId> = keys.iter().map(RingKey::id).collect();
    report(file, &ids, output, &format!("the current key of {} is {}", file.display(), ids[0]))?;
    Printer::new(output, false)
        .advice("the server takes it when it starts, or with SIGHUP where it reads this very file");
    Ok(())
}

fn report(file: &Path, ids: &[RingKeyId], output: Output, sentence: &str) -> Result<(), Exit> {
    if output.json() {
        let ids: Vec<String> = ids.iter().map(RingKeyId::to_string).collect();
        return print(&format!("{}\n", json!({ "file": file, "keys": ids })));
    }
    print(&format!("{}\n", clean(sentence)))
}

/// What needs which keys.
struct Status {
    /// The keys that the server has, the current one first.
    ring: Vec<RingKeyId>,
    /// What the rows hold under each.
    rows: SealedUnder,
    /// What each backup holds under each.
    backups: Vec<(PathBuf, SealedUnder)>,
    /// Backups that are not where they were written.
    gone: Vec<PathBuf>,
}

impl Status {
    fn of(of: &SecretsStatus) -> Result<Self, Exit> {
        let data = data_dir(of.data_dir.clone(), of.config.as_ref())?;
        if !data.join("FORMAT").is_file() {
            return Err(Exit::missing(format!("{} is no data folder of a server", data.display())));
        }
        let Secrets { ring, rows } = match control::ask(&data, &Request::Secrets)? {
            Some(mut frames) => match frames.next()? {
                Frame::Answer(bytes) => control::SecretsAnswer::read(&bytes)?,
                Frame::Failed(why) => {
                    return Err(Exit::unreachable(format!("the server does not say it: {why}")));
                }
                Frame::Begin(_) | Frame::Data(_) | Frame::End(_) | Frame::Manifest(_) => {
                    return Err(Exit::unreachable("the server answers something else"));
                }
            },
            None if DataDir::in_use(&data) => return Err(unanswered(&data)),
            None => of_stopped(&data)?,
        };
        let (mut here, gone) = known::backups(&data).into_iter().partition::<Vec<_>, _>(|path| path.exists());
        here.extend(of.backups.iter().cloned());
        let look = |folder: PathBuf| {
            let under = Backup::open(&folder).and_then(|backup| restore::sealed_under(&backup));
            under
                .map(|under| (folder.clone(), under))
                .with_context(|| format!("failed to read {}", folder.display()))
        };
        let backups = here.into_iter().map(look).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { ring, rows, backups, gone })
    }

    /// How many secrets of the rows are under a key, and how many backups hold some.
    fn needs(&self, key: RingKeyId) -> (usize, usize) {
        let rows = self.rows.get(&key).copied().unwrap_or_default();
        (rows, self.backups.iter().filter(|(_, under)| under.contains_key(&key)).count())
    }
}

fn of_stopped(data: &Path) -> Result<Secrets, Exit> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Stopped::open(data, None).await?;
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
    let mut table = Table::new(&["key", "in the ring", "secrets in rows", "backups that need it"]);
    for key in keys {
        let (rows, backups) = status.needs(key);
        let position = match status.ring.iter().position(|id| *id == key) {
            Some(0) => "current",
            Some(_) => "older",
            None => "no",
        };
        table.row([key.to_string(), position.to_owned(), rows.to_string(), backups.to_string()]);
    }
    print(&table.text("there is no key"))?;
    if !status.gone.is_empty() {
        let gone = count(status.gone.len(), "backup");
        let line = format!("{gone} not where they were written; name those that are kept by --backup DIR");
        Printer::new(output, false).advice(&line);
    }
    Ok(())
}

/// Refuses to drop a key that rows or backups need, or may need: one that was moved away is restored one day.
fn spared(status: &Status, id: RingKeyId, missing_deleted: bool) -> Result<(), Exit> {
    match status.needs(id) {
        (0, 0) => {}
        (0, backups) => {
            let message = format!("{} cannot be restored without the key {id}", count(backups, "backup"));
            return Err(Exit::conflict(message).next("take a new backup, and delete the older ones first"));
        }
        (rows, _) => {
            let message = format!("the server has {} under the key {id}", count(rows, "secret"));
            return Err(
                Exit::conflict(message).next("start the server with the rotated ring, or reload it, first")
            );
        }
    }
    if !status.gone.is_empty() && !missing_deleted {
        let gone: Vec<String> = status.gone.iter().map(|path| path.display().to_string()).collect();
        let message = format!("not where it was written, and may need the key {id}: {}", gone.join(", "));
        return Err(Exit::conflict(message)
            .next("--backup DIR                 names a backup that was moved")
            .next("--missing-deleted            says that no other one is left"));
    }
    Ok(())
}

fn drop(drop: &DropKey, output: Output) -> Result<(), Exit> {
    let id: RingKeyId = drop.id.parse().map_err(|_| Exit::usage(format!("{:?} is no key's id", drop.id)))?;
    let mut keys = key_ring::read(&drop.file)?;
    let Some(at) = keys.iter().position(|key| key.id() == id) else {
        return Err(Exit::missing(format!("{} has no key {id}", drop.file.display())));
    };
    if at == 0 {
        return Err(Exit::conflict(format!("{id} is the current key"))
            .next("switchward secrets rotate FILE    makes another one"));
    }
    let status = Status::of(&drop.of)?;
    spared(&status, id, drop.missing_deleted)?;
    if status.ring.first() == Some(&id) {
        let message = format!("the server still seals under the key {id}");
        return Err(
            Exit::conflict(message).next("start the server with the rotated ring, or reload it, first")
        );
    }
    keys.remove(at);
    key_ring::write(&drop.file, &keys)?;
    let ids: Vec<RingKeyId> = keys.iter().map(RingKey::id).collect();
    report(&drop.file, &ids, output, &format!("{} has the key {id} no more", drop.file.display()))
}
