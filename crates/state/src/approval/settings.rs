//! What is settled about the gates of a definition beside the definition: who is notified, how many approve, who is
//! reminded, who is asked if nobody decides. A start comes before the directory's entry `definition:NAME`, that before
//! `owner:NAME`, and that before the directory's default audience; each setting by itself.

use minicbor::{CborLen, Decode, Encode};

use crate::approval::{Quorum, Reminders};

/// Names of entries that have settings begin with one of these; a definition's name follows.
pub const OF_DEFINITION: &str = "definition:";
/// See [`OF_DEFINITION`].
pub const OF_OWNER: &str = "owner:";

/// What an entry of the directory says of the gates of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct GateSettings {
    /// Who is notified of gates that address nobody: addresses and names; empty: the entry's members.
    #[cbor(n(0), default, skip_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    /// How many of those whom a gate asks must approve.
    #[n(1)]
    pub quorum: Option<Quorum>,
    /// How those who have not decided are reminded.
    #[n(2)]
    pub reminders: Option<Reminders>,
    /// Who is asked, too, if those who were asked do not decide: addresses and names.
    #[cbor(n(3), default, skip_if = "Vec::is_empty")]
    pub escalation: Vec<String>,
}

impl GateSettings {
    /// Returns true if it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
