//! The table of addresses.

use proptest::prelude::*;
use switchward_delivery::DeliveryReason;
use switchward_delivery::guard::{Egress, HostRule, Target, TargetHost, special_range};

pub(crate) const TABLE: &str = include_str!("../addresses.tsv");

pub(crate) fn rules(name: &str) -> Egress {
    let strict = Egress::default();
    match name {
        "strict" => strict,
        "http" => Egress { allow_http: true, ..strict },
        "dev" => Egress { allow_http: true, allow_loopback: true, ..strict },
        "listed" => {
            let hosts = ["example.org", "*.example.net", "8.8.8.8", "10.0.0.1"];
            let hosts = hosts.map(|text| HostRule::read(text).expect("the rule is valid"));
            Egress { allowed_hosts: Some(hosts.into()), ..strict }
        }
        other => panic!("unknown rules {other}"),
    }
}

#[test]
fn every_row_of_the_table_is_judged_as_it_says() {
    let (mut refused, mut allowed, mut wrong) = (0, 0, Vec::new());
    for row in TABLE.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        let [name, expected, url, what] = cells[..] else { panic!("a row has four cells: {row}") };
        let got = match Target::read(url, &rules(name)) {
            Ok(_) => "allowed",
            Err(error) => error.reason.code(),
        };
        if got != expected {
            wrong.push(format!("{row}: {got}"));
        }
        if expected == "allowed" {
            allowed += 1
        } else {
            refused += 1
        }
        if expected == DeliveryReason::AddressRefused.code() && range_of(url) != Some(what) {
            wrong.push(format!("{row}: {:?}", range_of(url)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused >= 90 && allowed >= 15, "{refused} refused, {allowed} allowed");
}

/// The special range of the address that an URL holds.
fn range_of(url: &str) -> Option<&'static str> {
    match url::Url::parse(url).ok()?.host()? {
        url::Host::Domain(_) => None,
        url::Host::Ipv4(address) => special_range(address.into()),
        url::Host::Ipv6(address) => special_range(address.into()),
    }
}

#[test]
fn private_networks_are_opened_for_an_operator_and_nothing_else_with_them() {
    let private = Egress { allow_private: true, ..Egress::default() };
    let opened = ["10.0.0.1", "172.16.0.0", "172.31.255.255", "192.168.0.1", "[fd00::1]"];
    for host in opened {
        assert!(Target::read(&format!("https://{host}/"), &private).is_ok(), "{host}");
        assert!(Target::read(&format!("https://{host}/"), &Egress::default()).is_err(), "{host}");
    }
    let closed = [
        "127.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "172.32.0.1.nip.invalid@10.0.0.1",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
    ];
    for host in closed {
        assert!(Target::read(&format!("https://{host}/"), &private).is_err(), "{host}");
    }
    assert!(Target::read("http://10.0.0.1/", &private).is_err(), "without TLS");
}

#[test]
fn what_is_too_long_is_refused() {
    let reason = |url: &str| Target::read(url, &Egress::default()).err().map(|error| error.reason);
    assert_eq!(reason(&format!("https://example.org/{}", "a".repeat(4_096 - 20))), None);
    assert_eq!(
        reason(&format!("https://example.org/{}", "a".repeat(4_097 - 20))),
        Some(DeliveryReason::UrlInvalid)
    );
    let name = format!("{}com", "abcdefghi.".repeat(25));
    assert_eq!(reason(&format!("https://{name}/")), None);
    assert_eq!(reason(&format!("https://a{name}/")), Some(DeliveryReason::UrlInvalid));
    for char in ["\t", "\n", "\r", "\0", "\u{7f}", "\u{a0}"] {
        let url = format!("https://exam{char}ple.org/");
        assert_eq!(reason(&url), Some(DeliveryReason::UrlInvalid), "{url:?}");
    }
}

#[test]
fn a_target_says_where_it_is() {
    let egress = rules("dev");
    let read = |url: &str| Target::read(url, &egress).map(|target| (target.host(), target.port()));
    assert_eq!(
        read("https://Bücher.example"),
        Ok((TargetHost::Name("xn--bcher-kva.example".to_owned()), 443))
    );
    assert_eq!(read("http://127.1:8080/"), Ok((TargetHost::Address([127, 0, 0, 1].into()), 8080)));
    let target = Target::read("https://example.org/a#b", &egress).expect("the address is allowed");
    assert_eq!(target.url().as_str(), "https://example.org/a");
}

proptest! {
    /// Any text is read or refused, and an address in it that passes is one of the public network.
    #[test]
    fn no_text_gets_past_the_guard(text in any::<String>(), host in "[0-9a-fx.:%\\[\\]@/\\\\-]{0,40}") {
        for url in [text.clone(), format!("https://{text}/"), format!("https://{host}"), format!("https://[{host}]/")] {
            if let Ok(target) = Target::read(&url, &Egress::default())
                && let TargetHost::Address(address) = target.host()
            {
                prop_assert_eq!(special_range(address), None, "{}", url);
            }
        }
    }

    /// However an IPv4 address is spelled, it is judged as that address.
    #[test]
    fn spellings_of_an_address_are_judged_alike(bits in any::<u32>()) {
        let [a, b, c, d] = bits.to_be_bytes();
        let (low, tail) = (bits & 0xff_ffff, bits & 0xffff);
        let expected = Target::read(&format!("https://{a}.{b}.{c}.{d}/"), &Egress::default()).map(|it| it.host());
        let spellings = [
            format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}"), format!("{a}.{low}"), format!("{a}.{b}.{tail}"),
            format!("{a:#x}.0{b:o}.{c}.{d:#X}"), format!("{a}.{b}.{c}.{d}."),
        ];
        for host in spellings {
            let got = Target::read(&format!("https://{host}/"), &Egress::default()).map(|it| it.host());
            prop_assert_eq!(&got, &expected, "{}", host);
        }
        for host in [format!("[::ffff:{a}.{b}.{c}.{d}]"), format!("[::{a}.{b}.{c}.{d}]"), format!("[64:ff9b::{a}.{b}.{c}.{d}]")] {
            let got = Target::read(&format!("https://{host}/"), &Egress::default()).map_err(|error| error.reason);
            prop_assert_eq!(got, Err(DeliveryReason::AddressRefused), "{}", host);
        }
    }
}
