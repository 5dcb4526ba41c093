//! Backups: the rows of all groups as they were at one moment, in a folder of its own.
//!
//! ```text
//! BACKUP                       the manifest, JSON; written last, so a folder with it is complete
//! group-0000000000000000.snap  one snapshot file a group, that names no position of a log
//! quarantine/<id>.mail         files beside the groups, as they are in the data folder
//! ```
//! A backup holds all that the data folder holds: keys are in it as hashes, what mail tokens and webhooks are signed with
//! as the rows hold it, sealed. It is readable for its owner alone.

mod folder;
mod restore;

use crate::{
    Cut, DataDir, GroupId, Record, StoreError,
    files::{self, entries, failed},
    limits::{BACKUP_FILES_MAX, MANIFEST_BYTES_MAX},
    state::CutRows,
};
pub use folder::BackupFolder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// The form of a manifest.
const FORM: u32 = 1;
/// The manifest's name.
const MANIFEST: &str = "BACKUP";
/// The folder of mail in quarantine, in a backup and in a data folder.
const QUARANTINE: &str = "quarantine";
const WHAT: &str = "backup";
/// How much of a file is read at once, bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// The contents of a backup. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The form of this manifest.
    pub form: u32,
    /// The program that wrote it, such as `switchward 0.1.0`.
    pub program: String,
    /// The id of the backed-up data folder.
    pub data_dir: String,
    /// The time before which everything that was acknowledged is in it, milliseconds since 1970.
    pub taken_ms: u64,
    /// The id of the cluster that the data folder belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The number of shards that the buckets are spread over.
    pub shards: u32,
    /// Its files, in the order in which they were written.
    pub files: Vec<BackupFile>,
}

/// What the manifest says about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its path below the backup's folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// The group whose rows it holds, if it holds rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
    /// The number of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The index of the log entry after which its rows were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The digest of its rows, 64 hexadecimal digits: every replica of the group had it after that entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Receives the files of a backup, one after the other.
pub trait BackupSink {
    /// A file of this name begins.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin(&mut self, name: &str) -> io::Result<()>;

    /// More of the file that was begun last.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The file that was begun last is complete.
    ///
    /// # Errors
    /// If it cannot be synced.
    fn end(&mut self, file: &BackupFile) -> io::Result<()>;
}

/// The facts about a backup that its manifest records beside its files.
#[derive(Debug, Clone)]
pub struct BackupOf {
    /// The program that writes it, such as `switchward 0.1.0`.
    pub program: String,
    /// The time before which everything that was acknowledged is in it, milliseconds since 1970.
    pub taken_ms: u64,
    /// The number of shards that the buckets are spread over.
    pub shards: u32,
}

/// Writes the files of a backup of a data folder: the rows of a cut, and the mail in quarantine as it is now. The
/// caller writes the manifest.
///
/// # Errors
/// If the rows or a mail cannot be read or the sink cannot be written.
pub fn write_backup<R: Record>(
    dir: &DataDir,
    cut: &Cut<R>,
    of: BackupOf,
    sink: &mut dyn BackupSink,
) -> Result<BackupManifest, StoreError> {
    let mut files = Vec::new();
    for group in cut.groups() {
        let name = group_name(group);
        let mut to = begin(sink, &name)?;
        let rows = cut.write(group, Path::new(&name), &mut to)?;
        files.push(to.end(Some((group, rows)))?);
    }
    let mails = dir.path().join(QUARANTINE);
    let mut names: Vec<PathBuf> = if mails.is_dir() { entries(&mails)? } else { Vec::new() };
    names.sort();
    for path in names {
        let Some(name) =
            path.file_name().and_then(|name| name.to_str()).map(|name| format!("{QUARANTINE}/{name}"))
        else {
            continue;
        };
        if !is_ours(&name) {
            continue;
        }
        let mut from = match File::open(&path) {
            // A mail that was deleted meanwhile is not part of the backup.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(failed("open", &path))?,
        };
        let mut to = begin(sink, &name)?;
        io::copy(&mut from, &mut to).map_err(failed("copy", &path))?;
        files.push(to.end(None)?);
    }
    StoreError::check_size("backup manifest of files", files.len(), BACKUP_FILES_MAX)?;
    let BackupOf { program, taken_ms, shards } = of;
    let cluster = dir.identity().cluster.map(|identity| identity.cluster.to_string());
    Ok(BackupManifest {
        form: FORM,
        program,
        data_dir: dir.id().to_owned(),
        taken_ms,
        cluster,
        shards,
        files,
    })
}

