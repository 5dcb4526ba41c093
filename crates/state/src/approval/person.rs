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

use std::collections::BTreeMap;

use crate::catalogue::Directory;
use crate::catalogue::directory_index::Member;

/// Domains at which dots in a local part do not count, and what they are all called.
const DOTLESS: [&str; 2] = ["gmail.com", "googlemail.com"];

impl Directory {
    /// Whether both are one person.
    #[must_use]
    pub fn one_person(&self, one: &str, other: &str) -> bool {
        if self.same(one, other) {
            return true;
        }
        self.mailboxes(one).meet(&self.mailboxes(other), self.persons())
    }

    fn persons(&self) -> &Persons {
        self.index.persons(self)
    }

    /// Every mailbox to which a name or an address leads, and those of the same person.
    fn mailboxes(&self, of: &str) -> Mailboxes {
        let persons = self.persons();
        let own = mailbox(of);
        let number = own.as_ref().and_then(|own| persons.numbers.get(own)).copied();
        let behind = self.behind(of).iter().filter_map(|one| persons.of_texts[one.text]);
        let mut known: Vec<usize> = behind.chain(number).collect();
        let mut owners: Vec<usize> = known.iter().flat_map(|one| &persons.owners[*one]).copied().collect();
        owners.sort_unstable();
        owners.dedup();
        known.extend(owners.into_iter().flat_map(|owner| &persons.of_entries[owner]));
        Mailboxes { known, unknown: own.filter(|_| number.is_none()) }
    }
}

/// The mailboxes of one person.
struct Mailboxes {
    /// Numbers of those that the directory has, maybe several times.
    known: Vec<usize>,
    /// One that it does not have.
    unknown: Option<String>,
}

impl Mailboxes {
    /// Whether they have a mailbox in common.
    fn meet(&self, other: &Self, persons: &Persons) -> bool {
        if self.unknown.is_some() && self.unknown == other.unknown {
            return true;
        }
        let mut own = vec![false; persons.owners.len()];
        for one in &self.known {
            own[*one] = true;
        }
        other.known.iter().any(|one| own[*one])
    }
}

/// The mailboxes of the people of a directory, in numbers, so that no address is looked at twice.
pub(crate) struct Persons {
    /// The number of each mailbox.
    numbers: BTreeMap<String, usize>,
    /// The mailbox of each text of the directory, both by their numbers; `None` for a text that is not an address.
    of_texts: Vec<Option<usize>>,
    /// For each mailbox, the entries of people that have it, ordered.
    owners: Vec<Vec<usize>>,
    /// For each entry, the mailboxes of its person; empty if it is not a person's.
    of_entries: Vec<Vec<usize>>,
}

impl Persons {
    pub(crate) fn of(directory: &Directory) -> Self {
        let names = directory.names();
        let (mut numbers, mut of_texts) = (BTreeMap::new(), vec![None; names.texts.len()]);
        for (text, at) in &names.texts {
            let next = numbers.len();
            of_texts[*at] = mailbox(text).map(|one| *numbers.entry(one).or_insert(next));
        }
        let mut owners: Vec<Vec<usize>> = vec![Vec::new(); numbers.len()];
        let mut of_entries = Vec::with_capacity(names.members.len());
        for (at, (entry, members)) in directory.entries.iter().zip(&names.members).enumerate() {
            // A name without a colon that holds no other name is taken for a person's.
            let is_person =
                !entry.name.contains(':') && !members.iter().any(|one| matches!(one, Member::Name(_)));
            let mut own: Vec<usize> = Vec::new();
            for member in members.iter().filter(|_| is_person) {
                if let Member::Address(text) = *member {
                    own.extend(of_texts[text]);
                }
            }
            own.sort_unstable();
            own.dedup();
            for one in &own {
                owners[*one].push(at);
            }
            of_entries.push(own);
        }
        Self { numbers, of_texts, owners, of_entries }
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
