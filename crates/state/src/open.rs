//! What every open item has, whatever is open.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{NodeIx, RunId, Time};

/// The entry of a run that an open item belongs to, and since when it is open. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ItemHead {
    /// The run that opened it.
    #[n(0)]
    pub run: RunId,
    /// Where the run stood when it was opened.
    #[n(1)]
    pub node: NodeIx,
    /// Which entry of the run.
    #[n(2)]
    pub entry: u32,
    /// Since when.
    #[n(3)]
    pub at: Time,
    /// The trace (`traceparent`) of what opened it; what follows from it belongs to that, too. A gate has none.
    #[n(4)]
    pub trace: Option<String>,
}

/// Something open that belongs to one entry of one node. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Open<B> {
    /// Where it belongs.
    #[n(0)]
    pub head: ItemHead,
    /// What is open.
    #[n(1)]
    pub body: B,
}
