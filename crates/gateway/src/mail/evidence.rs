//! What the history of a session says of the origin of a reply.

use switchward_mail::incoming::{Authentication, Check, Proof, ProofReason, Reply};
use switchward_state::approval::{CheckedBy, MailCheck, OriginProof, OriginReason, ReplyEvidence};

/// Returns the evidence about the origin of a reply, for the history.
pub(super) fn of(reply: &Reply, proof: &Authentication) -> ReplyEvidence {
    ReplyEvidence {
        proof: match (proof.is_signed(), proof.aligned) {
            (true, _) => OriginProof::Signed,
            (false, true) => OriginProof::Aligned,
            (false, false) => OriginProof::NotAligned,
        },
        by: match proof.how {
            Proof::Computed => CheckedBy::Server,
            Proof::TrustedHost => CheckedBy::TrustedHost,
        },
        dkim: check(proof.dkim),
        spf: check(proof.spf),
        dmarc: check(proof.dmarc),
        hidden_text: reply.suspicious,
        reasons: proof.detail.iter().copied().map(reason).collect(),
    }
}

/// The result of a check as it is stored.
fn check(check: Check) -> MailCheck {
    match check {
        Check::Pass => MailCheck::Pass,
        Check::Fail => MailCheck::Fail,
        Check::None => MailCheck::None,
        Check::Temporary => MailCheck::Temporary,
    }
}

/// Defines a function that converts each reason into the one of the same name.
macro_rules! reasons {
    ($($name:ident)*) => {
        /// The reason as it is stored.
        fn reason(reason: ProofReason) -> OriginReason {
            match reason { $(ProofReason::$name => OriginReason::$name,)* }
        }
    };
}

reasons! {
    BreaksReader
    Unreadable
    ReadOtherwise
    NotChecked
    TooManySignatures
    NotSigned
    SignatureAmbiguous
    SignatureOfAPart
    WeakSignature
    SignatureOfAnother
    UnknownKeyQuery
    FieldNotSigned
    SignedFieldMissing
    IdentityNotSigned
    ReplyAddressNotSigned
    SignatureMissing
    SignatureBroken
    NoKey
    KeyAmbiguous
    KeyOfAnotherHash
    KeyOfAnotherService
    KeyInTesting
    KeyUnreadable
    WeakKey
    ShortKey
    DnsUnreachable
    DnsTooSlow
    DkimTemporary
    PolicyPassed
    NoPolicy
    NotAligned
    HostPassed
    HostDidNotPass
}
