//! What the definitions of several formats have in common: their names, and their largest size.

use switchward_machine::Machine;
use switchward_machine::limits::{MACHINE_BYTES_MAX, NAME_BYTES_MAX};

use crate::codes::{MACHINE_TOO_LARGE, NAME};
use crate::document::Node;
use crate::limits::PROCESS_NAME_BYTES_MAX;
use crate::{Finding, Report, quoted, shape};

/// The names that the definitions of a format can have. No name is empty, has a control character, or has a `/`, which is
/// between the parts of a resource's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Lower-case letters, digits and hyphens, at most [`PROCESS_NAME_BYTES_MAX`] bytes.
    Slug,
    /// Any text without a `/`, at most [`NAME_BYTES_MAX`] bytes.
    Free,
}

impl Naming {
    /// Returns true if a definition can have this name.
    #[must_use]
    pub fn allows(self, name: &str) -> bool {
        let fits = name.chars().all(|c| self.has(c));
        !name.is_empty() && name.len() <= self.bytes_max() && fits && !name.chars().any(char::is_control)
    }

    /// Returns true if a name can have this character; control characters are not looked at.
    pub(crate) fn has(self, c: char) -> bool {
        match self {
            Self::Slug => c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
            Self::Free => c != '/',
        }
    }

    fn bytes_max(self) -> usize {
        match self {
            Self::Slug => PROCESS_NAME_BYTES_MAX,
            Self::Free => NAME_BYTES_MAX,
        }
    }

    /// Why a name has a character that it cannot have.
    fn rule(self) -> &'static str {
        match self {
            Self::Slug => "may hold lower-case letters, digits and hyphens only",
            Self::Free => "may hold any characters but `/` and control characters",
        }
    }
}

/// The name of a definition whose format has this rule; `what` names it in findings.
pub(crate) fn named<'a>(node: &'a Node, what: &str, naming: Naming, report: &mut Report) -> Option<&'a str> {
    let name = shape::name(node, what, naming.bytes_max(), report)?;
    if naming.allows(name) {
        return Some(name);
    }
    let message = format!("{what} {}, and is {}", naming.rule(), quoted(name));
    report.add(Finding::new(NAME, node.span, message).nearest(mended(name, naming)));
    None
}

/// A name that can be used instead; `None` for a text of mostly other characters, which is close to no name.
fn mended(name: &str, naming: Naming) -> Option<String> {
    let lower = match naming {
        Naming::Slug => name.to_ascii_lowercase(),
        Naming::Free => name.to_owned(),
    };
    let odd = lower.chars().filter(|c| !naming.has(*c)).count();
    (odd <= lower.chars().count() / 3).then(|| lower.replace(|c: char| !naming.has(c), "-"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_and_a_free_name_have_their_characters_and_their_length() {
        for name in ["gate", "a-1", &"a".repeat(PROCESS_NAME_BYTES_MAX)] {
            assert!(Naming::Slug.allows(name) && Naming::Free.allows(name), "{name}");
        }
        let longest = "\u{e4}".repeat(NAME_BYTES_MAX / 2);
        for name in ["Contract Review", "50 % \"off\"", "v1.2", ".", "\u{5408}\u{540c}", "it's", &longest] {
            assert!(!Naming::Slug.allows(name) && Naming::Free.allows(name), "{name}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "a/b", "a\nb", "a\u{7f}", "a\u{85}b", &long] {
            assert!(!Naming::Slug.allows(name) && !Naming::Free.allows(name), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_mended_if_few_of_its_characters_are_odd() {
        assert_eq!(mended("Deploy Gate", Naming::Slug).as_deref(), Some("deploy-gate"));
        assert_eq!(mended("???a", Naming::Slug), None);
        assert_eq!(mended("Sales/EU review", Naming::Free).as_deref(), Some("Sales-EU review"));
    }
}
