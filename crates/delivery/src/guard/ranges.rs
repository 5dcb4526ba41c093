//! The IP addresses that are not on the public network.
//!
//! Taken from the IANA registries of special addresses for IPv4 and IPv6, and a few that they do not have.
//! Of IPv6 only 2000::/3 is assigned to the public network, so everything else is refused whether it has a row or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use switchward_state::delivery::AddressProblem;

use super::Refused;
use super::egress::Egress;
use crate::DeliveryReason;

struct V4(Ipv4Addr, u32, &'static str);
struct V6(Ipv6Addr, u32, &'static str);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32, name: &'static str) -> V4 {
    V4(Ipv4Addr::new(a, b, c, d), bits, name)
}

/// `first` are the four groups on the left; `last` the four on the right.
const fn v6(first: [u16; 4], last: [u16; 4], bits: u32, name: &'static str) -> V6 {
    let [a, b, c, d] = first;
    let [e, f, g, h] = last;
    V6(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits, name)
}

const Z: [u16; 4] = [0; 4];

/// The first row that holds an address names it, so the narrower rows stand first.
const RANGES_V4: &[V4] = &[
    v4(0, 0, 0, 0, 32, "unspecified"),
    v4(0, 0, 0, 0, 8, "this network"),
    v4(10, 0, 0, 0, 8, "private"),
    v4(100, 64, 0, 0, 10, "shared by carriers"),
    v4(127, 0, 0, 0, 8, "loopback"),
    v4(168, 63, 129, 16, 32, "platform service"),
    v4(169, 254, 0, 0, 16, "link-local"),
    v4(172, 16, 0, 0, 12, "private"),
    v4(192, 0, 2, 0, 24, "documentation"),
    v4(192, 0, 0, 0, 24, "protocol assignments"),
    v4(192, 88, 99, 0, 24, "6to4 relay"),
    v4(192, 168, 0, 0, 16, "private"),
    v4(198, 18, 0, 0, 15, "benchmarking"),
    v4(198, 51, 100, 0, 24, "documentation"),
    v4(203, 0, 113, 0, 24, "documentation"),
    v4(224, 0, 0, 0, 4, "multicast"),
    v4(255, 255, 255, 255, 32, "broadcast"),
    v4(240, 0, 0, 0, 4, "reserved"),
];

/// As for IPv4, the first row that holds an address names it.
const RANGES_V6: &[V6] = &[
    v6(Z, Z, 128, "unspecified"),
    v6(Z, [0, 0, 0, 1], 128, "loopback"),
    v6(Z, [0, 0xffff, 0, 0], 96, "IPv4-mapped"),
    v6(Z, Z, 96, "IPv4-compatible"),
    v6(Z, [0xffff, 0, 0, 0], 96, "IPv4-translated"),
    v6([0x64, 0xff9b, 0, 0], Z, 96, "NAT64"),
    v6([0x64, 0xff9b, 1, 0], Z, 48, "local NAT64"),
    v6([0x100, 0, 0, 0], Z, 64, "discard"),
    v6([0x100, 0, 0, 1], Z, 64, "dummy"),
    v6([0x2001, 0, 0, 0], Z, 32, "Teredo"),
    v6([0x2001, 2, 0, 0], Z, 48, "benchmarking"),
    v6([0x2001, 0x10, 0, 0], Z, 28, "overlay identifiers"),
    v6([0x2001, 0x20, 0, 0], Z, 28, "overlay identifiers"),
    v6([0x2001, 0, 0, 0], Z, 23, "protocol assignments"),
    v6([0x2001, 0xdb8, 0, 0], Z, 32, "documentation"),
    v6([0x2002, 0, 0, 0], Z, 16, "6to4"),
    v6([0x3fff, 0, 0, 0], Z, 20, "documentation"),
    v6([0x3ffe, 0, 0, 0], Z, 16, "returned test network"),
    v6([0x5f00, 0, 0, 0], Z, 16, "segment routing"),
    v6([0xfc00, 0, 0, 0], Z, 7, "unique local"),
    v6([0xfe80, 0, 0, 0], Z, 10, "link-local"),
    v6([0xfec0, 0, 0, 0], Z, 10, "site-local"),
    v6([0xff00, 0, 0, 0], Z, 8, "multicast"),
];

/// Returns the special range that an address belongs to, or `None` for one of the public network.
#[must_use]
pub fn special_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => RANGES_V4.iter().find(|row| holds_v4(row, address)).map(|row| row.2),
        IpAddr::V6(address) => {
            let named = RANGES_V6.iter().find(|row| holds_v6(row, address)).map(|row| row.2);
            let public = address.segments()[0] & 0xe000 == 0x2000;
            named.or(if public { None } else { Some("reserved") })
        }
    }
}

/// Checks that these rules allow connecting to an IP address.
///
/// # Errors
///
/// [`DeliveryReason::AddressRefused`] for every address of a special range, but for 127.0.0.0/8 and ::1 if the rules allow
/// loopback, and for private networks if they allow those. An IPv4 address embedded in IPv6 stays refused.
pub fn check_address(address: IpAddr, egress: &Egress) -> Result<(), Refused> {
    match special_range(address) {
        None => Ok(()),
        Some(_) if egress.allow_loopback && address.is_loopback() => Ok(()),
        Some("private" | "unique local") if egress.allow_private => Ok(()),
        Some(_) => Err(Refused::new(DeliveryReason::AddressRefused, AddressProblem::NotPublic)),
    }
}

fn holds_v4(row: &V4, address: Ipv4Addr) -> bool {
    (row.0.to_bits() ^ address.to_bits()).leading_zeros() >= row.1
}

fn holds_v6(row: &V6, address: Ipv6Addr) -> bool {
    (row.0.to_bits() ^ address.to_bits()).leading_zeros() >= row.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row's first and last address are in it, and its neighbours are in no row of that prefix.
    #[test]
    fn each_range_begins_and_ends_where_it_says() {
        for row in RANGES_V4 {
            let size = 1_u64 << (32 - row.1);
            let last = Ipv4Addr::from_bits(row.0.to_bits() + u32::try_from(size - 1).expect("below 2^32"));
            assert!(special_range(row.0.into()).is_some(), "{}", row.0);
            assert!(special_range(last.into()).is_some(), "{last}");
            assert!(holds_v4(row, last), "{last}");
            let after = last.to_bits().checked_add(1).map(Ipv4Addr::from_bits);
            assert!(after.is_none_or(|after| !holds_v4(row, after)), "{after:?}");
        }
        for row in RANGES_V6 {
            let last = Ipv6Addr::from_bits(row.0.to_bits() | u128::MAX.checked_shr(row.1).unwrap_or(0));
            assert!(special_range(row.0.into()).is_some(), "{}", row.0);
            assert!(holds_v6(row, last), "{last}");
            let after = last.to_bits().checked_add(1).map(Ipv6Addr::from_bits);
            assert!(after.is_none_or(|after| !holds_v6(row, after)), "{after:?}");
        }
    }
}
