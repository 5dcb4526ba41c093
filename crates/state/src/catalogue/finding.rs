//! What the author of a definition is informed of when it is deployed.

use minicbor::{CborLen, Decode, Encode};

/// A finding about a definition's source.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Finding {
    /// The stable code: `SW1204`.
    #[n(0)]
    pub code: String,
    /// How bad it is: whether it keeps the definition from being deployed.
    #[n(1)]
    pub severity: FindingSeverity,
    /// The file as the author named it.
    #[n(2)]
    pub file: String,
    /// From 1.
    #[n(3)]
    pub line: u32,
    /// In characters, from 1.
    #[n(4)]
    pub column: u32,
    /// What is wrong, for people.
    #[n(5)]
    pub message: String,
    /// The allowed values; not always all of them.
    #[n(6)]
    pub allowed: Vec<String>,
    /// The allowed value that was probably meant.
    #[n(7)]
    pub nearest: Option<String>,
    /// What to do.
    #[n(8)]
    pub hint: Option<String>,
    /// The definition that is called here: the finding holds only if the catalogue lacks it. `None` if it holds in any case.
    #[n(9)]
    pub lacking: Option<String>,
    /// The definition that is called here: the finding holds only if the catalogue has archived it. `None` if it holds in
    /// any case.
    #[n(10)]
    pub archived: Option<String>,
}

/// Whether a finding prevents the deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum FindingSeverity {
    /// The definition cannot be deployed.
    #[n(0)]
    Error,
    /// Probably a mistake.
    #[n(1)]
    Warning,
    /// Worth knowing.
    #[n(2)]
    Notice,
}
