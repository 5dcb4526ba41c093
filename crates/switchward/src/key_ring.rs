//! The key ring of a server: where its keys come from, and how a ring is made and changed.
//!
//! Looked for in this order: the file that `keys_file` names (or `SWITCHWARD_KEYS_FILE`), the keys themselves in
//! `SWITCHWARD_KEYS`, the credential `switchward-keys` of systemd, and a file beside the data folder, `DIR.keys`. A ring is
//! a text with one key a line, the current one first; lines that begin with `#` are ignored.

mod reseal;

use anyhow::Context as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use switchward_messages::cli::secrets::KEY_RING_COMMENT;
use switchward_shard::KeysMissing;
use switchward_state::seal::RingKey;
use zeroize::Zeroizing;

pub(crate) use reseal::follow;

use crate::output::shell;
use crate::{private, whole_file};

/// The environment's name for the keys themselves.
const VARIABLE: &str = "SWITCHWARD_KEYS";
/// The environment's name for the file, if no configuration is read.
const FILE_VARIABLE: &str = "SWITCHWARD_KEYS_FILE";
/// What systemd calls the ring among the credentials of a service.
const CREDENTIAL: &str = "switchward-keys";
/// A ring's text, bytes.
const TEXT_BYTES_MAX: u64 = 64 * 1024;

/// Where the key ring is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyRingLocation {
    /// In a file that was named: it must be there.
    File(PathBuf),
    /// In a variable of the environment, as text.
    Environment,
    /// In a file beside the data folder, if it exists.
    Beside(PathBuf),
}

impl KeyRingLocation {
    /// Finds the key ring of a server from its configuration and the environment.
    pub(crate) fn find(keys_file: Option<&Path>, data: &Path) -> Self {
        let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(file) =
            keys_file.map(Path::to_path_buf).or_else(|| said(FILE_VARIABLE).map(PathBuf::from))
        {
            return Self::File(file);
        }
        if said(VARIABLE).is_some() {
            return Self::Environment;
        }
        let credential = said("CREDENTIALS_DIRECTORY").map(|folder| Path::new(&folder).join(CREDENTIAL));
        match credential.filter(|file| file.exists()) {
            Some(file) => Self::File(file),
            None => Self::Beside(beside(data)),
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) | Self::Beside(file) => Some(file),
            Self::Environment => None,
        }
    }

    /// The keys, the current one first; none if there is no ring.
    ///
    /// # Errors
    /// A file that was named cannot be read or is open to others, or something in it is no key.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<RingKey>> {
        match self {
            Self::Environment => {
                let text = Zeroizing::new(std::env::var(VARIABLE).unwrap_or_default());
                keys(&text).context(VARIABLE)
            }
            Self::Beside(file) if !file.exists() => Ok(Vec::new()),
            Self::File(file) | Self::Beside(file) => read(file),
        }
    }

    /// The same, but none if a file that was named does not exist yet.
    ///
    /// # Errors
    /// As [`KeyRingLocation::read`].
    pub(crate) fn read_if_there(&self) -> anyhow::Result<Vec<RingKey>> {
        match self.file() {
            Some(file) if !file.exists() => Ok(Vec::new()),
            Some(_) | None => self.read(),
        }
    }

    /// The keys; if there are none yet, a first one is drawn and written to the file.
    ///
    /// # Errors
    /// As [`KeyRingLocation::read`], or the file cannot be written.
    pub(crate) fn read_or_create(&self) -> anyhow::Result<Vec<RingKey>> {
        match self.file() {
            Some(file) if !file.exists() => {
                let key = create(file)?;
                tracing::info!(file = %file.display(), key = %key.id(), "created a key ring");
                Ok(vec![key])
            }
            Some(_) | None => self.read(),
        }
    }
}

/// The file beside a data folder.
fn beside(data: &Path) -> PathBuf {
    let whole = std::path::absolute(data).unwrap_or_else(|_| data.to_path_buf());
    // A path that ends with a slash or a dot names the same folder.
    let mut name = whole.components().as_path().as_os_str().to_owned();
    name.push(".keys");
    PathBuf::from(name)
}

/// The keys of a file.
///
/// # Errors
/// It cannot be read, is open to others, or something in it is no key.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<RingKey>> {
    private::refuse_open_file(file)?;
    let text = text_of(file).with_context(|| format!("keys_file: failed to read {}", file.display()))?;
    keys(&text).with_context(|| format!("keys_file: {}", file.display()))
}

fn text_of(file: &Path) -> std::io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let from = std::io::Read::take(std::fs::File::open(file)?, TEXT_BYTES_MAX);
    std::io::BufRead::lines(std::io::BufReader::new(from)).try_for_each(|line| {
        text.push_str(&Zeroizing::new(line?));
        text.push('\n');
        Ok::<_, std::io::Error>(())
    })?;
    Ok(text)
}

