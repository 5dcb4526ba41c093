//! Inbound mail: who may decide by it, and the outcome of everybody else's mail.

pub(crate) mod answers;
mod assigning;
mod flood;
mod services;

use std::sync::LazyLock;
use switchward_api::v1;
use switchward_gateway::{
    Api,
    mail::{Level, MailIngress, Outcome},
};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_mail::{
    Signer,
    incoming::{Dns, Envelope, Settings},
};
use switchward_state::approval::{MailKey, MailToken, ReplyOutcome, TokenUse};
use switchward_state::{Key, Row, View as _};

use crate::harness::Harness;

/// The host whose authentication results are trusted here.
const TRUSTED: &str = "mx.acme.example";
/// The selector of the keys that mails are signed with here.
const SELECTOR: &str = "s1";
/// The domain of reply addresses.
const REPLIES: &str = "reply.acme.example";
pub(crate) const KIM: &str = "kim@acme.example";
pub(crate) const DANA: &str = "dana@acme.example";

/// A gate of which Kim and Dana were notified.
pub(crate) struct NotifiedGate {
    pub(crate) session: v1::Session,
    pub(crate) gate: v1::Gate,
    id: SessionId,
    number: OpenId,
    key: MailKey,
}

impl NotifiedGate {
    /// The key of the tenant's mail tokens.
    pub(crate) fn key(&self) -> &MailKey {
        &self.key
    }

    /// The token of the first mail to a person.
    pub(crate) fn token(&self, usage: TokenUse, person: &str) -> MailToken {
        self.token_of(usage, person, 0)
    }

    /// The token of a mail to a person, by the number of its request.
    pub(crate) fn token_of(&self, usage: TokenUse, person: &str, request: u32) -> MailToken {
        self.key.token(usage, TenantId(1), self.id, self.number, request, person)
    }
}

impl Harness {
    /// A release whose agent wants to write a file, of which Kim and Dana are notified.
    pub(crate) async fn asked(&self) -> NotifiedGate {
        self.asked_by(self.acme.key("agent"), "kim", &[KIM]).await
    }

    /// The same, with these arguments.
    pub(crate) async fn asked_with(&self, args: &str) -> NotifiedGate {
        self.asked_about(self.acme.key("agent"), ("kim", &[KIM]), args).await
    }

    /// The same, requested with this key; the owners are Dana and the addresses behind `name`.
    pub(crate) async fn asked_by(&self, secret: &str, name: &str, addresses: &[&str]) -> NotifiedGate {
        self.asked_about(secret, (name, addresses), "").await
    }

    async fn asked_about(
        &self,
        secret: &str,
        (name, addresses): (&str, &[&str]),
        args: &str,
    ) -> NotifiedGate {
        let entry = |name: &str, members: &[&str]| v1::DirectoryEntry {
            name: name.to_owned(),
            members: members.iter().map(|one| (*one).to_owned()).collect(),
            settings: None,
        };
        let entries = vec![entry(name, addresses), entry("owner:release", &[name, DANA])];
        let directory = Some(v1::Directory { entries, ..v1::Directory::default() });
        let put = v1::PutDirectoryRequest { directory, ..Default::default() };
        let _: v1::PutDirectoryResponse = self.ask("admin", "PutDirectory", &put).await;
        let start = v1::StartSessionRequest { definition: "release".into(), ..Default::default() };
        let line = &self.node.line;
        let started = line.ask::<v1::StartSessionResponse>(secret, "StartSession", &start).await;
        let session = started.expect("the session starts").session.expect("a session");
        let plain = crate::harness::tool_call(&session.name, "mcp:filesystem:write_file");
        let given = (!args.is_empty()).then(|| args.to_owned().into());
        let call =
            v1::AuthorizeToolCallRequest { args: given.unwrap_or_else(|| plain.args.clone()), ..plain };
        let reply = line.ask::<v1::AuthorizeToolCallResponse>(secret, "AuthorizeToolCall", &call).await;
        let reply = reply.expect("the call is answered");
        let name = reply.gate;
        let reply: v1::GetGateResponse =
            self.ask("agent", "GetGate", &v1::GetGateRequest { name, ..Default::default() }).await;
        let gate = reply.gate.expect("a gate");
        let id: SessionId = session.name.rsplit('/').next().expect("a part").parse().expect("an id");
        let number = gate.name.rsplit('_').next().expect("a part").parse().expect("a number");
        let row = self.node.cluster.shard_of(id.bucket()).read().await.expect("a shard");
        let row = row.row(&Key::tenancy(TenantId(1))).expect("rows").expect("the shard knows the tenant");
        let Row::Tenancy(tenancy) = &*row else { panic!("{row:?}") };
        NotifiedGate {
            session,
            gate,
            id,
            number: OpenId(number),
            key: tenancy.mail_keys(&self.node.cluster.ring(), TenantId(1)).remove(0),
        }
    }

