//! Who is one person: a requester must not approve under another spelling of their own address.
//!
//! Two names or addresses are one person if they lead to a mailbox in common:
//!
//! - addresses whose domains and local parts are alike without regard to case;
//! - addresses that differ by what follows a `+` in the local part, which mail servers take for the same mailbox (RFC 5233);
//! - at gmail.com and googlemail.com, which are one domain, also addresses that differ by dots in the local part;
//! - a name of the directory and what it leads to, through other names too;
//! - two addresses of one person's entry: a name without a colon that holds addresses alone.
//!
//! Nothing else shows that two addresses are one mailbox, such as an alias that a mail server alone knows: the directory
//! must say so, by an entry with both.

use crate::catalogue::{Directory, DirectoryEntry};

/// Domains at which dots in a local part do not count, and what they are all called.
const DOTLESS: [&str; 2] = ["gmail.com", "googlemail.com"];

impl Directory {
    /// Whether both are one person.
    #[must_use]
    pub fn one_person(&self, one: &str, other: &str) -> bool {
        if self.same(one, other) {
            return true;
        }
        let (one, other) = (self.mailboxes(one), self.mailboxes(other));
        one.iter().any(|mailbox| other.contains(mailbox))
    }

    /// Every mailbox to which a name or an address leads, and those of the same person.
    fn mailboxes(&self, of: &str) -> Vec<String> {
        let mut found: Vec<String> = self.addresses(of).iter().filter_map(|one| mailbox(one)).collect();
        found.extend(mailbox(of));
        let entries = self.entries.iter().filter(|entry| self.is_person(entry));
        let more: Vec<String> = entries
            .map(|entry| entry.members.iter().filter_map(|one| mailbox(one)).collect::<Vec<_>>())
            .filter(|theirs| theirs.iter().any(|one| found.contains(one)))
            .flatten()
            .collect();
        found.extend(more);
        found
    }

    /// A name without a colon that holds no other name is taken for a person's.
    fn is_person(&self, entry: &DirectoryEntry) -> bool {
        !entry.name.contains(':') && entry.members.iter().all(|member| self.entry(member).is_none())
    }
}

/// The common form of all spellings of an address that lead to one mailbox; `None` if it is not an address.
pub(crate) fn mailbox(address: &str) -> Option<String> {
    let (local, domain) = address.trim().rsplit_once('@')?;
    let (local, domain) = (local.to_lowercase(), domain.trim_end_matches('.').to_lowercase());
    let base = local.split_once('+').map_or(local.as_str(), |(base, _)| base);
    // An address that begins with the separator has no mailbox before it.
    let base = if base.is_empty() { local.as_str() } else { base };
    Some(if DOTLESS.contains(&domain.as_str()) {
        format!("{}@{}", base.replace('.', ""), DOTLESS[0])
    } else {
        format!("{base}@{domain}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::directory::tests::directory;

    #[test]
    fn spellings_of_one_mailbox_are_one_person() {
        let nobody = Directory::default();
        for other in ["kim+x@acme.example", "KIM@Acme.Example", "kim+a+b@acme.example.", " kim@acme.example "]
        {
            assert!(nobody.one_person("kim@acme.example", other), "{other}");
        }
        for other in
            ["kimx@acme.example", "k.im@acme.example", "kim@other.example", "+kim@acme.example", "kim"]
        {
            assert!(!nobody.one_person("kim@acme.example", other), "{other}");
        }
        assert!(nobody.one_person("k.i.m+x@gmail.com", "kim@googlemail.com"));
        assert!(!nobody.one_person("+a@acme.example", "+b@acme.example"));
    }

    #[test]
    fn names_that_lead_to_one_mailbox_are_one_person() {
        let people = directory(&[
            ("boss", &["kim"]),
            ("chief", &["kim+chief@acme.example"]),
            ("kim", &["kim@acme.example", "kim@home.example"]),
            ("sam", &["sam@acme.example"]),
            ("group:release", &["kim", "sam"]),
        ]);
        for (one, other) in [
            ("boss", "kim"),
            ("boss", "chief"),
            ("chief", "kim+x@home.example"),
            ("kim@acme.example", "kim+y@home.example"),
        ] {
            assert!(people.one_person(one, other) && people.one_person(other, one), "{one} {other}");
        }
        for (one, other) in [("sam", "kim"), ("sam@acme.example", "boss"), ("sam", "kim@home.example")] {
            assert!(!people.one_person(one, other) && !people.one_person(other, one), "{one} {other}");
        }
    }
}
