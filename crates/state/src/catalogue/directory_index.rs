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
            let (near, texts) = (self.near(entry), vec![false; self.texts.len()]);
            let mut walk = Walk { addresses: Vec::new(), near, texts };
            self.follow(entry, &mut walk);
            walk.addresses
        })
    }

    /// For each entry, whether this one is it or leads to it, through at most [`DIRECTORY_DEPTH_MAX`] names. The shortest way
    /// counts: on the way that [`follow`](Self::follow) takes, an entry may come later.
    fn near(&self, entry: usize) -> Vec<bool> {
        let mut near = vec![false; self.members.len()];
        near[entry] = true;
        let mut last = vec![entry];
        for _ in 0..DIRECTORY_DEPTH_MAX {
            let mut next = Vec::new();
            for member in last.iter().flat_map(|at| &self.members[*at]) {
                self.looked();
                if let Member::Name(at) = *member
                    && !replace(&mut near[at], true)
                {
                    next.push(at);
                }
            }
            last = next;
        }
        near
    }

    /// Finds the addresses in the order of the members: those behind a name come where the name stands first.
    fn follow(&self, entry: usize, walk: &mut Walk) {
        walk.near[entry] = false;
        // The entries that are being followed, each with the position of its next member.
        let mut open = vec![(entry, 0)];
        while walk.addresses.len() < RECIPIENTS_MAX
            && let Some(last) = open.last_mut()
        {
            let (entry, nth) = *last;
            last.1 += 1;
            let Some(member) = self.members[entry].get(nth) else {
                open.pop();
                continue;
            };
            self.looked();
            match *member {
                Member::Name(next) => {
                    if replace(&mut walk.near[next], false) {
                        open.push((next, 0));
                    }
                }
                Member::Address(text) => walk.add(Behind { entry, nth, text }),
                Member::Unknown => {}
            }
        }
    }

    /// Counts a member that is looked at, for tests.
    fn looked(&self) {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// What was found on the way from one name.
struct Walk {
    addresses: Vec<Behind>,
    /// For each entry, whether it is near enough and still to be followed.
    near: Vec<bool>,
    /// For each text, whether it is among the addresses.
    texts: Vec<bool>,
}

impl Walk {
    fn add(&mut self, one: Behind) {
        if !replace(&mut self.texts[one.text], true) {
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