fn keys(text: &str) -> anyhow::Result<Vec<RingKey>> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut keys: Vec<RingKey> = Vec::new();
    for (at, line) in lines {
        let key: RingKey = line.parse().with_context(|| format!("line {}", at + 1))?;
        anyhow::ensure!(
            keys.iter().all(|known| known.id() != key.id()),
            "the key {} is in the file twice",
            key.id()
        );
        keys.push(key);
    }
    anyhow::ensure!(!keys.is_empty(), "the file contains no key");
    Ok(keys)
}

/// Makes a ring of one key.
///
/// # Errors
/// The file is there already, or cannot be written.
pub(crate) fn create(file: &Path) -> anyhow::Result<RingKey> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("failed to examine {}", file.display())),
        Ok(_) => anyhow::bail!("{} already exists", file.display()),
    }
    let key = drawn();
    let text = lines_of(std::slice::from_ref(&key));
    let made = whole_file::create(file, text.as_bytes(), whole_file::PRIVATE);
    made.with_context(|| format!("failed to write {}", file.display()))?;
    Ok(key)
}

/// A new key.
pub(crate) fn drawn() -> RingKey {
    RingKey::of(rand::random())
}

/// Replaces the keys of a ring, the current one first. The server that reads the file must be able to read it still, so its
/// owner and its mode stay.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(file: &Path, keys: &[RingKey]) -> anyhow::Result<()> {
    let written = whole_file::rewrite(file, lines_of(keys).as_bytes());
    written.with_context(|| format!("failed to write {}", file.display()))
}

fn lines_of(keys: &[RingKey]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(format!("# {KEY_RING_COMMENT}\n"));
    for key in keys {
        text.push_str(&key.reveal());
        text.push('\n');
    }
    text
}

/// An error of opening sealed data, with the remedy if the ring lacks a key.
pub(crate) fn explained(error: std::io::Error, location: &KeyRingLocation) -> anyhow::Error {
    let lacks = error.get_ref().is_some_and(|inner| inner.is::<KeysMissing>());
    let error = anyhow::Error::from(error);
    if !lacks {
        return error;
    }
    error.context(lacking(location))
}

/// The remedy if the ring lacks a key.
pub(crate) fn lacking(location: &KeyRingLocation) -> String {
    let message = match location {
        KeyRingLocation::File(file) if !file.exists() => {
            format!("the key ring {} does not exist", file.display())
        }
        KeyRingLocation::File(file) => {
            format!("{} is not the key ring that the secrets are encrypted with", file.display())
        }
        KeyRingLocation::Environment => {
            format!("{VARIABLE} is not the key ring that the secrets are encrypted with")
        }
        KeyRingLocation::Beside(file) if file.exists() => {
            format!("{} is not the key ring that the secrets are encrypted with", file.display())
        }
        KeyRingLocation::Beside(file) => {
            format!("no key ring is configured, and {} does not exist", file.display())
        }
    };
    format!("{message}; set keys_file or {FILE_VARIABLE}")
}

/// Logs that a server has no key ring.
pub(crate) fn warn_without_keys(location: &KeyRingLocation) {
    let file = location.file().map(|file| shell(&file.to_string_lossy())).unwrap_or_default();
    tracing::warn!(
        "there is no key ring: webhook secrets are refused, and mails have no reply address and no decision page; \
         create one with `switchward secrets create {file}` and restart the server"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_ring_is_read_as_it_was_written_and_open_to_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ring.keys");
        let (first, second) = (create(&file).unwrap(), drawn());
        assert!(create(&file).unwrap_err().to_string().ends_with("already exists"));
        write(&file, &[second.clone(), first.clone()]).unwrap();
        let ids: Vec<_> = read(&file).unwrap().iter().map(RingKey::id).collect();
        assert_eq!(ids, [second.id(), first.id()]);
        let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        write(&file, &[second, first]).unwrap();
        assert_eq!(mode(), 0o640, "the group of a server reads it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("mode 644"));
    }

    #[test]
    fn invalid_rings_are_reported_by_line_without_their_keys() {
        let good = drawn().reveal().to_string();
        for (text, expected) in [
            ("", "the file contains no key"),
            ("# nothing\n", "the file contains no key"),
            (&*format!("# a\n\n{good}x"), "line 3"),
            (&*format!("{good}\n{good}"), "twice"),
        ] {
            let error = format!("{:#}", keys(text).unwrap_err());
            assert!(error.contains(expected) && !error.contains(&good[30..]), "{error}");
        }
        assert_eq!(keys(&format!(" {good} \n")).unwrap().len(), 1);
    }

    #[test]
    fn it_stands_beside_the_data_folder() {
        for (data, ring) in [
            ("/srv/data", "/srv/data.keys"),
            ("/srv/data/", "/srv/data.keys"),
            ("/srv/data/.", "/srv/data.keys"),
        ] {
            assert_eq!(beside(Path::new(data)), Path::new(ring), "{data}");
        }
        assert_eq!(
            KeyRingLocation::find(Some(Path::new("a.keys")), Path::new("/srv")),
            KeyRingLocation::File("a.keys".into())
        );
    }
}
