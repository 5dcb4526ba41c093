//! Guards: conditions on exits.

use minicbor::{CborLen, Decode, Encode};
use switchward_expr::{CmpOp, Logic, Path};

/// A condition over the run's data and over what has happened since its node was entered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Guard {
    /// It always holds.
    #[default]
    #[n(0)]
    Always,
    /// All of them hold; none at all is held to.
    #[n(1)]
    All(#[n(0)] Vec<Guard>),
    /// At least one of them holds.
    #[n(2)]
    Any(#[n(0)] Vec<Guard>),
    /// The data have a value here that is not null.
    #[n(3)]
    Present(#[n(0)] Path),
    /// A value of the data, compared with this JSON.
    #[n(4)]
    Compare {
        /// The value on the left.
        #[n(0)]
        left: Path,
        /// How it is compared.
        #[n(1)]
        op: CmpOp,
        /// JSON.
        #[n(2)]
        right: String,
    },
    /// A tool was called since the node was entered.
    #[n(5)]
    Called {
        /// The capability that was called.
        #[n(0)]
        tool: String,
        /// Whether only a call that worked counts.
        #[n(1)]
        success: bool,
    },
    /// The user's last message came since the node was entered and agrees: it has one of these phrases, or one of the
    /// usual ones if there are none.
    #[n(6)]
    Confirmed(#[n(0)] Vec<String>),
    /// An event of this key has come since the node was entered.
    #[n(7)]
    Seen(#[n(0)] String),
    /// A judge outside says so; asked only if the rest leaves it open.
    #[n(8)]
    Judge {
        /// What is judged, in words.
        #[n(0)]
        rubric: String,
        /// The model that the definition asks for.
        #[n(1)]
        model: String,
    },
    /// An expression over the data holds: paths in it begin at the root of the data.
    #[n(9)]
    Logic(#[n(0)] Logic),
}

impl Guard {
    /// Whether it holds whatever happens, so that it is asked at the end of a turn only.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Always => true,
            Self::All(all) => all.iter().all(Self::is_open),
            Self::Any(any) => any.iter().any(Self::is_open),
            Self::Logic(logic) => logic.is_true(),
            Self::Present(_)
            | Self::Compare { .. }
            | Self::Called { .. }
            | Self::Confirmed(_)
            | Self::Seen(_)
            | Self::Judge { .. } => false,
        }
    }

    /// Whether it asks for an event of this key.
    #[must_use]
    pub fn listens(&self, key: &str) -> bool {
        self.listens_to(&|known| known == key)
    }

    /// Whether it asks for an event, of whatever key.
    #[must_use]
    pub fn listens_to_events(&self) -> bool {
        self.listens_to(&|_| true)
    }

    fn listens_to(&self, wanted: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Seen(known) => wanted(known),
            Self::All(guards) | Self::Any(guards) => guards.iter().any(|guard| guard.listens_to(wanted)),
            Self::Always
            | Self::Present(_)
            | Self::Compare { .. }
            | Self::Called { .. }
            | Self::Confirmed(_)
            | Self::Judge { .. }
            | Self::Logic(_) => false,
        }
    }
}