    fn ingress(&self, level: Level) -> MailIngress {
        ingress(self.node.api.clone(), level)
    }

    async fn gate_now(&self, asked: &NotifiedGate) -> v1::Gate {
        let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
        let reply: v1::GetGateResponse = self.ask("agent", "GetGate", &request).await;
        reply.gate.expect("a gate")
    }

    /// The addresses of the queued mails that answer a reply.
    async fn answers(&self, asked: &NotifiedGate) -> Vec<String> {
        let filter = format!("session=\"{}\"", asked.session.name.rsplit('/').next().expect("a part"));
        let request = v1::ListEffectsRequest { filter, ..Default::default() };
        let reply: v1::ListEffectsResponse = self.ask("operator", "ListEffects", &request).await;
        let answered = |effect: &v1::Effect| effect.subject.starts_with("Re: ").then(|| effect.to.clone());
        reply.effects.iter().filter_map(answered).collect()
    }
}

/// A mail ingress that trusts one host, and knows the keys of the senders' domains.
fn ingress(api: Api, level: Level) -> MailIngress {
    let dns = Dns::of_records(&[], &[]).expect("no records");
    for signer in SIGNERS.iter() {
        let (name, text) = signer.record();
        dns.add_record(&name, &text).expect("a key");
    }
    let settings = Settings { trusted_hosts: vec![TRUSTED.to_owned()], ..Settings::of(REPLIES) };
    MailIngress::new(api, settings, dns, level)
}

/// The keys of the senders' domains.
static SIGNERS: LazyLock<Vec<Signer>> = LazyLock::new(|| {
    let domains = ["acme.example", "home.example", "example.com", "evil.example"];
    domains.iter().map(|domain| Signer::draw(domain, SELECTOR).expect("a key")).collect()
});

/// A message as the mail server of its sender's domain would sign it.
pub(crate) fn signed(from: &str, raw: &[u8]) -> Vec<u8> {
    let name = format!("{SELECTOR}._domainkey.{}", from.rsplit_once('@').expect("a domain").1);
    let signer = SIGNERS.iter().find(|signer| signer.record().0 == name).expect("a domain with a key");
    signer.signed(raw).expect("a signature")
}

/// A message as the host in front hands it over; signed by its sender's domain if `proof` is `pass`.
struct Message<'m> {
    from: &'m str,
    to: &'m MailToken,
    text: &'m str,
    id: &'m str,
    proof: &'m str,
    more: &'m str,
}

impl Message<'_> {
    fn raw(&self) -> Vec<u8> {
        let Self { from, to, text, id, proof, more } = self;
        let raw = format!(
            "{more}From: {from}\r\nTo: r+{to}@{REPLIES}\r\nSubject: Re: release\r\nMessage-ID: <{id}@acme.example>\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
        );
        if *proof == "pass" { signed(from, raw.as_bytes()) } else { raw.into_bytes() }
    }

    async fn bring(&self, ingress: &MailIngress) -> Outcome {
        ingress.ingest(&Envelope::default(), &self.raw()).await
    }
}

