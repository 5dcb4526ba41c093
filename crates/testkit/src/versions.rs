//! A checker of linearizability for an object that numbers its versions. It searches nothing: the numbers give the order of
//! all changes, so each change gets the earliest moment that the times allow, and the checker compares that with the latest.
//!
//! It shares no code and no idea with [`linearizable`](crate::linearizable), which knows no versions. What is wrong in one of
//! them is found by the other. It also checks what that one cannot: histories of any length. If all outcomes are known, both
//! refuse the same histories; otherwise this one may accept one that the other refuses.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::Operation;

/// What one client learned of an object with versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<V> {
    /// It has made this version.
    Made {
        /// The number of the version.
        version: u64,
        /// What the object holds since then.
        value: V,
    },
    /// It may have made a version.
    Perhaps {
        /// The only version that it can have made; `None` if it can be any.
        version: Option<u64>,
        /// What the object holds since then.
        value: V,
    },
    /// It read this version.
    Read {
        /// The number of the version.
        version: u64,
        /// What it held.
        value: V,
    },
    /// It was refused, because the object was past this version, which somebody had seen before.
    Past {
        /// The number of the version.
        version: u64,
    },
}

/// An object with versions at the beginning.
#[derive(Debug, Clone, Copy)]
pub struct Versioned<V> {
    /// The number of its version.
    pub version: u64,
    /// What it holds.
    pub value: V,
    /// By how much each change raises the number; not 0.
    pub step: u64,
}

/// What is known of one version.
#[derive(Debug, Clone, Copy)]
struct Known<V> {
    value: V,
    /// Whether somebody knows to have made it.
    is_made: bool,
    /// It was made after this moment: when its maker began.
    after: u64,
    /// It was made before this moment: when the first one who has seen it ended.
    before: u64,
    /// It was still the newest one after this moment: when the last one who has seen it began.
    newest_after: u64,
}

/// Checks whether the changes can have happened one after the other in the order of the versions, each at one moment
/// between the beginning and the end of its operation, so that each reader saw the newest version of some moment of its own.
/// The numbers of moments are all different.
///
/// # Errors
/// They cannot: the text says which version or operation does not fit.
pub fn ordered_by_version<V: Copy + PartialEq + Debug>(
    first: &Versioned<V>,
    operations: &[Operation<Seen<V>>],
) -> Result<(), String> {
    let versions = versions(first, operations)?;
    let perhaps: Vec<Perhaps<V>> = operations.iter().filter_map(Perhaps::of).collect();
    count_changes(first, &versions, &perhaps)?;
    let moments = moments(first, &versions, &perhaps)?;
    operations.iter().try_for_each(|operation| past(&moments, &perhaps, operation))
}

/// The earliest moments of a version.
struct Moment {
    version: u64,
    /// It cannot have been made before this.
    earliest: u64,
    /// Neither it nor any earlier one was replaced before this.
    newest_after: u64,
}

/// Gives each version the earliest moment, in their order.
fn moments<V: Copy + PartialEq + Debug>(
    first: &Versioned<V>,
    versions: &BTreeMap<u64, Known<V>>,
    perhaps: &[Perhaps<V>],
) -> Result<Vec<Moment>, String> {
    let mut moments: Vec<Moment> = Vec::new();
    for (version, known) in versions {
        let began = match *version {
            version if version == first.version => Some(0),
            _ if known.is_made => Some(known.after),
            version => first_maker(perhaps, version, known.value),
        };
        let began =
            began.ok_or_else(|| format!("nobody has made version {version} with {:?}", known.value))?;
        let (before, newest) = moments.last().map_or((0, 0), |last| (last.earliest, last.newest_after));
        let earliest = before.max(newest).max(began);
        if earliest > 0 && earliest >= known.before {
            return Err(format!(
                "version {version} was seen before {}, and cannot have been made before {earliest}",
                known.before
            ));
        }
        moments.push(Moment { version: *version, earliest, newest_after: newest.max(known.newest_after) });
    }
    Ok(moments)
}

