//! What the history of a session says of the origin of a reply by mail.

use switchward_state::approval::{CheckedBy, OriginProof, ReplyEvidence};

/// The evidence about the origin of a reply, in a line.
#[must_use]
pub fn reply_evidence(evidence: &ReplyEvidence) -> String {
    let ReplyEvidence { proof, by, dkim, spf, dmarc, hidden_text, reasons } = evidence;
    let proof = match proof {
        OriginProof::Signed => "signed to this address",
        OriginProof::Aligned => "aligned",
        OriginProof::NotAligned => "not aligned",
    };
    let by = match by {
        CheckedBy::Server => "computed",
        CheckedBy::TrustedHost => "reported by a trusted host",
    };
    let checks = format!("dkim={} spf={} dmarc={}", dkim.word(), spf.word(), dmarc.word());
    let hidden = if *hidden_text { ", hidden text" } else { "" };
    let reasons: Vec<&str> = reasons.iter().map(|reason| reason.word()).collect();
    format!("{proof} ({by}): {checks}{hidden} {}", reasons.join(" ")).trim().to_owned()
}