/// The outcome of a recorded reply, by its word.
fn recorded(word: &str) -> Outcome {
    let outcome = [
        ReplyOutcome::Decided,
        ReplyOutcome::Noted,
        ReplyOutcome::Read,
        ReplyOutcome::Unproved,
        ReplyOutcome::Late,
        ReplyOutcome::Foreign,
        ReplyOutcome::Own,
        ReplyOutcome::Assigned,
        ReplyOutcome::Earlier,
    ];
    Outcome::Recorded(outcome.into_iter().find(|one| one.word() == word).expect("a word"))
}

fn from_kim<'m>(to: &'m MailToken, text: &'m str, id: &'m str) -> Message<'m> {
    Message { from: KIM, to, text, id, proof: "pass", more: "" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proved_reply_of_the_addressed_person_decides_once() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let token = asked.token(TokenUse::Reply, KIM);
    // A question is noted and answered, and decides nothing.
    assert_eq!(from_kim(&token, "looks risky?", "one").bring(&ingress).await, recorded("noted"));
    assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Open));
    assert_eq!(harness.answers(&asked).await, [KIM]);
    let decides = from_kim(&token, "Approved, thanks!\r\n\r\nFor this release.", "two");
    assert_eq!(decides.bring(&ingress).await, recorded("decided"));
    let made = harness.gate_now(&asked).await.resolution.expect("a decision");
    assert_eq!(
        (made.by.as_str(), made.via.as_str(), made.decision()),
        (KIM, "email", v1::GateDecision::Approve)
    );
    assert_eq!(made.comment, "For this release.");
    // The decision is acknowledged in the thread.
    assert_eq!(harness.answers(&asked).await, [KIM, KIM]);
    // The same message again is the same reply; another one is late, and is answered with who decided.
    assert_eq!(decides.bring(&ingress).await, recorded("decided"));
    assert_eq!(harness.answers(&asked).await, [KIM, KIM]);
    assert_eq!(from_kim(&token, "reject", "three").bring(&ingress).await, recorded("closed_before"));
    assert_eq!(harness.answers(&asked).await, [KIM, KIM, KIM]);
    let made = harness.gate_now(&asked).await.resolution.expect("a decision");
    assert_eq!(made.decision(), v1::GateDecision::Approve);
    // The approved call may be made once.
    let call = crate::harness::tool_call(&asked.session.name, "mcp:filesystem:write_file");
    let allowed: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    assert_eq!(allowed.decision(), v1::ToolDecision::Allow, "{allowed:?}");
    harness.node.end().await;
}

