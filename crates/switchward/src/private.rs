//! What only the server's user may read.

use rustix::fs::{Mode, StatVfsMountFlags, statvfs};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// Bits of a mode that let others than the owner in.
const NOT_OWNER: u32 = 0o077;
/// Bits of a mode that let others in than the owner and its group.
const OTHERS: u32 = 0o007;

/// A mode that lets in whom it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) mode: u32,
    /// Whether it is on a read-only mount, such as a container's secret: its mode cannot be changed here.
    pub(crate) fixed: bool,
}

/// Makes every file and folder that this process creates from now on its own user's alone.
pub(crate) fn begin() {
    rustix::process::umask(Mode::from_raw_mode(NOT_OWNER));
}

/// The mode of a folder that others than its owner may enter or read.
pub(crate) fn open_folder(path: &Path) -> Option<u32> {
    exceeding(path, NOT_OWNER)
}

/// The mode of a file that others than its owner and its group may read.
pub(crate) fn open_file(path: &Path) -> Option<Open> {
    let mode = exceeding(path, OTHERS).filter(|_| path.is_file())?;
    let fixed = statvfs(path).is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::RDONLY));
    Some(Open { mode, fixed })
}

/// Refuses a file with a secret that everybody on this machine may read. One on a mount that nothing can be written to is
/// only named in the log.
///
/// # Errors
/// The file is open to others, and could be closed.
pub(crate) fn refuse_open_file(path: &Path) -> anyhow::Result<()> {
    judge(path, open_file(path))
}

fn judge(path: &Path, open: Option<Open>) -> anyhow::Result<()> {
    let shown = path.display();
    match open {
        None => Ok(()),
        Some(Open { mode, fixed: true }) => {
            tracing::warn!("everybody on this machine can read {shown} (mode {mode:03o})");
            Ok(())
        }
        Some(Open { mode, fixed: false }) => anyhow::bail!(
            "everybody on this machine can read {shown} (mode {mode:03o}), which holds a secret; chmod 600 it, and replace \
             the secret if others may have read it"
        ),
    }
}

/// The files of a configuration that hold secrets.
pub(crate) fn secret_files(config: &Config) -> Vec<&Path> {
    let mut files: Vec<&PathBuf> = config.tenants.iter().map(|tenant| &tenant.admin_key_file).collect();
    files.extend(config.tls.as_ref().map(|tls| &tls.key_file));
    files.extend(config.delivery.model.as_ref().and_then(|model| model.key_file.as_ref()));
    files.extend(config.redis.as_ref().and_then(|redis| redis.password_file.as_ref()));
    files.extend(&config.keys_file);
    files.extend(config.cluster.as_ref().map(|cluster| &cluster.key_file));
    if let Some(mail) = &config.mail {
        files.extend(mail.secrets());
    }
    files.into_iter().map(PathBuf::as_path).collect()
}

fn exceeding(path: &Path, bits: u32) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.mode();
    (mode & bits != 0).then_some(mode & 0o777)
}

/// The user whom a folder belongs to, if that is somebody else than this process's user.
pub(crate) fn foreign_owner(path: &Path) -> Option<u32> {
    let owner = std::fs::metadata(path).ok()?.uid();
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_that_everybody_reads_is_refused_where_it_could_be_closed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.key");
        std::fs::write(&file, "secret").unwrap();
        let opened_with = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            (open_file(&file), refuse_open_file(&file))
        };
        for mode in [0o600, 0o640, 0o400] {
            let (open, refused) = opened_with(mode);
            assert!(open.is_none() && refused.is_ok(), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o602, 0o666] {
            let (open, refused) = opened_with(mode);
            assert_eq!(open, Some(Open { mode, fixed: false }));
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("a.key") && error.contains(&format!("mode {mode:03o}")), "{error}");
        }
        assert!(
            judge(&file, Some(Open { mode: 0o644, fixed: true })).is_ok(),
            "its mode cannot be changed here"
        );
    }
}
