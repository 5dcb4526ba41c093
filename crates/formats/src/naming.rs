//! What the definitions of several formats have in common: their names, and their largest size.

use switchward_machine::Machine;
use switchward_machine::limits::MACHINE_BYTES_MAX;

use crate::codes::{MACHINE_TOO_LARGE, NAME};
use crate::document::Node;
use crate::limits::PROCESS_NAME_BYTES_MAX;
use crate::{Finding, Report, quoted, shape};

/// Lower-case letters, digits and hyphens.
pub(crate) fn definition_name<'a>(node: &'a Node, report: &mut Report) -> Option<&'a str> {
    named(node, "`name`", report)
}

/// The same at another key.
pub(crate) fn named<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a str> {
    let name = shape::name(node, what, PROCESS_NAME_BYTES_MAX, report)?;
    if is_definition_name(name) {
        return Some(name);
    }
    let message =
        format!("{what} may hold lower-case letters, digits and hyphens only, and is {}", quoted(name));
    let mended = name.to_ascii_lowercase().replace(|c: char| !fits(c), "-");
    // A text of mostly other characters is close to no name.
    let odd = name.chars().filter(|c| !fits(c.to_ascii_lowercase())).count();
    let nearest = (odd <= name.chars().count() / 3).then_some(mended);
    report.add(Finding::new(NAME, node.span, message).nearest(nearest));
    None
}

/// Returns true if a definition can have this name.
pub(crate) fn is_definition_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(fits)
}

fn fits(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// Reports a machine that is too large to be stored; `what` names its source.
pub(crate) fn check_size(machine: &Machine, what: &str, root: &Node, report: &mut Report) {
    let bytes = machine.encode().len();
    if bytes > MACHINE_BYTES_MAX {
        let message =
            format!("{what} compiles to {bytes} bytes, and at most {MACHINE_BYTES_MAX} are allowed");
        report.add(Finding::new(MACHINE_TOO_LARGE, root.span, message));
    }
}
