//! The file of an export, and the resume file beside it.
//!
//! After each page the lines are on disk before the resume position behind them is, so that the file always reaches
//! that position. Anything behind it is cut off when the export resumes.

use anyhow::Context as _;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use switchward_messages::cli;

use super::Progress;
use crate::exit::Exit;
use crate::whole_file;

/// An export is for its owner alone: it holds what people have written.
const MODE: u32 = 0o600;
/// The size of a resume file, bytes.
const RESUME_BYTES_MAX: u64 = 64 * 1024;

/// Where to resume.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resume {
    /// The token of the next page; empty before the first one.
    token: String,
    /// Bytes of the file that count.
    bytes: u64,
    /// How many lines these bytes are.
    records: u64,
    /// The time whose records they are; `None` for now, before the first page.
    export_time: Option<String>,
}

/// A file whose export can be resumed.
pub(super) struct Resumable {
    file: File,
    path: PathBuf,
    resume: PathBuf,
    bytes: u64,
}

impl Resumable {
    /// Opens the file at its resume position, or creates it.
    ///
    /// # Errors
    /// It exists without a resume file, or does not match its resume file.
    pub(super) fn open(path: &Path, at: Option<prost_types::Timestamp>) -> Result<(Self, Progress), Exit> {
        let resume = beside(path, ".resume");
        let Some(left) = read(&resume)? else { return Self::begin(path, resume, at) };
        let time = left.export_time.as_deref().map(str::parse::<prost_types::Timestamp>).transpose();
        let time = time.map_err(|_| broken(&resume))?;
        if at.is_some_and(|at| time.is_some_and(|time| time != at)) {
            let began = left.export_time.unwrap_or_default();
            let message = format!("the export in {} began with --at {began}", path.display());
            return Err(Exit::usage(message).next("omit --at to resume it"));
        }
        let mut options = OpenOptions::new();
        // It may have been interrupted before there was a file.
        options.write(true).create(left.bytes == 0).truncate(false).mode(MODE);
        let file = own(path, &mut options);
        let mut file = file.with_context(|| format!("failed to open {}", path.display()))?;
        let length = file.metadata()?.len();
        if length < left.bytes {
            let (shown, wanted) = (path.display(), left.bytes);
            let message = format!("{shown} has {length} bytes, but {} expects {wanted}", resume.display());
            return Err(Exit::usage(message).next(restart_hint(path, &resume)));
        }
        file.set_len(left.bytes)?;
        file.seek(SeekFrom::End(0))?;
        let progress = Progress { token: left.token, time: time.or(at), records: left.records };
        Ok((Self { file, path: path.to_owned(), resume, bytes: left.bytes }, progress))
    }

    fn begin(
        path: &Path,
        resume: PathBuf,
        at: Option<prost_types::Timestamp>,
    ) -> Result<(Self, Progress), Exit> {
        if path.symlink_metadata().is_ok() {
            let message = format!("{} exists and is not an interrupted export", path.display());
            return Err(Exit::usage(message).next("name another file, or delete this one"));
        }
        let progress = Progress { time: at, ..Progress::default() };
        // First the resume file: an export file without one is left alone.
        write(&resume, &Resume::of(&progress, 0))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
        let file = file.inspect_err(|_| {
            let _left = std::fs::remove_file(&resume);
        });
        let file = file.with_context(|| format!("failed to create {}", path.display()))?;
        Ok((Self { file, path: path.to_owned(), resume, bytes: 0 }, progress))
    }

    /// Writes the lines of a page to disk.
    ///
    /// # Errors
    /// The disk does not take them.
    pub(super) fn append(&mut self, lines: &str) -> Result<(), Exit> {
        let message = || format!("failed to write {}", self.path.display());
        self.file.write_all(lines.as_bytes()).with_context(message)?;
        self.file.sync_data().with_context(message)?;
        self.bytes += u64::try_from(lines.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Writes the resume position behind what was written.
    ///
    /// # Errors
    /// The disk does not take it.
    pub(super) fn keep(&self, progress: &Progress) -> Result<(), Exit> {
        write(&self.resume, &Resume::of(progress, self.bytes))
    }

    /// Writes the last line and removes the resume file.
    ///
    /// # Errors
    /// The disk does not take it.
    pub(super) fn end(mut self, line: &str) -> Result<(), Exit> {
        self.append(line)?;
        std::fs::remove_file(&self.resume)
            .with_context(|| format!("failed to delete {}", self.resume.display()))?;
        Ok(())
    }

    /// Adds how to resume after an interruption; removes both files if nothing was written.
    pub(super) fn interrupted(&self, exit: Exit) -> Exit {
        if self.bytes > 0 {
            return exit
                .next("run the same command to resume the export")
                .next(restart_hint(&self.path, &self.resume));
        }
        for path in [&self.path, &self.resume] {
            let _left = std::fs::remove_file(path);
        }
        exit
    }
}

impl Resume {
    fn of(progress: &Progress, bytes: u64) -> Self {
        Self {
            token: progress.token.clone(),
            bytes,
            records: progress.records,
            export_time: progress.time.map(|time| time.to_string()),
        }
    }
}

fn restart_hint(path: &Path, resume: &Path) -> String {
    cli::client::to_start_again(&path.display(), &resume.display())
}

fn broken(resume: &Path) -> Exit {
    Exit::usage(format!("{} is not a resume file", resume.display()))
}

/// Opens a file of this user. In a folder that others write to, such as /tmp, somebody could have made one of the expected
/// name to read what is exported, or a link that has another file overwritten.
fn own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
    let owner = file.metadata()?.uid();
    let ours = owner == rustix::process::geteuid().as_raw();
    if !ours && owner_of_new(path).ok() != Some(owner) {
        return Err(io::Error::other("it belongs to another user"));
    }
    Ok(file)
}

/// Whom a file belongs to that this user makes beside a path: a folder that is shared over a network may show another user
/// than that of this process.
fn owner_of_new(path: &Path) -> io::Result<u32> {
    Ok(tempfile::tempfile_in(whole_file::folder_of(path))?.metadata()?.uid())
}

/// The path with something behind its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn read(resume: &Path) -> Result<Option<Resume>, Exit> {
    use std::io::Read as _;
    let file = match own(resume, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(crate::args::files::unreadable(resume, &error)),
    };
    let mut text = String::new();
    file.take(RESUME_BYTES_MAX).read_to_string(&mut text).map_err(|_| broken(resume))?;
    serde_json::from_str(&text).map(Some).map_err(|_| broken(resume))
}

fn write(path: &Path, resume: &Resume) -> Result<(), Exit> {
    let text = serde_json::to_vec(resume).map_err(anyhow::Error::from)?;
    Ok(whole_file::replace(path, &text).with_context(|| format!("failed to write {}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    #[test]
    fn a_file_of_another_user_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "ours").unwrap();
        let opened = || own(&path, OpenOptions::new().read(true));
        opened().unwrap();
        let ours = path.metadata().unwrap().uid();
        assert_eq!(owner_of_new(&path).unwrap(), ours);
        // Only root can give a file away.
        if chown(&path, Some(ours + 1), None).is_ok() {
            assert_eq!(opened().unwrap_err().to_string(), "it belongs to another user");
        }
    }
}
