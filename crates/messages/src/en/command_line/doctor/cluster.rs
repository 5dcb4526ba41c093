//! The checks of a server of a cluster by itself: its certificate, its data folder, its peers.

use std::fmt::Display;
use std::path::Path;

/// The remedy if the certificate is not one of the cluster.
pub const MAKE_CERTIFICATES: &str = "make certificates with `switchward cluster certs`";
/// The remedy if the files of the certificate cannot be read.
pub const COPY_CERTIFICATE: &str =
    "the server does not start; copy ca.crt and its own two files to it, readable for its user alone";
/// The remedy if another authority has issued the certificate.
pub const USE_SAME_AUTHORITY: &str = "use the ca.crt of the folder in which the certificate was made";
/// The remedy if the peers cannot be read.
pub const CORRECT_PEERS: &str = "correct cluster.peers";
/// The remedy if the data folder and the certificate belong to two servers.
pub const USE_FILES_OF_ONE_SERVER: &str =
    "the server does not start; use the certificate and the folder of one server";
/// The remedy if the data folder belongs to no cluster.
pub const INIT_OR_JOIN: &str =
    "run `switchward cluster init` on the first server, `switchward cluster join` on any other";
/// The remedy if the data folder does not say to which cluster it belongs.
pub const RESTORE_OR_REPLACE: &str = "restore a backup, or replace this server";

/// The data folder belongs to one server, and the certificate to another one.
#[must_use]
pub fn folder_of_other_server(data: &Path, known: &impl Display, own: &impl Display) -> String {
    format!("the data folder {} belongs to {known}, and the certificate to {own}", data.display())
}

/// The server was neither the first of a cluster, nor has it joined one.
#[must_use]
pub fn folder_of_no_cluster(data: &Path) -> String {
    format!("the data folder {} belongs to no cluster yet", data.display())
}
