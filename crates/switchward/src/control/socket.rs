//! Unix sockets in folders, for their owner alone.

use rustix::fs::Mode;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest path that a socket's address takes, bytes; a longer one is reached through a descriptor of its folder.
pub(crate) const PATH_BYTES_MAX: usize = 100;
/// The pause after a connection could not be accepted, usually because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Listens at a socket of this name in a folder. A socket that an earlier process left is replaced, so the caller must know
/// that no other process listens there. Must be called within a Tokio runtime.
///
/// The socket is made in a folder that only its owner may enter, and moved when it has its mode: nobody else can connect at
/// any time, whatever the process's umask and the mode of `folder` are.
///
/// # Errors
/// The socket cannot be made, or cannot replace what has its name.
pub(crate) fn bind(folder: &Path, name: &str) -> io::Result<tokio::net::UnixListener> {
    let owners_only = Permissions::from_mode(0o700);
    let making = tempfile::Builder::new().prefix(".socket-").permissions(owners_only).tempdir_in(folder)?;
    let (address, _folder) = address(making.path(), name)?;
    let listener = UnixListener::bind(address)?;
    let made = making.path().join(name);
    rustix::fs::chmod(&made, Mode::RUSR | Mode::WUSR)?;
    std::fs::rename(made, folder.join(name))?;
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}

/// Accepts the next connection. A failure is logged, and it tries again after a pause: the socket must not become silent
/// because the process has had too many open files for a while.
pub(crate) async fn accept(listener: &tokio::net::UnixListener) -> tokio::net::UnixStream {
    insist(|| async { listener.accept().await.map(|(stream, _)| stream) }).await
}

async fn insist<T, F: Future<Output = io::Result<T>>>(mut accept: impl FnMut() -> F) -> T {
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection at the control socket");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
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

    #[tokio::test(start_paused = true)]
    async fn a_failed_accept_is_tried_again_after_a_pause() {
        let begun = tokio::time::Instant::now();
        let mut left = 3;
        let accepted = insist(|| {
            left -= 1;
            std::future::ready(if left == 0 { Ok("stream") } else { Err(io::Error::other("EMFILE")) })
        });
        assert_eq!(accepted.await, "stream");
        assert_eq!(begun.elapsed(), ACCEPT_PAUSE * 2);
    }

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
            let others = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
            let others = others.filter(|entry| entry.file_name().to_string_lossy().contains("socket"));
            assert_eq!(others.count(), 0, "the folder in which it was made is gone");
            assert!(connect(folder, "x.sock").unwrap().is_some());
            drop(listener);
            assert!(connect(folder, "x.sock").unwrap().is_none(), "nobody listens");
            assert!(bind(folder, "x.sock").is_ok(), "what was left is replaced");
        }
    }
}
