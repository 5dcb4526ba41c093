//! Why a call is decided as it is: facts, which the crate `messages` puts into words.

use minicbor::{CborLen, Decode, Encode};

use crate::policy::{CallProblem, MatchedRule, Shortage};

/// Why a call is decided as it is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CallGrounds {
    /// A person has approved exactly this call, once.
    #[n(0)]
    Approved,
    /// A person must approve it first.
    #[n(1)]
    Ask {
        /// The call's name.
        #[n(0)]
        capability: String,
    },
    /// A rule allows it, or no rule covers it and such calls are allowed.
    #[n(2)]
    Allowed {
        /// The call's name.
        #[n(0)]
        capability: String,
        /// The rule that allows it; `None` if no policy speaks about the call.
        #[n(1)]
        rule: Option<MatchedRule>,
    },
    /// A cap or a limit has no capacity for it.
    #[n(3)]
    Short(#[n(0)] Shortage),
    /// A policy, or what the session is doing, denies it.
    #[n(4)]
    Problem(#[n(0)] CallProblem),
}
