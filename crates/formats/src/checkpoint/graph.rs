//! States that cannot be reached, and states that cannot be left for good.

use switchward_machine::{Machine, NodeIx, analyse};

use crate::codes::{Code, ENDLESS_STATE, UNREACHABLE_STATE};
use crate::document::Entry;
use crate::{Finding, Report, quoted};

/// Warns at the states' names. `entries` are the states that `machine`'s nodes come from.
pub(super) fn warn(machine: &Machine, entries: &[Entry], report: &mut Report) {
    let found = analyse(machine);
    let mut warn_each = |nodes: &[NodeIx], code: Code, fault: &str| {
        for node in nodes {
            let entry = usize::try_from(node.0).ok().and_then(|at| entries.get(at));
            if let Some((key, _)) = entry {
                let message = format!("the state {} {fault}", quoted(&key.text));
                report.add(Finding::new(code, key.span, message));
            }
        }
    };
    warn_each(
        &found.unreachable,
        UNREACHABLE_STATE,
        "is never reached: no path leads to it from the initial state",
    );
    warn_each(
        &found.endless,
        ENDLESS_STATE,
        "has no way out: no path leads from it to an end of the session",
    );
}
