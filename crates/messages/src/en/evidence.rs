//! What the history of a session says of the origin of a reply by mail.

/// How far the address in `From` is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderProof {
    /// A signature covers the reply address.
    Signed,
    /// The sending host proves the domain.
    Aligned,
    /// Nothing proves it.
    NotAligned,
}

/// Where the checks of a mail were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedBy {
    /// By the server that took the mail in.
    Server,
    /// By the host that handed the mail over.
    TrustedHost,
}

/// What is known of the origin of a reply.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceFacts<'e> {
    /// How far the sender is proved.
    pub proof: SenderProof,
    /// Where that was checked.
    pub by: CheckedBy,
    /// The results of the checks, as codes.
    pub checks: &'e str,
    /// Whether the mail has text that its reader does not see.
    pub hidden_text: bool,
    /// The codes of the reasons; may be empty.
    pub reasons: &'e str,
}

/// The evidence about the origin of a reply, in a line.
#[must_use]
pub fn reply_evidence(facts: &EvidenceFacts<'_>) -> String {
    let EvidenceFacts { proof, by, checks, hidden_text, reasons } = *facts;
    let proof = match proof {
        SenderProof::Signed => "signed to this address",
        SenderProof::Aligned => "aligned",
        SenderProof::NotAligned => "not aligned",
    };
    let by = match by {
        CheckedBy::Server => "computed",
        CheckedBy::TrustedHost => "reported by a trusted host",
    };
    let hidden = if hidden_text { ", hidden text" } else { "" };
    format!("{proof} ({by}): {checks}{hidden} {reasons}").trim().to_owned()
}
