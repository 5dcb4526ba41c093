//! `switchward cluster certs`: makes an authority, and a certificate for each process.

use anyhow::Context as _;
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use switchward_messages::cli::cluster as texts;
use switchward_peer::certs::{Authority, CertificateError, Validity};
use switchward_peer::{PeerName, cluster_id, cluster_text, is_reserved_host};

use crate::args::{ClusterCerts, Output};
use crate::exit::Exit;
use crate::output::{Printer, count, print};
use crate::whole_file::{self, PRIVATE};

/// For how many days a new authority is valid.
const AUTHORITY_DAYS: u32 = 3_650;
/// The mode of a file that all may read.
const PUBLIC: u32 = 0o644;

const AUTHORITY: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const CLUSTER: &str = "cluster-id";
/// The files of an authority, without which no certificate can be made.
pub(in crate::commands) const AUTHORITY_FILES: [&str; 3] = [AUTHORITY, AUTHORITY_KEY, CLUSTER];

/// A file to write.
struct NewFile {
    path: PathBuf,
    text: String,
    mode: u32,
}

/// Makes the certificates, and prints their files.
pub(super) fn run(certs: &ClusterCerts, output: Output) -> Result<(), Exit> {
    let (cluster, files) = prepare(certs)?;
    write(&certs.dir, &files)?;
    report(&cluster, &files, output)
}

/// Makes the certificates.
///
/// # Errors
/// A file exists already or cannot be written, or the folder has only a part of an authority.
pub(in crate::commands) fn make(certs: &ClusterCerts) -> Result<(), Exit> {
    let (_, files) = prepare(certs)?;
    write(&certs.dir, &files)
}

/// The cluster's id, and everything that must be written.
fn prepare(certs: &ClusterCerts) -> Result<([u8; 16], Vec<NewFile>), Exit> {
    let now = SystemTime::now();
    let names = names(certs)?;
    let mut files = Vec::new();
    let file =
        |name: &str, text: &str, mode| NewFile { path: certs.dir.join(name), text: text.to_owned(), mode };
    let (cluster, authority) = match existing(certs)? {
        Some(existing) => existing,
        None => {
            let cluster = wanted(certs)?.unwrap_or_else(rand::random);
            let authority = Authority::generate(&cluster, Validity { from: now, days: AUTHORITY_DAYS })
                .map_err(explained)?;
            files.push(file(AUTHORITY, authority.cert_pem(), PUBLIC));
            files.push(file(AUTHORITY_KEY, &authority.key_pem(), PRIVATE));
            files.push(file(CLUSTER, &format!("{}\n", cluster_text(&cluster)), PUBLIC));
            (cluster, authority)
        }
    };
    for (stem, name) in names {
        let issued = authority
            .issue(&cluster, &name, &certs.hosts, Validity { from: now, days: certs.days })
            .map_err(explained)?;
        files.push(file(&format!("{stem}.crt"), &issued.cert_pem, PUBLIC));
        files.push(file(&format!("{stem}.key"), &issued.key_pem, PRIVATE));
    }
    Ok((cluster, files))
}

/// Who gets a certificate, each with the name of its files.
fn names(certs: &ClusterCerts) -> Result<Vec<(String, PeerName)>, Exit> {
    if let Some(host) = certs.hosts.iter().find(|host| is_reserved_host(host)) {
        let message = format!("--host {host:?} has the form of the names by which servers know one another");
        return Err(Exit::usage(message).next("set --host to a name by which clients call it"));
    }
    let servers = certs.first..certs.first + certs.servers.unwrap_or(0);
    let mut names: Vec<_> =
        servers.map(|server| (format!("server-{server}"), PeerName::Server(server))).collect();
    for (option, own, made) in [
        ("gateway", &certs.gateways, PeerName::gateway as fn(&str) -> Option<PeerName>),
        ("delivery", &certs.deliveries, PeerName::delivery),
    ] {
        for name in own {
            let named = made(name).ok_or_else(|| {
                Exit::usage(format!(
                    "--{option} {name:?} is not a name: 1 to 40 of a-z, 0-9 and -, not - at an end"
                ))
            })?;
            names.push((format!("{option}-{name}"), named));
        }
    }
    if names.is_empty() {
        return Err(Exit::usage("nothing to do: set --servers NUMBER, --gateway NAME or --delivery NAME"));
    }
    Ok(names)
}

