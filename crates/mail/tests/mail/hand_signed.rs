//! Signatures with any tag (RFC 6376), for mails that are signed correctly and yet prove nothing.

use mail_auth::common::crypto::SigningKey as _;
use mail_auth::common::headers::{Writable, Writer};
use sha2::{Digest as _, Sha256};
use switchward_expr::ReplyDecision;
use switchward_mail::incoming::ProofReason;

use crate::harness::{HARNESS, Key, Mail, REPLY_TO, base64};

/// What of a signature differs from the usual.
pub(crate) struct Hand<'h> {
    pub(crate) key: &'h Key,
    pub(crate) selector: &'h str,
    pub(crate) fields: &'h [&'h str],
    /// More tags, each with its `; ` behind it.
    pub(crate) tags: &'h str,
    /// How many bytes of the body are signed; `None`: all.
    pub(crate) length: Option<usize>,
}

/// The usual signature of the approver's host.
pub(crate) fn usual<'h>(fields: &'h [&'h str]) -> Hand<'h> {
    Hand { key: &HARNESS.corp, selector: "s1", fields, tags: "", length: None }
}

struct Bytes(Vec<u8>);

impl Writable for Bytes {
    fn write(self, writer: &mut impl Writer) {
        writer.write(&self.0);
    }
}

/// The fields that are signed, in the simple form: of each name the last one that is not signed yet.
fn simple(mail: &Mail, fields: &[&str]) -> String {
    let mut left: Vec<_> = mail.headers.iter().collect();
    let mut text = String::new();
    for field in fields {
        let at = left.iter().rposition(|(name, _)| name.eq_ignore_ascii_case(field));
        if let Some((name, value)) = at.map(|at| left.remove(at)) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    text
}

impl Mail {
    /// Signed by hand, in the simple form. The body ends in one end of line.
    pub(crate) fn signed_by_hand(self, hand: &Hand<'_>) -> Self {
        let Hand { key, selector, fields, tags, length } = hand;
        let body = self.body.as_bytes();
        let hash = base64(&Sha256::digest(&body[..length.unwrap_or(body.len())]));
        let value = format!(
            "v=1; a=ed25519-sha256; c=simple/simple; d={}; s={selector}; {tags}h={}; bh={hash}; b=",
            key.domain,
            fields.join(":")
        );
        let text = format!("{}DKIM-Signature: {value}", simple(&self, fields));
        let signature = key.pair().sign(Bytes(text.into_bytes())).unwrap();
        self.above("DKIM-Signature", &format!("{value}{}", base64(&signature)))
    }
}

/// What is signed here counts, but for the tag that is the matter.
#[tokio::test]
async fn a_signature_by_hand_is_a_good_one() {
    let fields = ["From", "To", "Subject", "Message-ID"];
    let mail = || Mail::plain("approved\n\nDana\n").set("To", REPLY_TO);
    assert_eq!(mail().signed_by_hand(&usual(&fields)).seen().await.decides(), ReplyDecision::Approve);
    let known = Hand { tags: "t=1700000000; x=4000000000; q=dns/txt; i=@corp.example; ", ..usual(&fields) };
    assert_eq!(mail().signed_by_hand(&known).seen().await.decides(), ReplyDecision::Approve);
    // A key of 1,024 bits is short, and counts.
    for (bits, wanted) in [
        ("512", ReplyDecision::Undecided),
        ("768", ReplyDecision::Undecided),
        ("1024", ReplyDecision::Approve),
    ] {
        let seen = by_rsa(bits).seen().await;
        assert_eq!(seen.decides(), wanted, "{bits}");
        let is_warned_of = |why| seen.proofs.iter().any(|proof| proof.detail.contains(&why));
        assert_eq!(is_warned_of(ProofReason::ShortKey), bits == "1024", "{:?}", seen.proofs);
    }
}

/// Selectors of `corp.example`, and RSA keys of that many bits.
pub(crate) const RSA_KEYS: [(&str, &str); 3] = [
    (
        "rsa512",
        "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK6m0IEB5W0qgUvrUu1xct5MaIeGDhV9ytrk99tKHxUZ9Nr+EiJK4QzyrIBMZUfyrTS2RXsOCcp8\
         tTnMy8mh+QUCAwEAAQ==",
    ),
    (
        "rsa768",
        "MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhANZ0NolFrVHlJRVnEaQRL9UwPkjqd7MB5CSDTGjwnntZIqVNJtTlq40nPmEhY/qVyYjzU+UYwC+W\
         ZuyqHSE7658xEPbXOOyeRdJmK+qlwTqjSQcbB+jPdb8wf7HpftVDFwIDAQAB",
    ),
    (
        "rsa1024",
        "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDST+A7aX7padJeSzTTXCaXv3z7EyO0O7jiGv4lnK1hIBUtrXd/AvgiBsxXpoSvg66Xxl9m\
         vye06XiIMLxunc6zwDBmJeQGWKjUoHzA+n9WgfO/J5x1Vvw1YmXDgb94hxYXa5TX3JinMBnc7Hwp/V3bnGEeyd+zHxbWvITNCoO0GQIDAQAB",
    ),
];

/// What these keys signed: the usual reply with `approved` as its first line. The keys themselves are kept nowhere.
const RSA_SIGNED: [(&str, &str); 3] = [
    ("512", "rQ1y3E3SBuCoVMRkgEU3kHsMKl7jiC0zT4Ji9ypcJ4HpXBOoR0nXNhzlCqUf/AebuCYgL/vJmgrUWnbahR3tAw=="),
    (
        "768",
        "mzLL5Vt61Zy3p6zi+CpWJw0+4jZO3YTAxJuLJWA7Pnk6l/0LlKEM3uLZ0umM0J/IB48HI6LNaLEPr8mVOm2vqN1MFDpAwYq7qXM5PyWZMdRI\
         J5IaKJSvpV2nJZBLSusY",
    ),
    (
        "1024",
        "WuggCobwUTpp9Wp6iZkUrNOwP1a8H4RLqy+/Nv49XC+kN+K56CsTG+rOWUL9G3VoYFc0LeZM/0bBdiU4ELfodvRwGD2zsHFdU95WXfv0aUih\
         39xEc+I3YWE+/8/MM+TrLp5I1T56H0xDnrElajvRg+6CyG33DoRHdFUqBxBiEis=",
    ),
];

/// The usual reply, signed by an RSA key of this many bits.
pub(crate) fn by_rsa(bits: &str) -> Mail {
    let (_, signature) = RSA_SIGNED.iter().find(|(known, _)| *known == bits).unwrap();
    let value = format!(
        "v=1; a=rsa-sha256; c=simple/simple; d=corp.example; s=rsa{bits}; h=From:To:Subject:Message-ID; \
         bh=lVBcO3Yyzzl9fHZzGDjwJfvlF8iBb2OOM9yXW65WRIg=; b={signature}"
    );
    Mail::plain("approved\n\nDana\n").above("DKIM-Signature", &value)
}
