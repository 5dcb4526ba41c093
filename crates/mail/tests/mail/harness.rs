//! The participants of these tests, with their own keys: genuine and forged mails differ by their signatures alone.

use std::net::IpAddr;
use std::sync::LazyLock;

use mail_auth::common::crypto::Ed25519Key;
use mail_auth::common::headers::HeaderWriter;
use mail_auth::dkim::{DkimSigner, Done};
use switchward_expr::{ReplyDecision, decision_line};
use switchward_mail::incoming::{Authentication, Dns, Envelope, Settings, Sorted, authenticate, sort};

use crate::hand_signed::RSA_KEYS;

pub(crate) const APPROVER: &str = "dana@corp.example";
pub(crate) const REPLY_TO: &str = "r+tok1@reply.acme.example";
pub(crate) const SUBJECT: &str = "Re: Approve? deploy-gate: api 1.42 to prod";
pub(crate) const TRUSTED: &str = "mx.acme.example";
/// The fields that the usual signers cover.
pub(crate) const SIGNED: &[&str] =
    &["From", "To", "Subject", "Message-ID", "Date", "In-Reply-To", "References"];

/// A domain's key.
pub(crate) struct Key {
    pub(crate) domain: &'static str,
    document: Vec<u8>,
}

impl Key {
    fn new(domain: &'static str) -> Self {
        Self { domain, document: Ed25519Key::generate_pkcs8().unwrap() }
    }

    pub(crate) fn pair(&self) -> Ed25519Key {
        Ed25519Key::from_pkcs8_der(&self.document).unwrap()
    }

    fn record(&self) -> String {
        format!("v=DKIM1; k=ed25519; p={}", base64(&self.pair().public_key()))
    }
}

/// The domains there are. `forger` has a key that is in no DNS.
pub(crate) struct Harness {
    pub(crate) corp: Key,
    pub(crate) plain: Key,
    pub(crate) evil: Key,
    pub(crate) lookalike: Key,
    pub(crate) forger: Key,
    pub(crate) dns: Dns,
    pub(crate) settings: Settings,
    pub(crate) trusting: Settings,
}

/// Selectors under which the key of `corp.example` says of itself that it is for something else.
const SELECTORS: [(&str, &str); 3] =
    [("testing", "t=y; k="), ("reports", "s=tlsrpt; k="), ("sha1", "h=sha1; k=")];

pub(crate) const LOOKALIKE: &str = "xn--crp-sed.example";

pub(crate) static HARNESS: LazyLock<Harness> = LazyLock::new(|| {
    let (corp, plain, evil) = (Key::new("corp.example"), Key::new("plain.example"), Key::new("evil.example"));
    let (lookalike, forger) = (Key::new(LOOKALIKE), Key::new("corp.example"));
    let mut records = vec![
        ("_dmarc.corp.example".to_owned(), "v=DMARC1; p=reject".to_owned()),
        ("_dmarc.evil.example".to_owned(), "v=DMARC1; p=none; rua=mailto:a@evil.example".to_owned()),
        ("corp.example".to_owned(), "v=spf1 ip4:192.0.2.10 -all".to_owned()),
        ("evil.example".to_owned(), "v=spf1 +all".to_owned()),
    ];
    for key in [&corp, &plain, &evil, &lookalike] {
        records.push((format!("s1._domainkey.{}", key.domain), key.record()));
    }
    for (selector, key) in RSA_KEYS {
        records.push((format!("{selector}._domainkey.corp.example"), format!("v=DKIM1; k=rsa; p={key}")));
    }
    for (selector, said) in SELECTORS {
        records.push((format!("{selector}._domainkey.corp.example"), corp.record().replacen("k=", said, 1)));
    }
    let records: Vec<(&str, &str)> =
        records.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let hosts: &[(&str, IpAddr)] = &[];
    let settings = Settings::of("reply.acme.example");
    let trusting = Settings { trusted_hosts: vec![TRUSTED.to_owned()], ..settings.clone() };
    let dns = Dns::of_records(&records, hosts).unwrap();
    Harness { corp, plain, evil, lookalike, forger, dns, settings, trusting }
});

