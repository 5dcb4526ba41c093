//! Who is who in a tenant.

use minicbor::{CborLen, Decode, Encode};
use std::mem::replace;

use crate::approval::GateSettings;
use crate::catalogue::directory_index::{Behind, Names};
use crate::catalogue::{DirectoryIndex, DirectoryList, DirectoryWarning, EventBinding};
use crate::limits::{DIRECTORY_DEPTH_MAX, RECIPIENTS_MAX};

/// Who is who in a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Directory {
    /// Names, ordered, and what each stands for. A name may be a person's (`kim`), a group's (`group:release`), or say
    /// whose a process is (`owner:deploy-gate`).
    #[n(0)]
    pub entries: Vec<DirectoryEntry>,
    /// Who is notified if nobody else is named: addresses and names.
    #[n(1)]
    pub audience: Vec<String>,
    /// Which sources may send which events, ordered by definition and key.
    #[cbor(n(2), default, skip_if = "Vec::is_empty")]
    pub event_bindings: Vec<EventBinding>,
    /// What is known of the entries, once they have been asked for. Not stored.
    #[cbor(skip)]
    pub index: DirectoryIndex,
}

/// A name, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct DirectoryEntry {
    /// The name, in lower case.
    #[n(0)]
    pub name: String,
    /// Addresses, and names of other entries.
    #[n(1)]
    pub members: Vec<String>,
    /// What holds for the gates of a definition; of `definition:NAME` and `owner:NAME` alone.
    #[cbor(n(2), default, skip_if = "GateSettings::is_empty")]
    pub settings: GateSettings,
}

impl DirectoryEntry {
    /// The lists of names and addresses that it holds.
    fn lists(&self) -> [&[String]; 3] {
        [&self.members, &self.settings.audience, &self.settings.escalation]
    }
}