fn explained(error: CertificateError) -> Exit {
    match error {
        CertificateError::Days(_) | CertificateError::Hosts(_) | CertificateError::Host(_) => {
            Exit::usage(error.to_string())
        }
        CertificateError::Other(why) => Exit::failed(anyhow::anyhow!("failed to make a certificate: {why}")),
    }
}

/// The id that the caller wants.
fn wanted(certs: &ClusterCerts) -> Result<Option<[u8; 16]>, Exit> {
    let Some(text) = &certs.cluster else { return Ok(None) };
    let id = cluster_id(text)
        .ok_or_else(|| Exit::usage(format!("{text:?} is not a cluster's id: 32 hexadecimal digits")))?;
    Ok(Some(id))
}

/// The cluster's id and the authority of the folder; `None` if it has none.
fn existing(certs: &ClusterCerts) -> Result<Option<([u8; 16], Authority)>, Exit> {
    let [cert, key, cluster] = AUTHORITY_FILES.map(|name| read(&certs.dir.join(name)));
    let (cert, key, cluster) = match (cert?, key?, cluster?) {
        (None, None, None) => return Ok(None),
        (Some(cert), Some(key), Some(cluster)) => (cert, key, cluster),
        _ => {
            let message = format!(
                "{} has only some of {AUTHORITY}, {AUTHORITY_KEY} and {CLUSTER}",
                certs.dir.display()
            );
            return Err(Exit::conflict(message)
                .next("add the missing files, or set --dir to a new folder")
                .next("after an interrupted command, remove them and the keys beside them"));
        }
    };
    let cluster = cluster_id(cluster.trim())
        .with_context(|| format!("{} contains no cluster's id", certs.dir.join(CLUSTER).display()))?;
    if wanted(certs)?.is_some_and(|wanted| wanted != cluster) {
        let message = format!("{} belongs to the cluster {}", certs.dir.display(), cluster_text(&cluster));
        return Err(Exit::conflict(message).next("set --dir to a new folder, or leave out --cluster"));
    }
    let authority = Authority::from_pem(&cert, &key)
        .with_context(|| format!("failed to read the authority in {}", certs.dir.display()))?;
    Ok(Some((cluster, authority)))
}

fn read(path: &Path) -> Result<Option<String>, Exit> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(anyhow::Error::from(error).context(format!("failed to read {}", path.display())).into())
        }
    }
}

