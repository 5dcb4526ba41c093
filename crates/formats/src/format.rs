//! The table of the formats that definitions are written in. A new format is one row here and one value in `proto/`.

use crate::document::Node;
use crate::row::{Compiler, Row, UseAs};
use crate::{checkpoint, conversation, native, policy, recognised};

macro_rules! formats {
    ($($(#[$about:meta])* $name:ident => $row:path,)*) => {
        /// The format of a definition. See `docs/concepts.md#definition-and-version`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Format {
            $($(#[$about])* $name,)*
        }

        impl Format {
            /// Every format, in order.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            fn row(self) -> &'static Row {
                match self {
                    $(Self::$name => &$row,)*
                }
            }
        }
    };
}

formats! {
    /// A checkpoint process with policy: one JSON or YAML object.
    Checkpoint => checkpoint::ROW,
    /// A `PROCESS.md` in a workspace with `pdt.yaml`.
    ProcessMd => recognised::PROCESS_MD,
    /// A native process: one JSON or YAML object.
    Native => native::ROW,
    /// A conversation workflow: one JSON or YAML object.
    Conversation => conversation::ROW,
    /// A process template, `.kno`.
    Kno => recognised::KNO,
    /// A policy document: one JSON or YAML object, attached to definitions of any other format.
    Policy => policy::ROW,
}

impl Format {
    /// The format's public name: lower case, with `_` between words.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The format of this public name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns true if this build compiles the format, and does not only recognise it.
    #[must_use]
    pub fn is_supported(self) -> bool {
        self.compiler().is_some()
    }

    /// What a definition of this format is for; `None` if this build does not compile the format.
    #[must_use]
    pub fn use_as(self) -> Option<UseAs> {
        self.compiler().map(|compiler| compiler.use_as)
    }

    /// How the format is recognised, for people.
    pub(crate) fn marker(self) -> &'static str {
        self.row().marker
    }

    /// Keys of the outermost map that identify the format.
    pub(crate) fn marker_keys(self) -> &'static [&'static str] {
        self.row().marker_keys
    }

    /// Names of files that identify the format.
    pub(crate) fn marker_files(self) -> &'static [&'static str] {
        self.row().marker_files
    }

    /// Returns true if this document is recognised as one of the format.
    pub(crate) fn fits(self, root: &Node) -> bool {
        (self.row().fits)(root)
    }

    /// How sources of the format are compiled; `None` if this build does not.
    pub(crate) fn compiler(self) -> Option<Compiler> {
        self.row().compiler
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own_and_is_recognised_somehow() {
        for format in Format::ALL {
            let name = format.name();
            assert_eq!(Format::named(name), Some(format));
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert!(!format.marker().is_empty(), "{name}");
            assert_eq!(format.is_supported(), format.use_as().is_some(), "{name}");
        }
        assert!(Format::ALL.is_sorted());
        assert_eq!(Format::named("Checkpoint"), None);
    }

    #[test]
    fn what_a_definition_is_for_is_said_by_its_format() {
        assert_eq!(Format::Checkpoint.use_as(), Some(UseAs::Process));
        assert_eq!(Format::Conversation.use_as(), Some(UseAs::Workflow));
        assert_eq!(Format::Policy.use_as(), Some(UseAs::Policy));
        assert_eq!(Format::Kno.use_as(), None);
    }
}
