//! The id of a cluster as a text, and the name of a server in certificates.

use std::fmt::Write as _;

/// Returns the DNS name that a server's certificate must contain: `server-<number>.<cluster>.switchward`, with the cluster
/// id as 32 hexadecimal digits. It is never resolved.
#[must_use]
pub fn server_name(cluster: &[u8; 16], server: u64) -> String {
    format!("server-{server}.{}.switchward", hex(cluster))
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
}
