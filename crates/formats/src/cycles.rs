//! Cycles of definitions that call each other, and calls of missing definitions. Both show only when several definitions
//! are checked together.

use std::collections::{BTreeMap, BTreeSet};

use crate::codes::{CALL_CYCLE, CALLEE_ABSENT};
use crate::limits::CYCLE_NAMES_MAX;
use crate::{Call, Finding, Report, quoted};

/// A definition and its calls.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    /// The file as the caller named it, for findings.
    pub file: &'a str,
    /// The definition's name, by which others call it.
    pub name: &'a str,
    /// Every call that it makes, in the order of the source.
    pub calls: &'a [Call],
}

/// A finding for each call that closes a cycle, with the index of its definition. The calls are followed in the order of
/// the definitions; the finding is at the cycle's last call.
///
/// If several definitions have one name, only the calls that all of them make count.
#[must_use]
pub fn cycles(definitions: &[Calls<'_>]) -> Vec<(usize, Finding)> {
    let mut called: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in definitions {
        let mut seen = BTreeSet::new();
        let calls: Vec<&str> =
            one.calls.iter().map(|call| call.name.as_str()).filter(|name| seen.insert(*name)).collect();
        match called.get_mut(one.name) {
            Some(known) => known.retain(|name| seen.contains(name)),
            None => {
                called.insert(one.name, calls);
            }
        }
    }
    let mut found = Vec::new();
    let mut over = BTreeSet::new();
    for one in definitions {
        for chain in closed(one.name, &called, &mut over) {
            found.extend(closing_calls(&chain, definitions));
        }
    }
    found
}

/// A finding for each call of a definition that is not among these, with the index of the calling definition.
#[must_use]
pub fn absent(definitions: &[Calls<'_>]) -> Vec<(usize, Finding)> {
    let names: BTreeSet<&str> = definitions.iter().map(|one| one.name).collect();
    let mut found = Vec::new();
    for (at, one) in definitions.iter().enumerate() {
        let mut report = Report::new(one.file);
        for call in one.calls.iter().filter(|call| !names.contains(call.name.as_str())) {
            let others = names.iter().copied().filter(|name| *name != one.name);
            let nearest = report.nearest(&call.name, others);
            let message =
                format!("{} is not among the definitions that are checked together", quoted(&call.name));
            let hint = "it must be in the catalogue when this definition is activated";
            report.add(Finding::new(CALLEE_ABSENT, call.span, message).nearest(nearest).hint(hint));
        }
        found.extend(report.finish().into_iter().map(|finding| (at, finding)));
    }
    found
}

/// A warning for each of these calls for whose name `lacks` returns true.
#[must_use]
pub fn not_in_catalogue(file: &str, calls: &[Call], lacks: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut report = Report::new(file);
    for call in calls.iter().filter(|call| lacks(&call.name)) {
        let message = format!("{} is not in the catalogue", quoted(&call.name));
        let hint = "deploy it before this definition is activated";
        report.add(Finding::new(CALLEE_ABSENT, call.span, message).hint(hint));
    }
    report.finish()
}

/// A warning for each of these calls for whose name `is_archived` returns true.
#[must_use]
pub fn archived_in_catalogue(file: &str, calls: &[Call], is_archived: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut report = Report::new(file);
    for call in calls.iter().filter(|call| is_archived(&call.name)) {
        let message = format!("{} is archived: no session that calls it can start", quoted(&call.name));
        let hint = "unarchive it, or call another definition";
        report.add(Finding::new(CALLEE_ABSENT, call.span, message).hint(hint));
    }
    report.finish()
}

/// The cycles found by following the calls from `from`, without definitions that are already in `over`: the names of
/// each, with the first one repeated at the end.
fn closed<'a>(
    from: &'a str,
    called: &BTreeMap<&'a str, Vec<&'a str>>,
    over: &mut BTreeSet<&'a str>,
) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut path: Vec<(&str, usize)> = Vec::new();
    if over.insert(from) {
        path.push((from, 0));
    }
    while let Some((name, next)) = path.last_mut() {
        let to = called.get(name).and_then(|calls| calls.get(*next)).copied();
        *next += 1;
        let Some(to) = to else {
            path.pop();
            continue;
        };
        if let Some(begins) = path.iter().position(|(name, _)| *name == to) {
            found.push(path[begins..].iter().map(|(name, _)| *name).chain([to]).collect());
        } else if over.insert(to) {
            path.push((to, 0));
        }
    }
    found
}

/// The call that closes this cycle, in each definition with the caller's name.
fn closing_calls(chain: &[&str], definitions: &[Calls<'_>]) -> Vec<(usize, Finding)> {
    let [.., from, to] = chain else { return Vec::new() };
    let names: Vec<String> = chain.iter().take(CYCLE_NAMES_MAX).map(|name| quoted(name)).collect();
    let message = format!("this call closes a cycle: {}", names.join(" calls "));
    let here = definitions.iter().enumerate().filter(|(_, one)| one.name == *from);
    let finding = |(at, one): (usize, &Calls<'_>)| {
        let call = one.calls.iter().find(|call| call.name == **to)?;
        let mut report = Report::new(one.file);
        let hint = "a run of any of them would never end: remove one of these calls";
        report.add(Finding::new(CALL_CYCLE, call.span, message.as_str()).hint(hint));
        Some((at, report.finish().pop()?))
    };
    here.filter_map(finding).collect()
}
