//! Where the values of a run's data come from.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::NodeIx;

use crate::run::Writer;

/// Who wrote a key of the data last, and at what point of the run. Kept where the machine has a schema of its data.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Provenance {
    /// The kind of source.
    #[n(0)]
    pub by: Writer,
    /// The name of the worker, of the caller or of the run below; empty for what the definition itself writes.
    #[n(1)]
    pub who: String,
    /// The node that the run stood at; of a value from before its first node `None`.
    #[n(2)]
    pub node: Option<NodeIx>,
    /// Which entry of the run, from 1; 0 before the first.
    #[n(3)]
    pub entry: u32,
    /// Which attempt of the node's body, from 1.
    #[n(4)]
    pub attempt: u32,
    /// The session's sequence then.
    #[n(5)]
    pub sequence: u64,
}