/// Writes all files, or none if one of them exists. Private keys come first: where a certificate is, its key is.
fn write(dir: &Path, files: &[NewFile]) -> Result<(), Exit> {
    if let Some(file) = files.iter().find(|file| file.path.symlink_metadata().is_ok()) {
        let message = format!("{} already exists", file.path.display());
        return Err(Exit::conflict(message).next("remove it to replace it, or set --first to another number"));
    }
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let (keys, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.mode == PRIVATE);
    for NewFile { path, text, mode } in keys.into_iter().chain(others) {
        whole_file::create(path, text.as_bytes(), *mode)
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn report(cluster: &[u8; 16], files: &[NewFile], output: Output) -> Result<(), Exit> {
    let cluster = cluster_text(cluster);
    if output.json() {
        let files: Vec<_> = files.iter().map(|file| file.path.to_string_lossy()).collect();
        return print(&format!("{}\n", json!({ "cluster": cluster, "files": files })));
    }
    let mut text = format!("{}\n", texts::certificates_written(&cluster, &count(files.len(), "file")));
    for file in files {
        let kind = if file.mode == PRIVATE { texts::PRIVATE_KEY } else { "" };
        text.push_str(format!("  {}  {kind}", file.path.display()).trim_end());
        text.push('\n');
    }
    print(&text)?;
    Printer::new(output).advice(&texts::copy_certificates(AUTHORITY, AUTHORITY_KEY));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn certs(dir: &Path) -> ClusterCerts {
        ClusterCerts {
            dir: dir.to_owned(),
            servers: Some(2),
            first: 1,
            gateways: Vec::new(),
            deliveries: Vec::new(),
            hosts: Vec::new(),
            cluster: None,
            days: 10,
        }
    }

    fn made(certs: &ClusterCerts) -> Result<(), String> {
        run(certs, Output::Json).map_err(|exit| exit.message().to_owned())
    }

    fn listed(dir: &Path) -> Vec<String> {
        let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_the_owner_reads_private_keys() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("certs");
        assert_eq!(made(&certs(&dir)), Ok(()));
        let expected = [
            "ca.crt",
            "ca.key",
            "cluster-id",
            "server-1.crt",
            "server-1.key",
            "server-2.crt",
            "server-2.key",
        ];
        assert_eq!(listed(&dir), expected);
        for name in expected.into_iter().filter(|name| name.ends_with(".key")) {
            let mode = fs::metadata(dir.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, PRIVATE, "{name}");
        }
    }

    #[test]
    fn nothing_is_overwritten_and_a_server_can_be_added() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        assert_eq!(made(&certs(dir)), Ok(()));
        let before = fs::read_to_string(dir.join(AUTHORITY)).unwrap();
        let refused = made(&ClusterCerts { first: 2, ..certs(dir) }).unwrap_err();
        assert!(refused.contains("server-2.crt already exists"), "{refused}");
        assert!(!dir.join("server-3.crt").exists(), "nothing is written before everything was checked");
        assert_eq!(made(&ClusterCerts { first: 3, servers: Some(1), ..certs(dir) }), Ok(()));
        assert_eq!(fs::read_to_string(dir.join(AUTHORITY)).unwrap(), before);
        assert!(dir.join("server-3.key").exists());
        fs::remove_file(dir.join(AUTHORITY_KEY)).unwrap();
        let refused = made(&ClusterCerts { first: 4, ..certs(dir) }).unwrap_err();
        assert!(refused.contains("has only some of"), "{refused}");
    }

    #[test]
    fn a_gateway_has_a_certificate_of_its_own_kind() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let gateways = |names: &[&str]| ClusterCerts {
            servers: None,
            gateways: names.iter().map(|&name| name.to_owned()).collect(),
            ..certs(dir)
        };
        assert!(made(&gateways(&[])).unwrap_err().contains("nothing to do"));
        assert!(made(&gateways(&["A"])).unwrap_err().contains("is not a name"));
        let reserved = vec!["server-1.00112233445566778899aabbccddeeff.switchward".to_owned()];
        let forged = ClusterCerts { hosts: reserved, ..gateways(&["edge"]) };
        assert!(made(&forged).unwrap_err().contains("has the form of the names"));
        assert_eq!(listed(dir), Vec::<String>::new());
        assert_eq!(made(&gateways(&["edge", "edge-2"])), Ok(()));
        let pem = fs::read(dir.join("gateway-edge-2.crt")).unwrap();
        let (name, cluster) = switchward_peer::certificate_name(&pem).unwrap();
        assert_eq!(name, PeerName::Gateway("edge-2".to_owned()));
        assert_eq!(format!("{}\n", cluster_text(&cluster)), fs::read_to_string(dir.join(CLUSTER)).unwrap());
    }

    #[test]
    fn what_is_asked_must_fit_the_folder_and_the_limits() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let id = "00112233445566778899aabbccddeeff";
        let with = |cluster: &str| ClusterCerts { cluster: Some(cluster.to_owned()), ..certs(dir) };
        assert!(made(&with("0011")).unwrap_err().contains("is not a cluster's id"));
        assert!(made(&ClusterCerts { hosts: vec!["a b".to_owned()], ..certs(dir) }).is_err());
        assert!(made(&ClusterCerts { days: 0, ..certs(dir) }).is_err());
        assert_eq!(listed(dir), Vec::<String>::new());
        assert_eq!(made(&with(id)), Ok(()));
        assert_eq!(fs::read_to_string(dir.join(CLUSTER)).unwrap(), format!("{id}\n"));
        let other = ClusterCerts { first: 3, ..with("ffffffffffffffffffffffffffffffff") };
        assert!(made(&other).unwrap_err().contains("belongs to the cluster 0011"));
    }
}
