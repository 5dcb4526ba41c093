//! `switchward backup`: backs up a server, also while it runs, and verifies backups.

use anyhow::Context as _;
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use switchward_machine::Time;
use switchward_messages::cli::backup as texts;
use switchward_shard::check_backup;
use switchward_store::{Backup, BackupFolder, BackupManifest, BackupSink as _, DataDir, StoreError};

use super::offline::{Purpose, ServerFolder, Stopped};
use crate::args::{BackupArgs, BackupCommand, Output};
use crate::backup::{begin, known};
use crate::control::{Frame, Frames, Request};
use crate::exit::{Exit, FINDINGS};
use crate::output::{GOOD, PROBLEM, Printer, card, clean, print, shell};
use crate::{control, private};

/// Takes or verifies a backup.
pub(crate) fn run(args: BackupArgs, output: Output) -> Result<(), Exit> {
    let done = match args.what {
        Some(BackupCommand::Verify(verify)) => self::verify(&verify.folder, output),
        None => take(args, output),
    };
    done.map_err(|exit| exit.in_format(output))
}

fn take(args: BackupArgs, output: Output) -> Result<(), Exit> {
    let folder = args.folder.context("no folder is given")?;
    let of = ServerFolder::find(args.data_dir, args.config.as_ref())?;
    of.is_there()?;
    let data = of.data.as_path();
    private::begin();
    let mut to = BackupFolder::create(&folder).map_err(taken)?;
    let manifest = match control::ask(data, &Request::Backup)? {
        Some(frames) => receive(frames, &mut to)?,
        None if DataDir::in_use(data) => return Err(unanswered(data)),
        None => of_stopped(&of, &mut to)?,
    };
    to.finish(&manifest).context("failed to write the backup")?;
    if let Err(error) = known::note(data, &folder) {
        Printer::new(output).warn(&texts::not_noted(&error));
    }
    shown(&folder, &manifest, output)?;
    let verify = format!("switchward backup verify {}", shell(&folder.to_string_lossy()));
    Printer::new(output).advice(&verify);
    Ok(())
}

/// The error of a data folder whose server does not respond.
pub(super) fn unanswered(data: &Path) -> Exit {
    let message = format!("the server that uses {} does not respond on its control socket", data.display());
    Exit::unreachable(message).next("run this command on the server's machine as the server's user")
}

fn taken(error: StoreError) -> Exit {
    if let StoreError::FolderExists { path } = &error {
        let message = format!("{} already exists", path.display());
        return Exit::conflict(message).next("name a folder that does not exist");
    }
    Exit::failed(error.into())
}

/// Receives a backup from a running server.
fn receive<R: std::io::Read>(mut frames: Frames<R>, to: &mut BackupFolder) -> Result<BackupManifest, Exit> {
    let mut progress = Progress::default();
    let message = "failed to write the backup";
    loop {
        match frames.next()? {
            Frame::Begin(name) => {
                to.begin(&name).context(message)?;
                progress.name = name;
            }
            Frame::Data(piece) => {
                to.write(&piece).context(message)?;
                progress.more(piece.len());
            }
            Frame::End(file) => to.end(&file).context(message)?,
            Frame::Manifest(manifest) => {
                progress.end();
                return Ok(manifest);
            }
            Frame::Answer(_) => {
                return Err(Exit::unreachable("the server sent an unexpected response".to_owned()));
            }
            Frame::Failed(why) => {
                progress.end();
                return Err(Exit::unreachable(format!("the server could not take a backup: {why}")));
            }
        }
    }
}

fn of_stopped(of: &ServerFolder, to: &mut BackupFolder) -> Result<BackupManifest, Exit> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Stopped::open(of, Purpose::Backup, None).await?;
        let (of, cut) = begin(&server.cluster).await?;
        let written = cut.write(&server.data, of, to);
        drop(cut);
        server.close().await?;
        Ok(written.context("failed to write the backup")?)
    })
}

/// The progress of a long copy, for people.
#[derive(Default)]
struct Progress {
    name: String,
    bytes: u64,
    said: u64,
}

impl Progress {
    /// Bytes between two updates.
    const STEP: u64 = 4 * 1024 * 1024;

    fn more(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.bytes - self.said >= Self::STEP && std::io::stderr().is_terminal() {
            self.said = self.bytes;
            // Progress that cannot be printed is not an error.
            let _lost = write!(std::io::stderr(), "\r\x1b[K{}  {} MiB", self.name, self.bytes >> 20);
        }
    }

    fn end(&self) {
        if self.said > 0 {
            let _lost = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn shown(folder: &Path, manifest: &BackupManifest, output: Output) -> Result<(), Exit> {
    if output.json() {
        let report = json!({ "folder": folder.to_string_lossy(), "manifest": manifest });
        return print(&format!("{report}\n"));
    }
    print(&card(&facts(folder, manifest)))
}

fn facts(folder: &Path, manifest: &BackupManifest) -> Vec<(&'static str, String)> {
    let rows: u64 = manifest.files.iter().filter_map(|file| file.rows).sum();
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let mails = manifest.files.iter().filter(|file| file.group.is_none()).count();
    vec![
        ("backup", clean(&folder.to_string_lossy())),
        ("taken", switchward_state::policy::time_text(Time(manifest.taken_ms))),
        ("program", clean(&manifest.program)),
        ("data folder", clean(&manifest.data_dir)),
        ("cluster", manifest.cluster.clone().unwrap_or_default()),
        ("shards", manifest.shards.to_string()),
        ("rows", rows.to_string()),
        ("quarantined mails", mails.to_string()),
        ("bytes", bytes.to_string()),
    ]
}

fn verify(folder: &Path, output: Output) -> Result<(), Exit> {
    let backup = match Backup::open(folder) {
        Err(error @ StoreError::NoBackup { .. }) => return Err(Exit::missing(error.to_string())),
        Err(error @ StoreError::Damaged { .. }) => return Err(Exit::damaged(chain(&error))),
        opened => opened.context("the backup cannot be read")?,
    };
    let manifest = backup.manifest();
    let files = manifest.files.iter();
    let damaged: Vec<String> =
        files.filter_map(|file| check_backup(&backup, file).err()).map(|error| chain(&error)).collect();
    if output.json() {
        let (folder, ok) = (folder.to_string_lossy(), damaged.is_empty());
        let report = json!({ "folder": folder, "ok": ok, "damaged": damaged, "manifest": manifest });
        print(&format!("{report}\n")).or_else(Exit::unless_output_closed)?;
    } else {
        let files = match damaged.len() {
            0 => format!("{GOOD}{}{GOOD:#}", texts::COMPLETE),
            count => format!("{PROBLEM}{}{PROBLEM:#}\n{}", texts::damaged(count), damaged.join("\n")),
        };
        let mut facts = facts(folder, manifest);
        facts.push(("files", files));
        print(&card(&facts)).or_else(Exit::unless_output_closed)?;
    }
    if damaged.is_empty() { Ok(()) } else { Err(Exit::reported(FINDINGS)) }
}

/// An error with its cause.
fn chain(error: &StoreError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
