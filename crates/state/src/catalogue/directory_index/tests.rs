use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::approval::{GateSettings, mailbox};
use crate::catalogue::DirectoryEntry;

/// What a directory says if each name is followed by its text, without an index.
struct Plain<'a>(&'a Directory);

impl Plain<'_> {
    fn entry(&self, name: &str) -> Option<&DirectoryEntry> {
        let name = plain(name);
        self.0.entries.iter().find(|entry| entry.name == name)
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        let (mut found, mut near) = (Vec::new(), self.near(name));
        self.collect(name, &mut near, &mut found);
        found
    }

    /// What the name leads to through as many names as are followed, and the name.
    fn near(&self, name: &str) -> BTreeSet<String> {
        let mut near = BTreeSet::from([plain(name)]);
        for _ in 0..DIRECTORY_DEPTH_MAX {
            let entries = near.iter().filter_map(|name| self.entry(name));
            let next: Vec<String> = entries.flat_map(|entry| &entry.members).map(|one| plain(one)).collect();
            near.extend(next);
        }
        near
    }

    fn collect(&self, name: &str, near: &mut BTreeSet<String>, found: &mut Vec<String>) {
        let Some(entry) = self.entry(name) else { return };
        if !near.remove(&plain(name)) {
            return;
        }
        for member in &entry.members {
            if self.entry(member).is_some() {
                self.collect(member, near, found);
            } else if member.contains('@') && found.len() < RECIPIENTS_MAX && !has(found, member) {
                found.push(member.clone());
            }
        }
    }

    fn all(&self, names: &[String]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for name in names {
            let mut these = self.addresses(name);
            if these.is_empty() && name.contains('@') {
                these.push(name.clone());
            }
            for one in these {
                if found.len() < RECIPIENTS_MAX && !has(&found, &one) {
                    found.push(one);
                }
            }
        }
        found
    }

    fn holds(&self, address: &str) -> bool {
        let address = address.trim();
        let of = |entry: &DirectoryEntry| {
            let settings = &entry.settings;
            [&entry.members, &settings.audience, &settings.escalation].iter().any(|list| has(list, address))
        };
        address.contains('@') && (self.0.entries.iter().any(of) || has(&self.0.audience, address))
    }

    fn same(&self, one: &str, other: &str) -> bool {
        let stands_for = |name: &str, address: &str| has(&self.addresses(name), address);
        one.eq_ignore_ascii_case(other) || stands_for(one, other) || stands_for(other, one)
    }

    fn one_person(&self, one: &str, other: &str) -> bool {
        let (own, others) = (self.mailboxes(one), self.mailboxes(other));
        self.same(one, other) || own.iter().any(|mailbox| others.contains(mailbox))
    }

    fn mailboxes(&self, of: &str) -> Vec<String> {
        let mut found: Vec<String> = self.addresses(of).iter().filter_map(|one| mailbox(one)).collect();
        found.extend(mailbox(of));
        let is_person = |entry: &&DirectoryEntry| {
            !entry.name.contains(':') && entry.members.iter().all(|member| self.entry(member).is_none())
        };
        let theirs =
            |entry: &DirectoryEntry| entry.members.iter().filter_map(|one| mailbox(one)).collect::<Vec<_>>();
        let people: Vec<Vec<String>> = self.0.entries.iter().filter(is_person).map(theirs).collect();
        let more = people.into_iter().filter(|theirs| theirs.iter().any(|one| found.contains(one)));
        let more: Vec<String> = more.flatten().collect();
        found.extend(more);
        found
    }
}

/// A name as it is compared.
fn plain(name: &str) -> String {
    name.trim().to_lowercase()
}

fn has(list: &[String], one: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(one))
}

/// The name of an entry: every third one is a group's.
fn name(at: usize) -> String {
    if at % 3 == 2 { format!("group:{at}") } else { format!("n{at}") }
}

/// One of 40 texts: names of entries and others, addresses, and other spellings of both.
fn text(number: usize) -> String {
    let small = number % 10;
    match number / 10 {
        0 => name(small),
        1 => format!(" {} ", name(small + 3).to_uppercase()),
        2 => format!("a{}@x.example", small % 7),
        _ => format!("A{}+{small}@X.example", small % 3),
    }
}

/// A directory with these members.
fn directory(lists: &[Vec<usize>], audience: &[usize]) -> Directory {
    let texts = |list: &[usize]| list.iter().map(|number| text(*number)).collect::<Vec<_>>();
    let entry = |list: &Vec<usize>, at: usize| {
        let settings = GateSettings { escalation: texts(&list[..list.len() / 3]), ..GateSettings::default() };
        DirectoryEntry { name: name(at), members: texts(list), settings }
    };
    let entries = lists.iter().enumerate().map(|(at, list)| entry(list, at)).collect();
    Directory { entries, audience: texts(audience), ..Directory::default() }.in_order()
}