impl Directory {
    /// Stands for the directory as it is now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        crate::catalogue::etag(self)
    }

    /// The directory as it is stored: names in lower case and without spaces around them, everything in order.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.index = DirectoryIndex::default();
        for entry in &mut self.entries {
            entry.name = entry.name.trim().to_lowercase();
        }
        self.entries.sort_by(|one, other| one.name.cmp(&other.name));
        self.event_bindings.sort_by_key(|one| (one.definition.clone(), one.event_key.clone()));
        self
    }

    /// What it holds, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = |list: &[String]| list.iter().map(String::len).sum::<usize>();
        let of = |entry: &DirectoryEntry| entry.lists().iter().map(|list| texts(list)).sum::<usize>();
        let entries = self.entries.iter().map(|entry| entry.name.len() + of(entry));
        let bindings = self.event_bindings.iter();
        let bindings = bindings.map(|one| one.definition.len() + one.event_key.len() + texts(&one.sources));
        entries.sum::<usize>() + texts(&self.audience) + bindings.sum::<usize>()
    }

    /// The addresses that a name stands for, each once; empty if there is no such name. Of names that stand for one
    /// another in a cycle, each counts once.
    #[must_use]
    pub fn addresses(&self, name: &str) -> Vec<String> {
        self.led(name).map(str::to_owned).collect()
    }

    /// The same, without copies.
    pub(crate) fn led<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.behind(name).iter().map(move |one| self.text(one))
    }

    /// The addresses of all of these: a name that stands for nobody is taken to be an address itself if it holds an `@`.
    #[must_use]
    pub fn all(&self, names: &[String]) -> Vec<String> {
        self.all_led(names).into_iter().map(str::to_owned).collect()
    }

    /// The same, without copies.
    pub(crate) fn all_led<'a>(&'a self, names: &'a [String]) -> Vec<&'a str> {
        let texts = &self.names().texts;
        let (mut found, mut seen): (Vec<&str>, Vec<bool>) = (Vec::new(), vec![false; texts.len()]);
        for name in names {
            let behind = self.behind(name);
            for one in behind {
                if found.len() < RECIPIENTS_MAX && !replace(&mut seen[one.text], true) {
                    found.push(self.text(one));
                }
            }
            if behind.is_empty() && name.contains('@') && found.len() < RECIPIENTS_MAX {
                let known = match texts.get(&name.to_ascii_lowercase()) {
                    Some(text) => replace(&mut seen[*text], true),
                    None => has(&found, name),
                };
                if !known {
                    found.push(name);
                }
            }
        }
        found
    }

    /// What leads to nobody: names without an address behind them, and members that are neither an address nor a name of
    /// it.
    #[must_use]
    pub fn warnings(&self) -> Vec<DirectoryWarning> {
        let address = |one: &str| one.contains('@') && !one.contains(char::is_whitespace);
        let known = |one: &String| address(one) || self.members(one).is_some();
        let leading = self.leading();
        let mut warnings = Vec::new();
        for (entry, leads) in self.entries.iter().zip(&leading) {
            let name = &entry.name;
            // An entry may be there for its settings alone.
            if !leads && (!entry.members.is_empty() || entry.settings.is_empty()) {
                warnings.push(DirectoryWarning::NoAddress { name: name.clone() });
            }
            for (members, list) in entry.lists().into_iter().zip(DirectoryList::ALL) {
                let unknown = members.iter().filter(|one| !known(one)).cloned();
                warnings.extend(unknown.map(|member| {
                    let name = name.clone();
                    DirectoryWarning::UnknownMember { member, list, name }
                }));
            }
        }
        let leads = |name: &String| name.contains('@') || self.position(name).is_some_and(|at| leading[at]);
        let nobody = self.audience.iter().filter(|name| !leads(name)).cloned();
        warnings.extend(nobody.map(|name| DirectoryWarning::EmptyAudience { name }));
        warnings
    }

    /// Returns for each entry whether it leads to an address, through at most [`DIRECTORY_DEPTH_MAX`] others. Each member
    /// is looked up once: to follow each name by itself takes as many steps as there are members, for each entry.
    fn leading(&self) -> Vec<bool> {
        let mut leads = Vec::with_capacity(self.entries.len());
        let mut below: Vec<Vec<usize>> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let (mut names, mut address) = (Vec::new(), false);
            for member in &entry.members {
                match self.position(member) {
                    Some(at) => names.push(at),
                    None => address |= member.contains('@'),
                }
            }
            below.push(names);
            leads.push(address);
        }
        for _ in 0..DIRECTORY_DEPTH_MAX {
            let reached = below.iter().zip(&leads);
            let next = reached.map(|(names, known)| *known || names.iter().any(|at| leads[*at])).collect();
            leads = next;
        }
        leads
    }

    /// Those of these names and addresses that stand for nobody now.
    pub fn nobody<'a>(&self, names: &'a [String]) -> impl Iterator<Item = &'a str> {
        let gone = |one: &&String| self.all(std::slice::from_ref(*one)).is_empty();
        names.iter().filter(gone).map(String::as_str)
    }

    /// Whether both are one person: the same name or address without regard to case, or a name and an address of that
    /// person.
    #[must_use]
    pub fn same(&self, one: &str, other: &str) -> bool {
        let stands_for =
            |name: &str, address: &str| self.led(name).any(|known| known.eq_ignore_ascii_case(address));
        one.eq_ignore_ascii_case(other) || stands_for(one, other) || stands_for(other, one)
    }

    /// Returns true if this address stands in it: as a member of an entry, or among those who are notified or asked.
    #[must_use]
    pub fn holds(&self, address: &str) -> bool {
        let address = address.trim();
        let listed = || self.names().texts.contains_key(&address.to_ascii_lowercase());
        address.contains('@') && (has(&self.audience, address) || listed())
    }

    /// Returns the entry of this name, compared without regard to case and outer spaces; `None` if there is none.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&DirectoryEntry> {
        self.entries.get(self.position(name)?)
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let name = name.trim().to_lowercase();
        self.entries.binary_search_by(|entry| entry.name.as_str().cmp(&name)).ok()
    }

    fn members(&self, name: &str) -> Option<&[String]> {
        self.entry(name).map(|entry| entry.members.as_slice())
    }

    /// What is known of the entries.
    pub(crate) fn names(&self) -> &Names {
        self.index.names(self)
    }

    /// The addresses behind a name; none if there is no such name.
    pub(crate) fn behind(&self, name: &str) -> &[Behind] {
        self.position(name).map(|at| self.names().behind(at)).unwrap_or_default()
    }

    /// An address as it is written where it was found first.
    fn text(&self, one: &Behind) -> &str {
        &self.entries[one.entry].members[one.nth]
    }
}

