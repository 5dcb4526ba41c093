//! The checks of a certificate: that of the port, and that of a server of a cluster.

use std::fmt::Display;
use std::path::Path;

/// The remedy if the certificate and the key cannot be used together.
pub const USE_MATCHING_FILES: &str = "both files must be PEM, and the certificate must match the key";
/// The remedy if the dates of a certificate are unknown.
pub const CHECK_VALIDITY: &str = "check whether it is still valid";
/// The remedy if a certificate names no host.
pub const NAME_HOST: &str = "get a certificate with subjectAltName DNS:HOST or IP:ADDRESS";
/// The remedy if clients may not know the issuer.
pub const ADD_ISSUER: &str =
    "add the intermediate certificates to the file; for a private authority, clients need --ca FILE";
/// The remedy if the certificate is that of an authority.
pub const ISSUE_SERVER_CERTIFICATE: &str =
    "issue a server certificate with it, or create it with -addext basicConstraints=critical,CA:FALSE";
/// The remedy if clients refuse the certificate for another reason.
pub const GET_NEW: &str = "get a new server certificate";
/// The remedy if a certificate is not valid today.
pub const REPLACE_NOW: &str = "replace it; nobody accepts it today";
/// The remedy if a certificate ends soon.
pub const REPLACE_SOON: &str = "replace it in time; a new file is used without a restart";

/// The file does not hold a certificate.
#[must_use]
pub fn unparsable(file: &Path) -> String {
    format!("{} cannot be parsed", file.display())
}

/// No client can match the certificate with a host.
#[must_use]
pub fn without_host(file: &Path) -> String {
    format!("{} names no host; clients check only subjectAltName, not the common name", file.display())
}

/// The certificate has dates that no calendar has.
#[must_use]
pub fn unreadable_dates(file: &Path) -> String {
    format!("the dates of {} cannot be read", file.display())
}

/// A client without the issuer's certificate refuses this one.
#[must_use]
pub fn unknown_issuer(file: &Path) -> String {
    format!("this machine does not trust the issuer of {}, and the issuer is not in the file", file.display())
}

/// The certificate may issue others, so it is not for a server.
#[must_use]
pub fn of_authority(file: &Path) -> String {
    format!(
        "{} is a certificate of an authority (CA:TRUE), which clients refuse for a server",
        file.display()
    )
}

/// The verification of a client has failed.
#[must_use]
pub fn refused(file: &Path, error: &impl Display) -> String {
    format!("clients refuse {}: {error}", file.display())
}

/// Today is before the first day or after the last day of a certificate.
#[must_use]
pub fn not_valid_today(file: &Path, from: &str, until: &str) -> String {
    format!("{} is only valid from {from} to {until}", file.display())
}

/// The last day of a certificate.
#[must_use]
pub fn valid_until(file: &Path, until: &str) -> String {
    format!("{} is valid until {until}", file.display())
}

/// After a finding about a certificate: the hosts that it names.
#[must_use]
pub fn with_hosts(finding: &str, hosts: &[String]) -> String {
    format!("{finding}, for {}", hosts.join(", "))
}

/// After a finding about a certificate: the server, and its cluster.
#[must_use]
pub fn with_cluster(finding: &str, server: &impl Display, cluster: &impl Display) -> String {
    format!("{finding}, for {server} of the cluster {cluster}")
}

/// The other servers of the cluster refuse the certificate.
#[must_use]
pub fn of_other_authority(file: &Path, authority: &Path, error: &impl Display) -> String {
    format!("{} is not accepted by the authority of {}: {error}", file.display(), authority.display())
}