/// A message that is being made.
#[derive(Clone)]
pub(crate) struct Mail {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Mail {
    /// A reply of the approver with this body.
    pub(crate) fn new(content_type: &str, body: &str) -> Self {
        let headers = [
            ("From", format!("Dana Reed <{APPROVER}>")),
            ("To", REPLY_TO.to_owned()),
            ("Subject", SUBJECT.to_owned()),
            ("Message-ID", "<m1@corp.example>".to_owned()),
            ("Date", "Wed, 01 May 2024 10:00:00 +0000".to_owned()),
            ("In-Reply-To", "<a.tok1@reply.acme.example>".to_owned()),
            ("References", "<a.tok1@reply.acme.example>".to_owned()),
            ("MIME-Version", "1.0".to_owned()),
            ("Content-Type", content_type.to_owned()),
            ("Content-Transfer-Encoding", "8bit".to_owned()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { headers, body: body.replace("\r\n", "\n").replace('\n', "\r\n") }
    }

    pub(crate) fn plain(body: &str) -> Self {
        Self::new("text/plain; charset=utf-8", body)
    }

    pub(crate) fn html(body: &str) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        match self.headers.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.headers.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// One more field above all others.
    pub(crate) fn above(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(0, (name.to_owned(), value.to_owned()));
        self
    }

    /// One more field below all others.
    pub(crate) fn below(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn raw(&self) -> Vec<u8> {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{headers}\r\n{}", self.body).into_bytes()
    }

    pub(crate) fn signed(self, key: &Key, fields: &[&str]) -> Self {
        self.signed_with(key, fields, |signer| signer)
    }

    /// Signed over the length that the body has now.
    pub(crate) fn signed_in_part(self, key: &Key) -> Self {
        self.signed_with(key, SIGNED, |signer| signer.body_length(true))
    }

    /// Signed by a signer that is set up like this.
    pub(crate) fn signed_with(
        self,
        key: &Key,
        fields: &[&str],
        set_up: impl FnOnce(DkimSigner<Ed25519Key, Done>) -> DkimSigner<Ed25519Key, Done>,
    ) -> Self {
        let signer = DkimSigner::from_key(key.pair()).domain(key.domain).selector("s1");
        let signer = set_up(signer.headers(fields.iter().copied()));
        let header = signer.sign(&self.raw()).unwrap().to_header();
        self.with_signature(&header)
    }

    /// As the approver's own host would sign it.
    pub(crate) fn genuine(self) -> Self {
        self.signed(&HARNESS.corp, SIGNED)
    }

    fn with_signature(self, header: &str) -> Self {
        let value = header.trim_end().strip_prefix("DKIM-Signature:").unwrap().trim_start().to_owned();
        self.above("DKIM-Signature", &value)
    }

    pub(crate) fn sorted(&self) -> Sorted {
        self.sorted_with(&Envelope::default())
    }

    pub(crate) fn sorted_with(&self, envelope: &Envelope) -> Sorted {
        sort(&self.raw(), envelope, &HARNESS.settings)
    }

    pub(crate) async fn seen(&self) -> Seen {
        Seen::of(&self.raw(), &Envelope::default(), &HARNESS.settings).await
    }
}

/// The kind of a message, and for a reply its authentication for each of its tokens.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) sorted: Sorted,
    pub(crate) proofs: Vec<Authentication>,
}

impl Seen {
    pub(crate) async fn of(raw: &[u8], envelope: &Envelope, settings: &Settings) -> Self {
        let sorted = sort(raw, envelope, settings);
        let mut proofs = Vec::new();
        if let Sorted::Reply(reply) = &sorted {
            for token in &reply.tokens {
                proofs.push(authenticate(raw, &token.text, envelope, settings, &HARNESS.dns).await);
            }
        }
        Self { sorted, proofs }
    }

    /// What it would decide, whichever of its tokens was made for the approver: a reply of theirs, proved, whose first own
    /// line is a phrase.
    pub(crate) fn decides(&self) -> ReplyDecision {
        self.decides_beside(None)
    }

    /// The same, at any other token than the one that they wrote to.
    pub(crate) fn decides_beside(&self, meant: Option<&str>) -> ReplyDecision {
        match &self.sorted {
            Sorted::Reply(reply)
                if reply.from.text == APPROVER
                    && reply
                        .tokens
                        .iter()
                        .zip(&self.proofs)
                        .any(|(token, proof)| meant != Some(token.text.as_str()) && proof.is_signed()) =>
            {
                said(&reply.text)
            }
            Sorted::Reply(_) | Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. } => {
                ReplyDecision::Undecided
            }
        }
    }
}

/// What the engine reads in a text.
pub(crate) fn said(text: &str) -> ReplyDecision {
    decision_line::<&str>(text, &[], &[], &[])
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(sign) } else { '=' });
        }
    }
    text
}