/// Two mail servers in front of two servers, or two readers of one mailbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_mail_at_two_servers_is_one_reply() {
    let harness = Harness::start().await;
    let (one, other) = (harness.ingress(Level::Strict), harness.ingress(Level::Strict));
    let asked = harness.asked().await;
    let token = asked.token(TokenUse::Reply, KIM);
    let raw = from_kim(&token, "approve", "one").raw();
    let envelope = Envelope::default();
    let (first, second) = tokio::join!(one.ingest(&envelope, &raw), other.ingest(&envelope, &raw));
    assert_eq!((first, second), (recorded("decided"), recorded("decided")));
    let sequence = harness.look(&asked.session.name).await.sequence;
    assert_eq!(other.ingest(&envelope, &raw).await, recorded("decided"));
    assert_eq!(harness.look(&asked.session.name).await.sequence, sequence);
    assert_eq!(harness.answers(&asked).await, [KIM], "one reply is answered once");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_decides_by_mail() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let (kims, danas) = (asked.token(TokenUse::Reply, KIM), asked.token(TokenUse::Reply, DANA));
    let page = asked.token(TokenUse::Page, KIM);
    let text = "approve";
    let outcome = |outcome: &'static str| Outcome::Quarantined(outcome);
    let rows = [
        // Forwarded, or written by another recipient.
        (Message { from: "eve@acme.example", ..from_kim(&kims, text, "a") }, recorded("not_addressed")),
        (Message { from: DANA, ..from_kim(&kims, text, "b") }, recorded("not_addressed")),
        (from_kim(&danas, text, "c"), recorded("not_addressed")),
        // Nothing proves that Kim wrote it.
        (Message { proof: "fail", ..from_kim(&kims, text, "d") }, recorded("sender_not_proved")),
        // A page token is not valid in a mail.
        (from_kim(&page, text, "e"), outcome("token_invalid")),
        // No person wrote it.
        (
            Message { more: "Auto-Submitted: auto-replied\r\n", ..from_kim(&kims, text, "f") },
            Outcome::Ignored("auto_reply"),
        ),
        (
            Message { more: "List-Id: <all.acme.example>\r\n", ..from_kim(&kims, text, "g") },
            Outcome::Ignored("list"),
        ),
    ];
    for (message, wanted) in rows {
        assert_eq!(message.bring(&ingress).await, wanted, "{} {}", message.from, message.id);
        assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Open), "{}", message.id);
    }
    // A recipient is asked to answer their own mail, once if nothing proves that they wrote; a stranger gets no answer.
    assert_eq!(harness.answers(&asked).await, [DANA, KIM]);
    let counts = ingress.counts();
    assert!(counts.contains(&(("ignored", "auto_reply"), 1)), "{counts:?}");
    assert_eq!(ingress.seen().len(), 7);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_says_how_much_proof_is_enough() {
    let harness = Harness::start().await;
    for (level, proof, decided) in
        [(Level::Sender, "fail", true), (Level::PageOnly, "pass", false), (Level::Strict, "pass", true)]
    {
        let (asked, ingress) = (harness.asked().await, harness.ingress(level));
        let token = asked.token(TokenUse::Reply, KIM);
        let message = Message { proof, ..from_kim(&token, "approve", "one") };
        let wanted = if decided { "decided" } else { "sender_not_proved" };
        assert_eq!(message.bring(&ingress).await, recorded(wanted));
        let open = harness.gate_now(&asked).await.status == i32::from(v1::GateStatus::Open);
        assert_eq!(!open, decided, "{level:?}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_nowhere_is_put_aside() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let other = MailKey([9; 32]).token(TokenUse::Reply, TenantId(1), asked.id, asked.number, 0, KIM);
    let (before, message) =
        (harness.look(&asked.session.name).await.sequence, from_kim(&other, "approve", "a"));
    assert_eq!(message.bring(&ingress).await, Outcome::Quarantined("token_invalid"));
    assert_eq!(harness.look(&asked.session.name).await.sequence, before, "a forged token changes nothing");
    let never = asked.key.token(TokenUse::Reply, TenantId(1), SessionId([7; 16]), asked.number, 0, KIM);
    assert_eq!(
        from_kim(&never, "approve", "b").bring(&ingress).await,
        Outcome::Quarantined("session_unknown")
    );
    let nobody = asked.key.token(TokenUse::Reply, TenantId(99), asked.id, asked.number, 0, KIM);
    assert_eq!(from_kim(&nobody, "approve", "c").bring(&ingress).await, Outcome::Quarantined("no_tenant"));
    let garbage = ingress.ingest(&Envelope::default(), b"no mail at all").await;
    assert!(matches!(garbage, Outcome::Quarantined(_)), "{garbage:?}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_decides_neither_by_name_nor_by_any_address() {
    for subject in ["boss", "boss@home.example"] {
        not_her_own(subject).await;
    }
}

/// A requester with this subject is refused at the address of their own mail.
async fn not_her_own(subject: &str) {
    let harness = Harness::start().await;
    let role = v1::KeyRole::Operator.into();
    let request = v1::CreateApiKeyRequest { subject: subject.into(), role, ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &request).await;
    let boss = "boss@acme.example";
    let (asked, ingress) = (
        harness.asked_by(&made.secret, "boss", &[boss, "boss@home.example"]).await,
        harness.ingress(Level::Strict),
    );
    let token = asked.token(TokenUse::Reply, boss);
    let reply = Message { from: boss, ..from_kim(&token, "approve", "one") };
    assert_eq!(reply.bring(&ingress).await, recorded("own_request"));
    // The reply is answered with the reason.
    assert_eq!(harness.answers(&asked).await, [boss]);
    let decide = v1::DecideGateRequest {
        name: asked.gate.name.clone(),
        decision: v1::GateDecision::Approve.into(),
        ..Default::default()
    };
    let line = &harness.node.line;
    let by_key = line.ask::<v1::DecideGateResponse>(&made.secret, "DecideGate", &decide).await;
    crate::refusal::refused(by_key, "SELF_APPROVAL");
    crate::decision_page::not_hers(&harness, &asked, boss).await;
    assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Open));
    let token = asked.token(TokenUse::Reply, DANA);
    let reply = Message { from: DANA, ..from_kim(&token, "approve", "two") };
    assert_eq!(reply.bring(&ingress).await, recorded("decided"));
    assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Decided));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_who_asked_brings_decides_only_where_it_is_signed() {
    let harness = Harness::start().await;
    let ingress = harness.ingress(Level::Sender);
    for (by, proof, outcome) in [
        ("operator", "fail", "sender_not_proved"),
        ("operator", "pass", "decided"),
        ("somebody", "fail", "decided"),
    ] {
        let asked = harness.asked_by(harness.acme.key("operator"), "kim", &[KIM]).await;
        let by = if by == "operator" { asked.gate.requested_by.clone() } else { by.to_owned() };
        let token = asked.token(TokenUse::Reply, KIM);
        let message = Message { proof, ..from_kim(&token, "approve", "one") };
        let brought = ingress.of(TenantId(1), by.clone()).ingest(&Envelope::default(), &message.raw()).await;
        assert_eq!(brought, recorded(outcome), "{by} {proof}");
        assert_eq!(answers::fact(&harness, &asked.session, "reply.recorded", "brought_by").await, by);
    }
    harness.node.end().await;
}

