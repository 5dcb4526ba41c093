//! What the commands say that prepare the certificates and the data folder of a server of a cluster.

use std::path::Path;

/// Beside a file that only its owner may read.
pub const PRIVATE_KEY: &str = "private key";

/// Certificates were made: the count of their files with a noun.
#[must_use]
pub fn certificates_written(cluster: &str, files: &str) -> String {
    format!("cluster {cluster}: wrote {files}")
}

/// What to do with new certificates: the names of the authority's certificate and of its key.
#[must_use]
pub fn copy_certificates(authority: &str, authority_key: &str) -> String {
    format!("copy {authority} and its own two files to each server, and keep {authority_key} away from them")
}

/// A data folder belongs to a server of a cluster from now on.
#[must_use]
pub fn folder_claimed(data: &Path, server: u64, cluster: &str) -> String {
    format!("{} is the folder of server {server} of cluster {cluster}", data.display())
}