fn has(list: &[impl AsRef<str>], one: &str) -> bool {
    list.iter().any(|known| known.as_ref().eq_ignore_ascii_case(one))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A directory of these names and their members.
    pub(crate) fn directory(entries: &[(&str, &[&str])]) -> Directory {
        let entry = |(name, members): &(&str, &[&str])| DirectoryEntry {
            name: (*name).to_owned(),
            members: members.iter().map(|one| (*one).to_owned()).collect(),
            ..DirectoryEntry::default()
        };
        let mut entries: Vec<DirectoryEntry> = entries.iter().map(entry).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Directory { entries, ..Directory::default() }
    }

    #[test]
    fn a_group_stands_for_its_people_each_once() {
        let directory = directory(&[
            ("kim", &["kim@a.example"]),
            ("dana", &["dana@a.example", "dana@home.example"]),
            ("group:release", &["kim", "dana", "KIM", "ops@a.example", "nobody"]),
        ]);
        let release = ["kim@a.example", "dana@a.example", "dana@home.example", "ops@a.example"];
        assert_eq!(directory.addresses("Group:Release"), release);
        assert!(directory.addresses("group:other").is_empty());
        let names = ["x@b.example", "nobody", "kim"].map(str::to_owned);
        assert_eq!(directory.all(&names), ["x@b.example", "kim@a.example"]);
    }

    #[test]
    fn what_leads_to_nobody_is_warned_of() {
        let directory = Directory {
            audience: ["group:none", "ops@a.example"].map(str::to_owned).to_vec(),
            ..directory(&[
                ("a", &["b"]),
                ("b", &["a"]),
                ("group:none", &[]),
                ("group:release", &["kim", "kim@a.example"]),
            ])
        };
        let name = |name: &str| name.to_owned();
        let warnings = [
            DirectoryWarning::NoAddress { name: name("a") },
            DirectoryWarning::NoAddress { name: name("b") },
            DirectoryWarning::NoAddress { name: name("group:none") },
            DirectoryWarning::UnknownMember {
                member: name("kim"),
                list: DirectoryList::Members,
                name: name("group:release"),
            },
            DirectoryWarning::EmptyAudience { name: name("group:none") },
        ];
        assert_eq!(directory.warnings(), warnings);
    }

    #[test]
    fn a_name_without_an_address_is_warned_of_however_many_names_it_leads_to() {
        let names: Vec<String> = (0..1_000).map(|at| format!("n{at:03}")).collect();
        let entry = |at: usize| DirectoryEntry {
            name: names[at].clone(),
            members: (0..100).map(|nth| names[(at * 7 + nth * 13) % names.len()].clone()).collect(),
            ..DirectoryEntry::default()
        };
        let entries = (0..names.len()).map(entry).collect();
        let directory = Directory { entries, audience: names[..100].to_vec(), ..Directory::default() };
        let nobody = names.iter().map(|name| DirectoryWarning::NoAddress { name: name.clone() });
        let missed = names[..100].iter().map(|name| DirectoryWarning::EmptyAudience { name: name.clone() });
        assert_eq!(directory.warnings(), nobody.chain(missed).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_is_warned_of_exactly_if_it_has_no_address() {
        let names: Vec<String> = (0..12).map(|at| format!("n{at:02}")).collect();
        let members: Vec<[&str; 1]> =
            names[1..].iter().map(|next| [next.as_str()]).chain([["kim@a.example"]]).collect();
        let entries = names.iter().zip(&members).map(|(name, members)| (name.as_str(), &members[..]));
        let directory = directory(&entries.collect::<Vec<_>>());
        let without = names.iter().filter(|name| directory.addresses(name).is_empty());
        let expected = without.map(|name| DirectoryWarning::NoAddress { name: name.clone() });
        let expected: Vec<DirectoryWarning> = expected.collect();
        assert_eq!(expected.len(), 3, "names may stand for names, but not without an end");
        assert_eq!(directory.warnings(), expected);
    }

    #[test]
    fn groups_in_a_cycle_come_to_an_end() {
        let directory = directory(&[("a", &["b", "a@x.example"]), ("b", &["a", "b@x.example"])]);
        assert_eq!(directory.addresses("a"), ["b@x.example", "a@x.example"]);
    }
}