fn group_name(group: GroupId) -> String {
    format!("group-{:016x}.snap", group.0)
}

/// Returns true if a backup may have a file of this name, which must not lead out of its folder.
fn is_ours(name: &str) -> bool {
    let plain = |part: &str, ending: &str| {
        let stem = part.strip_suffix(ending).unwrap_or_default();
        !stem.is_empty()
            && stem.len() <= 64
            && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match name.split_once('/') {
        None => name.starts_with("group-") && plain(name, ".snap"),
        Some((folder, rest)) => folder == QUARANTINE && plain(rest, ".mail"),
    }
}

/// A file that is being written to a sink, with its entry for the manifest.
struct Summed<'s> {
    sink: &'s mut dyn BackupSink,
    name: String,
    hash: Sha256,
    bytes: u64,
}

fn begin<'s>(sink: &'s mut dyn BackupSink, name: &str) -> Result<Summed<'s>, StoreError> {
    sink.begin(name).map_err(failed("write", Path::new(name)))?;
    Ok(Summed { sink, name: name.to_owned(), hash: Sha256::new(), bytes: 0 })
}

impl Summed<'_> {
    fn end(self, rows: Option<(GroupId, CutRows)>) -> Result<BackupFile, StoreError> {
        let Self { sink, name, hash, bytes } = self;
        let file = BackupFile {
            name,
            bytes,
            sha256: hex(&hash.finalize()),
            group: rows.as_ref().map(|(group, _)| group.0),
            rows: rows.as_ref().map(|(_, rows)| rows.rows),
            index: rows.as_ref().map(|(_, rows)| rows.index),
            digest: rows.as_ref().map(|(_, rows)| hex(&rows.digest)),
        };
        sink.end(&file).map_err(failed("write", Path::new(&file.name)))?;
        Ok(file)
    }
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A complete backup in a folder.
#[derive(Debug, Clone)]
pub struct Backup {
    folder: PathBuf,
    manifest: BackupManifest,
}

