//! Who does something.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::Role;

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Actor {
    /// The person or program; two keys of one subject are one.
    #[n(0)]
    pub subject: String,
    /// What the credential allows.
    #[n(1)]
    pub role: Role,
}

impl Actor {
    /// The server itself.
    #[must_use]
    pub fn server() -> Self {
        Self { subject: "server".into(), role: Role::Server }
    }
}
