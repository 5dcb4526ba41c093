//! The formats that definitions are written in, and their names.

/// The format of a definition. See `docs/concepts.md#definition-and-version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// A checkpoint process with policy: one JSON or YAML object.
    Checkpoint,
    /// A `PROCESS.md` in a workspace with `pdt.yaml`.
    ProcessMd,
    /// A native process: one JSON or YAML object.
    Native,
    /// A conversation workflow: one JSON or YAML object.
    Conversation,
    /// A process template, `.kno`.
    Kno,
    /// A policy document: one JSON or YAML object, attached to definitions of any other format.
    Policy,
}

impl Format {
    /// Every format, in order.
    pub const ALL: [Self; 6] =
        [Self::Checkpoint, Self::ProcessMd, Self::Native, Self::Conversation, Self::Kno, Self::Policy];

    /// The format's public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::ProcessMd => "process_md",
            Self::Native => "native",
            Self::Conversation => "conversation",
            Self::Kno => "kno",
            Self::Policy => "policy",
        }
    }

    /// The format of this public name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// How the format is recognised, for people.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::Checkpoint => "`initial`, and `states` as a map",
            Self::ProcessMd => "a file named `PROCESS.md` or `pdt.yaml`",
            Self::Native => "`format_version` and `nodes`",
            Self::Conversation => "`transitions`, and `states` as a list",
            Self::Kno => "`type: process-template`",
            Self::Policy => "`policy` as a text, the policy's name",
        }
    }
}