/// All versions that somebody has seen, the first one included.
fn versions<V: Copy + PartialEq + Debug>(
    first: &Versioned<V>,
    operations: &[Operation<Seen<V>>],
) -> Result<BTreeMap<u64, Known<V>>, String> {
    let unseen = |value| Known { value, is_made: false, after: 0, before: u64::MAX, newest_after: 0 };
    let mut versions = BTreeMap::from([(first.version, unseen(first.value))]);
    for Operation { invoked, returned, what } in operations {
        let (version, value, is_maker) = match *what {
            Seen::Made { version, value } => (version, value, true),
            Seen::Read { version, value } => (version, value, false),
            Seen::Perhaps { .. } | Seen::Past { .. } => continue,
        };
        let after_first = version.checked_sub(first.version).filter(|more| more % first.step == 0);
        if after_first.is_none_or(|more| is_maker && more == 0) {
            return Err(format!("{what:?} is no version after {} by steps of {}", first.version, first.step));
        }
        let known = versions.entry(version).or_insert_with(|| unseen(value));
        if known.value != value {
            return Err(format!("version {version} holds {:?} and {value:?}", known.value));
        }
        if is_maker {
            if known.is_made {
                return Err(format!("version {version} was made twice"));
            }
            (known.is_made, known.after) = (true, *invoked);
        } else {
            known.newest_after = known.newest_after.max(*invoked);
        }
        known.before = known.before.min(returned.unwrap_or(u64::MAX));
    }
    Ok(versions)
}

/// An operation whose outcome is unknown.
struct Perhaps<V> {
    invoked: u64,
    version: Option<u64>,
    value: V,
}

impl<V: Copy + PartialEq> Perhaps<V> {
    fn of(operation: &Operation<Seen<V>>) -> Option<Self> {
        match operation.what {
            Seen::Perhaps { version, value } => Some(Self { invoked: operation.invoked, version, value }),
            Seen::Made { .. } | Seen::Read { .. } | Seen::Past { .. } => None,
        }
    }

    fn can_make(&self, version: u64) -> bool {
        self.version.is_none_or(|only| only == version)
    }
}

/// When the first operation began that may have made this version.
fn first_maker<V: Copy + PartialEq>(perhaps: &[Perhaps<V>], version: u64, value: V) -> Option<u64> {
    let makers = perhaps.iter().filter(|one| one.can_make(version) && one.value == value);
    makers.map(|one| one.invoked).min()
}

/// Each change has one maker: those that nobody knows to have made are no more than the unknown outcomes.
fn count_changes<V: Copy + PartialEq>(
    first: &Versioned<V>,
    versions: &BTreeMap<u64, Known<V>>,
    perhaps: &[Perhaps<V>],
) -> Result<(), String> {
    let last = versions.keys().next_back().map_or(first.version, |version| *version);
    let changes = (last - first.version) / first.step;
    let made = versions.values().filter(|known| known.is_made).count() as u64;
    let unknown = perhaps.len() as u64;
    if changes > made + unknown {
        return Err(format!("{changes} changes were seen, {made} were made, and {unknown} more perhaps"));
    }
    for (version, known) in
        versions.iter().filter(|(version, known)| **version != first.version && !known.is_made)
    {
        let same = |other: &&Known<V>| other.value == known.value && !other.is_made;
        let later = versions.iter().filter(|(other, _)| **other != first.version).map(|(_, other)| other);
        let (seen, makers) =
            (later.filter(same).count(), perhaps.iter().filter(|one| one.value == known.value).count());
        if seen > makers {
            return Err(format!(
                "{seen} versions like {version} have no maker, and there are {makers} perhaps"
            ));
        }
    }
    Ok(())
}

/// Who was refused because the object was past a version, was refused when a later version could be there.
fn past<V: Copy + PartialEq>(
    moments: &[Moment],
    perhaps: &[Perhaps<V>],
    operation: &Operation<Seen<V>>,
) -> Result<(), String> {
    let (Seen::Past { version }, Some(ended)) = (&operation.what, operation.returned) else { return Ok(()) };
    let later = |moment: &Moment| moment.version > *version;
    let seen = moments.iter().any(|moment| later(moment) && moment.earliest < ended);
    let unseen =
        perhaps.iter().any(|one| one.invoked < ended && one.version.is_none_or(|only| only > *version));
    let newest = moments.iter().any(|moment| !later(moment) && moment.newest_after > ended);
    if newest || !(seen || unseen) {
        return Err(format!(
            "somebody was refused before {ended}, when {version} was still the newest version"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
