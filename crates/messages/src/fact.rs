//! What the engine knows of a gate, beside the words of others.

use switchward_machine::{Machine, Node};
use switchward_state::approval::OpenGate;

/// Something that the engine knows of what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is called.
    pub name: &'static str,
    /// What it is; may have several lines. It has no character that hides or turns others.
    pub value: String,
    /// Whether it is written for machines: arguments, a digest.
    pub code: bool,
}

/// A gate, with what is needed to describe it.
#[derive(Debug, Clone, Copy)]
pub struct GateFacts<'g> {
    /// The gate with what it asks, as it is or was.
    pub open: &'g OpenGate,
    /// The machine of its run.
    pub machine: &'g Machine,
    /// The addresses that no mail about it has reached; `None` if it is closed.
    pub unreached: Option<&'g [String]>,
}

impl<'g> GateFacts<'g> {
    /// The node that the gate belongs to.
    pub(crate) fn node(&self) -> Option<&'g Node> {
        self.machine.node(self.open.head.node)
    }
}

/// Where facts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// In a mail, which shows only the beginning of long arguments.
    Mail,
    /// On a page, which shows everything.
    Page,
}
