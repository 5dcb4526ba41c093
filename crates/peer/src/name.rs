//! The id of a cluster as a text, and the names of its processes in certificates.

use std::fmt::{self, Write as _};

use crate::limits::PROCESS_NAME_CHARS_MAX;

/// The last part of every name in certificates.
const DOMAIN: &str = ".switchward";

/// Returns the DNS name that a server's certificate must contain: `server-<number>.<cluster>.switchward`, with the cluster
/// id as 32 hexadecimal digits. It is never resolved.
#[must_use]
pub fn server_name(cluster: &[u8; 16], server: u64) -> String {
    format!("server-{server}.{}.switchward", hex(cluster))
}

/// Who shows a certificate: a server, or a process that holds no data and can never be a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerName {
    /// The server of this number.
    Server(u64),
    /// The gateway of this name: 1 to [`PROCESS_NAME_CHARS_MAX`] of `a-z`, `0-9` and `-`. It passes on calls of clients.
    Gateway(String),
    /// The delivery process of this name, which is made like that of a gateway. It reports what it has delivered, and passes
    /// nothing on.
    Delivery(String),
}

impl PeerName {
    /// Returns a gateway's name; `None` if the text is not one.
    #[must_use]
    pub fn gateway(name: &str) -> Option<Self> {
        process_name(name).map(Self::Gateway)
    }

    /// Returns a delivery process's name; `None` if the text is not one.
    #[must_use]
    pub fn delivery(name: &str) -> Option<Self> {
        process_name(name).map(Self::Delivery)
    }

    /// Returns the DNS name that its certificate must contain: [`server_name`], `gateway-<name>.<cluster>.switchward`, or
    /// `delivery-<name>.<cluster>.switchward`.
    #[must_use]
    pub fn dns(&self, cluster: &[u8; 16]) -> String {
        match self {
            Self::Server(number) => server_name(cluster, *number),
            Self::Gateway(name) => format!("gateway-{name}.{}{DOMAIN}", hex(cluster)),
            Self::Delivery(name) => format!("delivery-{name}.{}{DOMAIN}", hex(cluster)),
        }
    }

    /// Reads a DNS name of a certificate: whose it is, and of which cluster. Returns `None` for any other name.
    #[must_use]
    pub fn read(dns: &str) -> Option<(Self, [u8; 16])> {
        let (own, cluster) = dns.strip_suffix(DOMAIN)?.split_once('.')?;
        let cluster = cluster_id(cluster)?;
        let (kind, name) = own.split_once('-')?;
        let read = match kind {
            "server" => Self::Server(name.parse().ok()?),
            "gateway" => Self::gateway(name)?,
            "delivery" => Self::delivery(name)?,
            _ => return None,
        };
        // One way to write each name.
        (read.dns(&cluster) == dns).then_some((read, cluster))
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(number) => write!(f, "server {number}"),
            Self::Gateway(name) => write!(f, "gateway {name}"),
            Self::Delivery(name) => write!(f, "delivery process {name}"),
        }
    }
}

/// The name of a process that is no server; `None` if the text is not one.
fn process_name(name: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = name.starts_with('-') || name.ends_with('-');
    let valid = (1..=PROCESS_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed) && !edge;
    valid.then(|| name.to_owned())
}

/// Returns true if a host has the form of the names that certificates identify processes of a cluster by, so that a
/// certificate for a host must not contain it.
#[must_use]
pub fn is_reserved_host(host: &str) -> bool {
    host.trim_end_matches('.').to_ascii_lowercase().ends_with(DOMAIN)
}

/// Returns a cluster's id as 32 lower-case hexadecimal digits.
#[must_use]
pub fn cluster_text(cluster: &[u8; 16]) -> String {
    hex(cluster)
}

/// Reads a cluster's id from 32 hexadecimal digits. Returns `None` if the text is anything else.
#[must_use]
pub fn cluster_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(u128::from_str_radix(text, 16).ok()?.to_be_bytes())
}

/// Returns the bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _written = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_text() {
        let id = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        let text = cluster_text(&id);
        assert_eq!(text, "000102030405060708090a0b0c0d0eff");
        assert_eq!(cluster_id(&text), Some(id));
        assert_eq!(cluster_id(&text.to_uppercase()), Some(id));
        for bad in ["", "00", &text[1..], &format!("+{}", &text[1..]), &format!("{text}0")] {
            assert_eq!(cluster_id(bad), None, "{bad}");
        }
        assert_eq!(server_name(&id, 3), "server-3.000102030405060708090a0b0c0d0eff.switchward");
    }

    #[test]
    fn a_name_says_what_kind_of_process_it_is() {
        let id = [0x0a; 16];
        let own = || "edge-1".to_owned();
        for name in [PeerName::Server(12), PeerName::Gateway(own()), PeerName::Delivery(own())] {
            assert_eq!(PeerName::read(&name.dns(&id)), Some((name, id)));
        }
        let text = cluster_text(&id);
        for other in [
            "localhost".to_owned(),
            "server-1".to_owned(),
            format!("server-x.{text}.switchward"),
            format!("server-+1.{text}.switchward"),
            format!("server-01.{text}.switchward"),
            format!("gateway-.{text}.switchward"),
            format!("gateway-a.b.{text}.switchward"),
            format!("gateway--a.{text}.switchward"),
            format!("gateway-A.{text}.switchward"),
            format!("delivery-.{text}.switchward"),
            format!("engine-a.{text}.switchward"),
            "server-1.0a0a.switchward".to_owned(),
        ] {
            assert_eq!(PeerName::read(&other), None, "{other}");
        }
        assert_eq!(PeerName::gateway(&"a".repeat(PROCESS_NAME_CHARS_MAX + 1)), None);
        assert!(is_reserved_host("server-1.0a.SWITCHWARD.") && !is_reserved_host("switchward.example"));
    }
}
