//! Which development cluster runs: a file beside the user's contexts names the one that was started last.

use anyhow::Context as _;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use switchward_store::write_secret;

use super::control::runs;
use super::crew::FOUNDER;
use super::member::Member;
use super::plan::member_file;
use crate::context::Contexts;
use crate::exit::Exit;

/// The file beside the contexts. It has no extension, so it is not read as a context.
const FILE: &str = "dev-cluster";

/// The note that a cluster runs. Dropping it removes the note, unless another cluster was started since.
pub(super) struct Running {
    file: PathBuf,
    folder: PathBuf,
}

impl Running {
    /// Notes that the cluster of this folder runs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn note(folder: &Path) -> anyhow::Result<Self> {
        let contexts = Contexts::of_user()?;
        contexts.make_folder()?;
        let file = contexts.folder().join(FILE);
        write_secret(&file, folder.as_os_str().as_bytes())?;
        Ok(Self { file, folder: folder.to_owned() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if fs::read(&self.file).is_ok_and(|folder| folder == self.folder.as_os_str().as_bytes()) {
            // A note that stays names a folder where nobody listens.
            let _stays = fs::remove_file(&self.file);
        }
    }
}

/// The folder of the cluster that a command is about.
///
/// # Errors
/// None is named, and none was started.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Exit> {
    if let Some(folder) = named {
        return Ok(folder.to_owned());
    }
    let file = Contexts::of_user()?.folder().join(FILE);
    match fs::read(&file) {
        Ok(folder) => Ok(PathBuf::from(OsString::from_vec(folder))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(none_runs()),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display()))?,
    }
}

/// The number of the server at this address, such as `http://127.0.0.1:7400`, if it is one of the development cluster that
/// runs; `None` if it is none of its servers, or if no cluster runs.
pub(crate) fn server_at(address: &str) -> Option<u64> {
    let folder = find(None).ok().filter(|folder| runs(folder))?;
    server_in(&folder, address)
}

fn server_in(folder: &Path, address: &str) -> Option<u64> {
    let address = address.strip_prefix("http://")?.replace("localhost", "127.0.0.1");
    let address: SocketAddr = address.parse().ok()?;
    let mut servers =
        (FOUNDER..).map_while(|number| Some((number, Member::read(&member_file(folder, number)).ok()?)));
    servers.find(|(_, member)| member.listen == address).map(|(number, _)| number)
}

/// The error of a command that finds no cluster.
pub(super) fn none_runs() -> Exit {
    Exit::unreachable("no development cluster runs").next("switchward dev --servers 3    starts one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(listen: &str) -> String {
        let cluster = r#"{"server": 1, "ca_file": "a", "cert_file": "b", "key_file": "c", "peers": []}"#;
        let redis = r#"{"url": "redis+unix:///a"}"#;
        format!(
            r#"{{"listen": "{listen}", "data_dir": "d", "folder": "f", "keys_file": null, "shards": 1,
                "clock": "manual", "clock_off": null, "allowed_hosts": [], "default_effect": null,
                "cluster": {cluster}, "redis": {redis}}}"#
        )
    }

    #[test]
    fn a_server_of_a_cluster_is_found_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(server_in(folder.path(), "http://127.0.0.1:7400"), None);
        for (number, listen) in [(1, "127.0.0.1:7400"), (2, "127.0.0.1:7401")] {
            fs::write(member_file(folder.path(), number), member(listen)).unwrap();
        }
        assert_eq!(server_in(folder.path(), "http://127.0.0.1:7400"), Some(1));
        assert_eq!(server_in(folder.path(), "http://localhost:7401"), Some(2));
        for other in ["http://127.0.0.1:7402", "https://127.0.0.1:7400", "http://example.org", ""] {
            assert_eq!(server_in(folder.path(), other), None, "{other}");
        }
    }
}
