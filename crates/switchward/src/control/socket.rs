//! Unix sockets in folders, for their owner alone.

use rustix::fs::Mode;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest path that a socket's address takes, bytes; a longer one is reached through a descriptor of its folder.
const PATH_BYTES_MAX: usize = 100;

/// Listens at a socket of this name in a folder. A socket that an earlier process left is replaced, so the caller must know
/// that no other process listens there. Must be called within a Tokio runtime.
///
/// # Errors
/// The old socket cannot be removed, or the new one cannot be made.
pub(crate) fn bind(folder: &Path, name: &str) -> io::Result<tokio::net::UnixListener> {
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let (address, _folder) = address(folder, name)?;
    let listener = UnixListener::bind(address)?;
    rustix::fs::chmod(folder.join(name), Mode::RUSR | Mode::WUSR)?;
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}

/// Connects to the socket of this name in a folder; `None` if nobody listens there.
///
/// # Errors
/// The socket cannot be used by this process.
pub(crate) fn connect(folder: &Path, name: &str) -> io::Result<Option<UnixStream>> {
    // A folder that does not exist has no socket.
    let connected = address(folder, name).and_then(|(address, _folder)| UnixStream::connect(address));
    match connected {
        Err(error) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) => Ok(None),
        connected => connected.map(Some),
    }
}

/// The address of the socket, and what must be kept until it was used.
fn address(folder: &Path, name: &str) -> io::Result<(PathBuf, Option<File>)> {
    let path = folder.join(name);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return Ok((path, None));
    }
    let opened = File::open(folder)?;
    let through = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok((Path::new(&through).join(name), Some(opened)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_socket_is_its_owners_also_below_a_long_path() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("a".repeat(90)).join("b".repeat(90));
        std::fs::create_dir_all(&long).unwrap();
        for folder in [folder.path(), &long] {
            assert!(connect(folder, "x.sock").unwrap().is_none());
            let listener = bind(folder, "x.sock").unwrap();
            let mode = std::fs::metadata(folder.join("x.sock")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(connect(folder, "x.sock").unwrap().is_some());
            drop(listener);
            assert!(connect(folder, "x.sock").unwrap().is_none(), "nobody listens");
            assert!(bind(folder, "x.sock").is_ok(), "what was left is replaced");
        }
    }
}
