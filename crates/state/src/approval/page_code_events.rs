//! Facts about the codes by which decision pages recognise people.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::OpenId;

/// A fact about the codes by which a decision page recognises a person. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct PageCodeFact {
    /// The number of the gate that the page decides.
    #[n(0)]
    pub gate: OpenId,
    /// Whose page it is: an address.
    #[n(1)]
    pub to: String,
    /// What happened.
    #[n(2)]
    pub step: PageCodeStep,
}

/// What happened to a code of a decision page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PageCodeStep {
    /// It is mailed to the person.
    #[n(0)]
    Sent,
    /// Something else was entered.
    #[n(1)]
    Refused,
    /// It was entered, and is void now.
    #[n(2)]
    Accepted,
}
