//! What a directory is asked for again and again, found out once: what each member is, and who is behind each name.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::replace;
use std::sync::OnceLock;

use crate::approval::Persons;
use crate::catalogue::Directory;
use crate::limits::{DIRECTORY_DEPTH_MAX, RECIPIENTS_MAX};

/// What is known of the entries of a directory once it has been asked. It is no part of the directory: it is neither stored
/// nor compared, and a copy, whose entries may be changed, begins without it.
#[derive(Default)]
pub struct DirectoryIndex(OnceLock<Box<Known>>);

struct Known {
    names: Names,
    persons: OnceLock<Persons>,
}

impl DirectoryIndex {
    pub(crate) fn names(&self, directory: &Directory) -> &Names {
        &self.known(directory).names
    }

    pub(crate) fn persons(&self, directory: &Directory) -> &Persons {
        self.known(directory).persons.get_or_init(|| Persons::of(directory))
    }

    fn known(&self, directory: &Directory) -> &Known {
        self.0.get_or_init(|| Box::new(Known { names: Names::of(directory), persons: OnceLock::new() }))
    }
}

impl Clone for DirectoryIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for DirectoryIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DirectoryIndex {}

impl fmt::Debug for DirectoryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryIndex")
    }
}

/// What a member of an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    /// The name of the entry at this position.
    Name(usize),
    /// An address; the number of its text.
    Address(usize),
    /// Neither.
    Unknown,
}

/// An address behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The position of the entry that has it as a member.
    pub(crate) entry: usize,
    /// The position among the members.
    pub(crate) nth: usize,
    /// The number of its text: the same for all spellings that differ in case alone.
    pub(crate) text: usize,
}

/// The entries of a directory in numbers, so that no text is looked up twice.
pub(crate) struct Names {
    /// For each entry, what its members are.
    pub(crate) members: Vec<Vec<Member>>,
    /// The numbers of all texts that the lists of entries hold, in lower case.
    pub(crate) texts: BTreeMap<String, usize>,
    /// For each entry, the addresses behind it, once they have been asked for.
    behind: Vec<OnceLock<Vec<Behind>>>,
    /// Members that were looked at to follow names.
    #[cfg(test)]
    looks: std::sync::atomic::AtomicUsize,
}

impl Names {
    fn of(directory: &Directory) -> Self {
        let (mut texts, mut members) = (BTreeMap::new(), Vec::with_capacity(directory.entries.len()));
        for entry in &directory.entries {
            let mut own = Vec::with_capacity(entry.members.len());
            for text in &entry.members {
                let number = number(&mut texts, text);
                own.push(match directory.position(text) {
                    Some(at) => Member::Name(at),
                    None if text.contains('@') => Member::Address(number),
                    None => Member::Unknown,
                });
            }
            members.push(own);
            for text in entry.settings.audience.iter().chain(&entry.settings.escalation) {
                number(&mut texts, text);
            }
        }
        let behind = members.iter().map(|_| OnceLock::new()).collect();
        Self {
            members,
            texts,
            behind,
            #[cfg(test)]
            looks: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// The addresses behind the entry at this position, each once. The entries are followed once.
    pub(crate) fn behind(&self, entry: usize) -> &[Behind] {
        self.behind[entry].get_or_init(|| {
            let (entries, texts) = (vec![false; self.members.len()], vec![false; self.texts.len()]);
            let mut walk = Walk { addresses: Vec::new(), entries, texts };
            self.follow(entry, 0, &mut walk);
            walk.addresses
        })
    }

    fn follow(&self, entry: usize, depth: usize, walk: &mut Walk) {
        let full = walk.addresses.len() >= RECIPIENTS_MAX;
        if full || depth > DIRECTORY_DEPTH_MAX || replace(&mut walk.entries[entry], true) {
            return;
        }
        for (nth, member) in self.members[entry].iter().enumerate() {
            #[cfg(test)]
            self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            match *member {
                Member::Name(next) => self.follow(next, depth + 1, walk),
                Member::Address(text) => walk.add(Behind { entry, nth, text }),
                Member::Unknown => {}
            }
        }
    }
}

/// What was found on the way from one name.
struct Walk {
    addresses: Vec<Behind>,
    /// For each entry, whether it was followed.
    entries: Vec<bool>,
    /// For each text, whether it is among the addresses.
    texts: Vec<bool>,
}

impl Walk {
    fn add(&mut self, one: Behind) {
        if self.addresses.len() < RECIPIENTS_MAX && !replace(&mut self.texts[one.text], true) {
            self.addresses.push(one);
        }
    }
}

/// The number of a text, a new one if it has none.
fn number(texts: &mut BTreeMap<String, usize>, text: &str) -> usize {
    let next = texts.len();
    *texts.entry(text.to_ascii_lowercase()).or_insert(next)
}

#[cfg(test)]
mod tests;
