//! Mail that comes in: the bytes of a message, or of a conversation over LMTP if they begin with its greeting.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use switchward_expr::{APPROVALS, REJECTIONS, decision_line, own_text};
use switchward_mail::incoming::{
    Dns, Envelope, Peer, Reply, Settings, Sorted, Unusable, authenticate, head, legible, sort,
};
use switchward_mail::limits::{
    LEGIBLE_HEADERS_BYTES_MAX, LEGIBLE_TEXT_BYTES_MAX, MESSAGE_BYTES_MAX, TEXT_BYTES_MAX, TOKENS_MAX,
};
use switchward_mail::lmtp::{Receive, Taken, converse};
use tokio::runtime::{Builder, Runtime};

/// How a conversation over LMTP begins.
const GREETING: &[u8] = b"LHLO";
const OURS: &str = "reply.acme.example";
/// The key that signed the signed messages of the corpus, as the domain of their sender publishes it.
const RECORDS: &[(&str, &str)] = &[
    ("s1._domainkey.corp.example", "v=DKIM1; k=ed25519; p=SznrO5za5ZQZsqn4LH5rGgvCpFNZY/itdtP+FIWEmNw="),
    ("_dmarc.corp.example", "v=DMARC1; p=reject"),
    ("corp.example", "v=spf1 ip4:192.0.2.10 -all"),
];

/// Where mail is read: what is ours, once without a trusted host and once with one.
struct Place {
    runtime: Runtime,
    dns: Dns,
    envelope: Envelope,
    settings: [Settings; 2],
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let settings = Settings::of(OURS);
    let trusting = Settings { trusted_hosts: vec!["mx.acme.example".to_owned()], ..settings.clone() };
    let peer =
        Peer { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), helo: "mail.corp.example".to_owned() };
    Place {
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
    let place = &*PLACE;
    check_shown(bytes, place);
    let mut accepted = false;
    for settings in &place.settings {
        let sorted = sort(bytes, &place.envelope, settings);
        assert_eq!(sorted, sort(bytes, &place.envelope, settings), "the same message is sorted otherwise");
        assert_ne!(sorted, Sorted::Unusable { reason: Unusable::Breaks }, "what reads the message breaks");
        if let Sorted::Reply(reply) = sorted {
            check_reply(bytes, &reply, settings, place);
            accepted = true;
        }
    }
    accepted
}

/// What a person who looks after mail is shown of it.
fn check_shown(bytes: &[u8], place: &Place) {
    let shown = head(bytes, &place.envelope, &place.settings[0]);
    assert!(!shown.subject.contains(['\r', '\n']), "a subject has two lines");
    assert!(shown.tokens.len() <= TOKENS_MAX);
    let legible = legible(bytes);
    assert!(
        legible.headers.len() <= LEGIBLE_HEADERS_BYTES_MAX && legible.text.len() <= LEGIBLE_TEXT_BYTES_MAX
    );
}

fn check_reply(bytes: &[u8], reply: &Reply, settings: &Settings, place: &Place) {
    assert!(reply.text.len() <= TEXT_BYTES_MAX && reply.tokens.len() <= TOKENS_MAX);
    assert!(!reply.message_id.is_empty() && !reply.from.text.is_empty());
    let none: &[&str] = &[];
    let _ = decision_line(&own_text(&reply.text), APPROVALS, REJECTIONS, none);
    for token in &reply.tokens {
        let asked = authenticate(bytes, &token.text, &place.envelope, settings, &place.dns);
        let proof = place.runtime.block_on(asked);
        assert_ne!(proof.detail, ["breaks_reader"], "what proves the message breaks");
        assert!(!proof.is_signed() || reply.from.text.contains('@'), "nobody is proved to have written it");
    }
}

/// Hands nothing on: it only looks at what it is given.
struct Looks;

impl Receive for Looks {
    fn knows(&self, recipient: &str) -> bool {
        recipient.ends_with(OURS)
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> Taken {
        assert!(!envelope.recipients.is_empty() && envelope.recipients.iter().all(|it| self.knows(it)));
        assert!(raw.len() <= MESSAGE_BYTES_MAX);
        Taken::Kept
    }
}

/// Returns true if a message was handed over, which the replies say.
fn talk(bytes: &[u8]) -> bool {
    let mut said = Vec::new();
    let stream = tokio::io::join(bytes, &mut said);
    PLACE.runtime.block_on(converse(stream, OURS, &Looks));
    assert!(said.starts_with(b"220 "), "a conversation begins without a greeting");
    assert!(said.ends_with(b"\r\n"), "a reply is cut off");
    String::from_utf8_lossy(&said).contains("250 2.0.0 kept")
}
