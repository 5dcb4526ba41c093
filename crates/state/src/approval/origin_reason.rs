//! Why the origin of a reply by mail is proved, or is not.

crate::wire::stored_words! {
    /// One reason for what the checks of a mail have shown of its origin.
    OriginReason is "origin reason":
    /// The message makes a reader of mail fail.
    BreaksReader = "breaks_reader",
    /// The headers, or the one sender, cannot be read.
    Unreadable = "unreadable",
    /// Two readers of mail differ about the sender or the body.
    ReadOtherwise = "read_otherwise",
    /// No proof was looked for: the token was never given to the sender.
    NotChecked = "not_asked",
    /// More signatures than are checked.
    TooManySignatures = "too_many_signatures",
    /// No signature counts, and the sending host may not speak for the domain.
    NotSigned = "not_signed",
    /// A signature has a tag twice.
    SignatureAmbiguous = "signature_ambiguous",
    /// A signature covers only the beginning of the body.
    SignatureOfAPart = "signature_of_a_part",
    /// A signature is made with SHA-1.
    WeakSignature = "weak_signature",
    /// A signature is made by a third party for the domain (RFC 6541).
    SignatureOfAnother = "signature_of_another",
    /// A signature names a query for its key that is not known here.
    UnknownKeyQuery = "unknown_key_query",
    /// A signature leaves out a field that it must cover.
    FieldNotSigned = "field_not_signed",
    /// A field that must be covered is not there exactly once.
    SignedFieldMissing = "signed_field_missing",
    /// Neither the message id nor the date is covered.
    IdentityNotSigned = "identity_not_signed",
    /// A signature does not cover the reply address.
    ReplyAddressNotSigned = "reply_address_not_signed",
    /// The message has no signature to which the trusted host can refer.
    SignatureMissing = "signature_not_found",
    /// A signature does not hold.
    SignatureBroken = "signature_broken",
    /// The DNS has no key for a signature.
    NoKey = "no_key",
    /// The record of a key has a tag twice, or a name has several records.
    KeyAmbiguous = "key_ambiguous",
    /// A key is for other hashes than SHA-256.
    KeyOfAnotherHash = "key_of_another_hash",
    /// A key is not for mail.
    KeyOfAnotherService = "key_of_another_service",
    /// The domain only tries a key out.
    KeyInTesting = "key_in_testing",
    /// The record of a key cannot be parsed.
    KeyUnreadable = "key_unreadable",
    /// An RSA key has fewer bits than are accepted.
    WeakKey = "weak_key",
    /// An RSA key has fewer bits than are recommended; its signatures count.
    ShortKey = "short_key",
    /// No query of the DNS was made: the domain's servers have not answered before.
    DnsUnreachable = "dns_unreachable",
    /// The DNS has not answered all queries in time.
    DnsTooSlow = "dns_too_slow",
    /// The DNS has not answered about the key of a signature.
    DkimTemporary = "dkim_temporary",
    /// The policy of the sender's domain accepts the message.
    PolicyPassed = "policy_passed",
    /// The domain has no policy; its own signature or its own host proves the address.
    NoPolicy = "no_policy",
    /// What holds is of a domain that does not stand for the sender's.
    NotAligned = "not_aligned",
    /// A trusted host reports that the address is proved.
    HostPassed = "host_passed",
    /// A trusted host reports no proof, or that the policy refuses the message.
    HostDidNotPass = "host_did_not_pass",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_is_read_from_its_word() {
        let mut words = BTreeSet::new();
        for reason in OriginReason::ALL {
            let bytes = minicbor::to_vec(reason).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(reason), bytes.len(), "{reason}");
            assert_eq!(minicbor::decode::<OriginReason>(&bytes).expect("it is a reason"), *reason);
            assert!(words.insert(reason.word()), "two reasons have the word {reason}");
        }
        let bytes = minicbor::to_vec("no_from").expect("encoding into memory cannot fail");
        assert!(minicbor::decode::<OriginReason>(&bytes).is_err());
    }
}
