//! Inbound mail: the bytes of a message, or of a conversation over LMTP if they begin with its greeting.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use switchward_expr::{APPROVALS, REJECTIONS, decision_line};
use switchward_mail::incoming::{
    Dns, Envelope, Peer, ProofReason, Reply, Settings, Sorted, Unusable, authenticate, head, legible, sort,
};
use switchward_mail::limits::{
    LEGIBLE_HEADERS_BYTES_MAX, LEGIBLE_TEXT_BYTES_MAX, MESSAGE_BYTES_MAX, TEXT_BYTES_MAX, TOKENS_MAX,
};
use switchward_mail::lmtp::{Receive, ReceiveOutcome, converse};
use tokio::runtime::{Builder, Runtime};

/// The start of a conversation over LMTP.
const GREETING: &[u8] = b"LHLO";
const OURS: &str = "reply.acme.example";
/// The key that signed the signed messages of the corpus, as the domain of their sender publishes it.
const RECORDS: &[(&str, &str)] = &[
    ("s1._domainkey.corp.example", "v=DKIM1; k=ed25519; p=SznrO5za5ZQZsqn4LH5rGgvCpFNZY/itdtP+FIWEmNw="),
    ("_dmarc.corp.example", "v=DMARC1; p=reject"),
    ("corp.example", "v=spf1 ip4:192.0.2.10 -all"),
];

/// What reading mail needs: our settings, once without a trusted host and once with one.
struct Harness {
    runtime: Runtime,
    dns: Dns,
    envelope: Envelope,
    settings: [Settings; 2],
}

static HARNESS: LazyLock<Harness> = LazyLock::new(|| {
    let settings = Settings::of(OURS);
    let trusting = Settings { trusted_hosts: vec!["mx.acme.example".to_owned()], ..settings.clone() };
    let peer =
        Peer { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), helo: "mail.corp.example".to_owned() };
    Harness {
        runtime: Builder::new_current_thread().enable_time().build().expect("a runtime can be built"),
        dns: Dns::of_records(RECORDS, &[]).expect("the records are well formed"),
        envelope: Envelope {
            sender: Some("dana@corp.example".to_owned()),
            recipients: vec![format!("r+tok1@{OURS}")],
            peer: Some(peer),
        },
        settings: [settings, trusting],
    }
});

/// Returns true if the message is a person's reply, or if the conversation handed over a message.
pub(crate) fn read(bytes: &[u8]) -> bool {
    if bytes.starts_with(GREETING) {
        return talk(bytes);
    }
    let harness = &*HARNESS;
    check_shown(bytes, harness);
    let mut accepted = false;
    for settings in &harness.settings {
        let sorted = sort(bytes, &harness.envelope, settings);
        assert_eq!(
            sorted,
            sort(bytes, &harness.envelope, settings),
            "the same message is sorted in two ways"
        );
        assert_ne!(sorted, Sorted::Unusable { reason: Unusable::Breaks }, "reading the message fails");
        if let Sorted::Reply(reply) = sorted {
            check_reply(bytes, &reply, settings, harness);
            accepted = true;
        }
    }
    accepted
}

/// Checks what a mail operator is shown of a message.
fn check_shown(bytes: &[u8], harness: &Harness) {
    let shown = head(bytes, &harness.envelope, &harness.settings[0]);
    assert!(!shown.subject.contains(['\r', '\n']), "a subject has two lines");
    assert!(shown.tokens.len() <= TOKENS_MAX);
    let legible = legible(bytes);
    assert!(
        legible.headers.len() <= LEGIBLE_HEADERS_BYTES_MAX && legible.text.len() <= LEGIBLE_TEXT_BYTES_MAX
    );
}

fn check_reply(bytes: &[u8], reply: &Reply, settings: &Settings, harness: &Harness) {
    assert!(reply.text.len() <= TEXT_BYTES_MAX && reply.tokens.len() <= TOKENS_MAX);
    assert!(!reply.message_id.is_empty() && !reply.from.text.is_empty());
    let none: &[&str] = &[];
    let _ = decision_line(&reply.text, APPROVALS, REJECTIONS, none);
    for token in &reply.tokens {
        let asked = authenticate(bytes, &token.text, &harness.envelope, settings, &harness.dns);
        let proof = harness.runtime.block_on(asked);
        assert_ne!(proof.detail, [ProofReason::BreaksReader], "authenticating the message fails");
        assert!(
            !proof.is_signed() || reply.from.text.contains('@'),
            "an unauthenticated message has an author"
        );
    }
}

/// A receiver that only checks the messages.
struct Looks;

impl Receive for Looks {
    fn knows(&self, recipient: &str) -> bool {
        recipient.ends_with(OURS)
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> ReceiveOutcome {
        assert!(!envelope.recipients.is_empty() && envelope.recipients.iter().all(|it| self.knows(it)));
        assert!(raw.len() <= MESSAGE_BYTES_MAX);
        ReceiveOutcome::Stored
    }
}

/// Returns true if a message was handed over, according to the replies.
fn talk(bytes: &[u8]) -> bool {
    let mut said = Vec::new();
    let stream = tokio::io::join(bytes, &mut said);
    HARNESS.runtime.block_on(converse(stream, OURS, &Looks));
    assert!(said.starts_with(b"220 "), "a conversation begins without a greeting");
    assert!(said.ends_with(b"\r\n"), "a reply is incomplete");
    String::from_utf8_lossy(&said).contains("250 2.0.0 accepted")
}