proptest! {
    #[test]
    fn an_index_changes_no_answer(
        lists in vec(vec(0_usize..40, 0..6), 0..13),
        audience in vec(0_usize..40, 0..9),
    ) {
        let people = directory(&lists, &audience);
        let plain = Plain(&people);
        prop_assert_eq!(people.all(&people.audience), plain.all(&people.audience));
        for one in (0..40).map(text).chain(["b@x.example", "a1@y.example"].map(str::to_owned)) {
            prop_assert_eq!(people.addresses(&one), plain.addresses(&one), "{}", one);
            prop_assert_eq!(people.holds(&one), plain.holds(&one), "{}", one);
            for other in (0..40).step_by(3).map(text) {
                prop_assert_eq!(people.same(&one, &other), plain.same(&one, &other), "{} {}", one, other);
                let expected = plain.one_person(&one, &other);
                prop_assert_eq!(people.one_person(&one, &other), expected, "{} {}", one, other);
            }
        }
    }
}

/// Entries of these many members, called `n000` and so on; `member` says what stands at a position of one.
fn large(entries: usize, members: usize, member: impl Fn(usize, usize) -> String) -> Directory {
    let entry = |at: usize| {
        let members = (0..members).map(|nth| member(at, nth)).collect();
        DirectoryEntry { name: format!("n{at:03}"), members, ..DirectoryEntry::default() }
    };
    let entries = (0..entries).map(entry).collect();
    Directory { entries, audience: (0..100).map(|at| format!("n{at:03}")).collect(), ..Directory::default() }
}

#[test]
fn no_more_addresses_lead_from_a_name_than_a_message_may_have() {
    for names in [1, 4, 30] {
        let name = |at: usize, nth: usize| format!("n{:03}", (at + nth * 7) % 40);
        let address = |at: usize, nth: usize| format!("p{}@x.example", at * 17 + nth);
        let people = large(40, 60, |at, nth| if nth < names { name(at, nth) } else { address(at, nth) });
        let plain = Plain(&people);
        assert_eq!(people.all(&people.audience), plain.all(&people.audience));
        for name in &people.audience {
            assert_eq!(people.addresses(name), plain.addresses(name), "{name}");
        }
    }
}

/// The first way to a name may be as long as a way can be, so that it leads no further, and the second one short.
#[test]
fn a_name_leads_as_far_as_its_shortest_way_allows() {
    let next = |at: usize| if at < 7 { format!("n{:03}", at + 1) } else { "n010".to_owned() };
    let people = large(12, 2, |at, nth| match (at, nth) {
        (0, 1) => "n010".to_owned(),
        (10, 0) => "n011".to_owned(),
        (11, 0) => "kim@a.example".to_owned(),
        (8.., _) | (_, 1) => "nobody".to_owned(),
        (at, _) => next(at),
    });
    assert_eq!(people.addresses("n000"), ["kim@a.example"]);
    let plain = Plain(&people);
    for name in &people.entries {
        assert_eq!(people.addresses(&name.name), plain.addresses(&name.name), "{}", name.name);
    }
}

#[test]
fn each_name_of_a_large_directory_is_followed_once() {
    let names = 1_000;
    let people = large(names, 100, |at, nth| match (at, nth) {
        (0, 0) => "kim@a.example".to_owned(),
        (at, nth) => format!("n{:03}", (at * 7 + nth * 13) % 1_000),
    });
    let looks = || people.names().looks.load(Ordering::Relaxed);
    assert_eq!(looks(), 0, "the members are read without following any");
    assert_eq!(people.all(&people.audience), ["kim@a.example"]);
    let first = looks();
    // Each of the hundred names costs no more than all members twice.
    assert!(first <= 2 * 100 * names * 100, "{first}");
    for _ in 0..100 {
        assert_eq!(people.all(&people.audience), ["kim@a.example"]);
        let listed = people.listed(&people.audience, &["kim@a.example".to_owned()]);
        assert!(!listed.has_lost("kim@a.example", &people));
        assert!(!people.one_person("kim@a.example", "sam@a.example"));
    }
    assert_eq!(looks(), first, "what is known is not looked for again");
}

#[test]
fn a_changed_copy_is_asked_for_itself() {
    let before = large(1, 1, |_, _| "kim@a.example".to_owned());
    assert_eq!(before.addresses("n000"), ["kim@a.example"]);
    let mut after = before.clone();
    after.entries[0].members[0] = "sam@a.example".to_owned();
    assert_eq!(after.addresses("n000"), ["sam@a.example"]);
    assert!(after.holds("sam@a.example") && !after.holds("kim@a.example"));
    assert_eq!(before, before.clone(), "what is known of it makes no difference");
}