/// The poster of a mail claims how it came: the host of the sender's domain, and its sender.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_that_a_posted_mail_is_said_to_have_come_proves_nothing() {
    let harness = Harness::start().await;
    let asked = harness.asked_by(harness.acme.key("operator"), "kim", &[KIM]).await;
    let token = asked.token(TokenUse::Reply, KIM);
    let message = Message { proof: "fail", ..from_kim(&token, "approve", "one") };
    let path = format!("/v1/mail?peer=192.0.2.10&helo=mx.acme.example&sender={}", KIM.replace('@', "%40"));
    let post = crate::callbacks::raw(&path, message.raw()).with("content-type", "message/rfc822");
    let answer = harness.node.line.send(post.with_key(harness.acme.key("operator"))).await;
    assert_eq!(answer.json(), serde_json::json!({ "outcome": "recorded", "why": "sender_not_proved" }));
    assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Open));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounce_counts_if_it_comes_to_the_address_that_only_mail_servers_know() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let null = Envelope { sender: Some(String::new()), ..Envelope::default() };
    let bounce = |usage| {
        let token = asked.token(usage, KIM);
        let from = "MAILER-DAEMON@evil.example";
        Message { from, proof: "pass", ..from_kim(&token, "550 5.1.1 no such user", "one") }.raw()
    };
    // Everybody to whom the request was forwarded or copied knows the reply address.
    for _ in 0..3 {
        assert_eq!(ingress.ingest(&null, &bounce(TokenUse::Reply)).await, Outcome::Bounced);
    }
    let gate = harness.gate_now(&asked).await;
    assert!(
        gate.undeliverable.is_empty() && gate.warnings[0].contains("anybody could have sent"),
        "{gate:?}"
    );
    assert_eq!(ingress.ingest(&null, &bounce(TokenUse::Bounce)).await, Outcome::Bounced);
    assert_eq!(harness.gate_now(&asked).await.undeliverable, [KIM]);
    // A reply to the bounce address is not a reply.
    let token = asked.token(TokenUse::Bounce, DANA);
    let reply = Message { from: DANA, ..from_kim(&token, "approve", "two") };
    assert_eq!(reply.bring(&ingress).await, Outcome::Quarantined("token_invalid"));
    harness.node.end().await;
}