impl Backup {
    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`StoreError::NoBackup`] if the folder has none; [`StoreError::Damaged`] if this program does not write such a
    /// manifest.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(MANIFEST);
        let text = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NoBackup { path: folder.to_path_buf() });
            }
            opened => {
                let mut text = String::new();
                let most = u64::try_from(MANIFEST_BYTES_MAX).unwrap_or(u64::MAX);
                let read = opened.and_then(|file| file.take(most).read_to_string(&mut text));
                read.map_err(failed("read", &path))?;
                text
            }
        };
        let damaged = |detail: String| StoreError::damaged(WHAT, format!("{MANIFEST}: {detail}"));
        let manifest: BackupManifest =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if manifest.form != FORM {
            return Err(damaged(format!("it has the form {}, this program reads {FORM}", manifest.form)));
        }
        if let Some(odd) = manifest.files.iter().find(|file| !is_ours(&file.name)) {
            return Err(damaged(format!("{:?} is not a file of a backup", odd.name)));
        }
        // Not collected: a damaged number may be large.
        let groups = (0..=u64::from(manifest.shards)).map(Some);
        let mut found: Vec<Option<u64>> =
            manifest.files.iter().map(|file| file.group).filter(Option::is_some).collect();
        found.sort_unstable();
        if !found.into_iter().eq(groups) {
            return Err(damaged(format!(
                "it does not contain the rows of exactly {} shards",
                manifest.shards
            )));
        }
        Ok(Self { folder: folder.to_path_buf(), manifest })
    }

    /// The backup's manifest.
    #[must_use]
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// Reads one of its files to its end, and calls `row` with the key and the encoding of each row in it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], naming the file, unless every byte is as it was written; what `row` returns.
    pub fn check(
        &self,
        file: &BackupFile,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
    ) -> Result<(), StoreError> {
        let path = self.folder.join(&file.name);
        let damaged = |detail: &str| StoreError::damaged(WHAT, format!("{}: {detail}", path.display()));
        let mut from = File::open(&path).map_err(failed("open", &path))?;
        let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
        loop {
            let size = from.read(&mut piece).map_err(failed("read", &path))?;
            if size == 0 {
                break;
            }
            hash.update(&piece[..size]);
            bytes += size as u64;
        }
        if bytes != file.bytes {
            return Err(damaged(&format!("it has {bytes} bytes, not {}", file.bytes)));
        }
        if hex(&hash.finalize()) != file.sha256 {
            return Err(damaged("its SHA-256 does not match the manifest"));
        }
        let Some(group) = file.group else { return Ok(()) };
        let snapshot = self.snapshot(file)?;
        let digest = Some(hex(&snapshot.digest()));
        if snapshot.group() != GroupId(group) || Some(snapshot.rows()) != file.rows || digest != file.digest {
            return Err(damaged(
                "its group, the number of its rows or their digest does not match the manifest",
            ));
        }
        snapshot.visit_rows(|key, stored| {
            let encoded = crate::forms::ROW.open(stored)?;
            row(key, encoded).map_err(|detail| damaged(&detail))
        })
    }
}

/// Writes the manifest of a backup into its folder, which completes it.
fn write_manifest(folder: &Path, manifest: &BackupManifest) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(manifest).expect("texts and numbers are JSON");
    text.push(b'\n');
    StoreError::check_size("backup manifest", text.len(), MANIFEST_BYTES_MAX)?;
    files::write_secret(&folder.join(MANIFEST), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_written_as_it_always_was() {
        let snap = BackupFile {
            name: group_name(GroupId(0)),
            bytes: 3,
            sha256: "00".repeat(32),
            group: Some(0),
            rows: Some(1),
            index: Some(41),
            digest: Some("22".repeat(32)),
        };
        let mail = BackupFile {
            name: "quarantine/ab.mail".into(),
            bytes: 2,
            sha256: "11".repeat(32),
            group: None,
            rows: None,
            index: None,
            digest: None,
        };
        let manifest = BackupManifest {
            form: FORM,
            program: "switchward 0.1.0".into(),
            data_dir: "0123".into(),
            taken_ms: 1_700_000_000_000,
            cluster: Some("45".repeat(16)),
            shards: 1,
            files: vec![snap, mail],
        };
        let golden = include_str!("../tests/golden/backup_manifest.v1.json");
        assert_eq!(serde_json::to_string_pretty(&manifest).unwrap(), golden.trim());
        assert_eq!(serde_json::from_str::<BackupManifest>(golden).unwrap(), manifest);
    }

    #[test]
    fn a_damaged_number_of_shards_is_reported_whatever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let golden = include_str!("../tests/golden/backup_manifest.v1.json");
        let damaged = golden.replace("\"shards\": 1", "\"shards\": 4294967295");
        std::fs::write(folder.path().join(MANIFEST), damaged).unwrap();
        let error = Backup::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("the rows of exactly 4294967295 shards"), "{error}");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for good in ["group-0000000000000001.snap", "quarantine/0a1b.mail"] {
            assert!(is_ours(good), "{good}");
        }
        for bad in [
            "",
            "group-../x.snap",
            "quarantine/../a.mail",
            "/etc/passwd",
            "BACKUP",
            "quarantine/.mail",
            "a.snap",
            "x/y.mail",
        ] {
            assert!(!is_ours(bad), "{bad}");
        }
    }
}
