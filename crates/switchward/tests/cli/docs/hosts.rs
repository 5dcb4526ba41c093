//! The addresses of other machines that a page names: each stands for a free port of this machine.

use std::collections::BTreeMap;
use switchward_testkit::free_port;

/// What such an address begins with.
const OTHERS: &str = "10.0.0.";

/// The addresses that a page has named so far, each without its beginning, and the ports that stand for them.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<String, u16>);

impl Hosts {
    /// The text with addresses of this machine. An address without a port stays as it is.
    pub(super) fn here(&mut self, text: &str) -> String {
        let mut parts = text.split(OTHERS);
        let mut here = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(part.len());
            let (address, rest) = part.split_at(end);
            if address.split_once(':').is_some_and(|(host, port)| !host.is_empty() && !port.is_empty()) {
                let port = self.0.entry(address.to_owned()).or_insert_with(free_port);
                here.extend([format!("127.0.0.1:{port}"), rest.to_owned()]);
            } else {
                here.extend([OTHERS, part]);
            }
        }
        here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_port_and_another_one_has_another() {
        let mut hosts = Hosts::default();
        let text = hosts.here("a 10.0.0.5:7401, \"2=10.0.0.6:7401\" 10.0.0.5:7401 10.0.0.5 10.0.0.0/8");
        let ports: Vec<&str> = text.split("127.0.0.1:").skip(1).map(|rest| &rest[..5]).collect();
        let [one, two, again] = ports[..] else { panic!("{text}") };
        assert!(one == again && one != two, "{text}");
        assert!(text.starts_with("a 127.0.0.1:") && text.ends_with(" 10.0.0.5 10.0.0.0/8"), "{text}");
        assert_eq!(hosts.here("10.0.0.6:7401"), format!("127.0.0.1:{two}"));
    }
}
