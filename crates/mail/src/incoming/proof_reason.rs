//! Why the address of a sender is proved, or is not.

/// One reason for the result of an [`Authentication`](super::Authentication).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProofReason {
    /// The message makes a reader of mail fail.
    BreaksReader,
    /// The headers, or the one sender, cannot be read.
    Unreadable,
    /// Two readers of mail differ about the sender or the body.
    ReadOtherwise,
    /// No proof was looked for: the token was never given to the sender.
    NotChecked,
    /// More signatures than are checked.
    TooManySignatures,
    /// No signature counts, and the sending host may not speak for the domain.
    NotSigned,
    /// A signature has a tag twice.
    SignatureAmbiguous,
    /// A signature covers only the beginning of the body.
    SignatureOfAPart,
    /// A signature is made with SHA-1.
    WeakSignature,
    /// A signature is made by a third party for the domain (RFC 6541).
    SignatureOfAnother,
    /// A signature names a query for its key that is not known here.
    UnknownKeyQuery,
    /// A signature leaves out a field that it must cover.
    FieldNotSigned,
    /// A field that must be covered is not there exactly once.
    SignedFieldMissing,
    /// Neither the message id nor the date is covered.
    IdentityNotSigned,
    /// A signature does not cover the reply address.
    ReplyAddressNotSigned,
    /// The message has no signature to which the trusted host can refer.
    SignatureMissing,
    /// A signature does not hold.
    SignatureBroken,
    /// The DNS has no key for a signature.
    NoKey,
    /// The record of a key has a tag twice, or a name has several records.
    KeyAmbiguous,
    /// A key is for other hashes than SHA-256.
    KeyOfAnotherHash,
    /// A key is not for mail.
    KeyOfAnotherService,
    /// The domain only tries a key out.
    KeyInTesting,
    /// The record of a key cannot be parsed.
    KeyUnreadable,
    /// An RSA key has fewer bits than are accepted.
    WeakKey,
    /// An RSA key has fewer bits than are recommended; its signatures count.
    ShortKey,
    /// No query of the DNS was made: the domain's servers have not answered before.
    DnsUnreachable,
    /// The DNS has not answered all queries in time.
    DnsTooSlow,
    /// The DNS has not answered about the key of a signature.
    DkimTemporary,
    /// The policy of the sender's domain accepts the message.
    PolicyPassed,
    /// The domain has no policy; its own signature or its own host proves the address.
    NoPolicy,
    /// What holds is of a domain that does not stand for the sender's.
    NotAligned,
    /// A trusted host reports that the address is proved.
    HostPassed,
    /// A trusted host reports no proof, or that the policy refuses the message.
    HostDidNotPass,
}
