//! Quarantined mail: what is stored, who sees it, and when it is deleted.

use std::sync::atomic::Ordering;
use switchward_api::v1;
use switchward_gateway::{
    limits::{MAIL_KEPT_BYTES_MAX, MAIL_KEPT_MS_MAX},
    mail::{MailIngress, Outcome, QuarantineStore as _, sweep},
};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_mail::incoming::Envelope;
use switchward_state::approval::MailKey;
use switchward_state::{Key, View as _};
use tonic::Status;

use crate::harness::Harness;
use crate::quarantine_store::mail;
use crate::refusal::refused;

const DOMAIN: &str = "reply.acme.example";
const DAY_MS: u64 = 86_400_000;

fn ingress(harness: &Harness) -> MailIngress {
    let dns = switchward_mail::incoming::Dns::of_records(&[], &[]).expect("no records");
    let settings = switchward_mail::incoming::Settings::of(DOMAIN);
    MailIngress::new(harness.node.api.clone(), settings, dns, switchward_gateway::mail::Level::Sender)
}

/// A reply to a mail of this tenant that was never sent.
fn stray_reply(tenant: u32, more: &str, text: &str) -> Vec<u8> {
    reply_to((tenant, SessionId::from_key(TenantId(tenant), "never")), more, text)
}

/// A reply to a mail about this session that was never sent.
fn reply_to((tenant, session): (u32, SessionId), more: &str, text: &str) -> Vec<u8> {
    let usage = switchward_state::approval::TokenUse::Reply;
    let token = MailKey([7; 32]).token(usage, TenantId(tenant), session, OpenId(1), 0, "ann@example.com");
    format!(
        "From: Ann <ann@example.com>\r\nTo: r+{token}@{DOMAIN}\r\nSubject: Re: release\r\nMessage-ID: <1@example.com>\r\n\
         {more}\r\n{text}\r\n"
    )
    .into_bytes()
}

async fn listed(harness: &Harness, secret: &str) -> Vec<v1::QuarantinedMail> {
    let request = v1::ListQuarantinedMailRequest::default();
    let reply =
        harness.node.line.ask::<v1::ListQuarantinedMailResponse>(secret, "ListQuarantinedMail", &request);
    let mut mails = reply.await.expect("the mail is listed").mails;
    mails.retain(|mail| !mail.name.ends_with("-mail"));
    mails
}

async fn got(harness: &Harness, secret: &str, name: &str) -> Result<v1::QuarantinedMail, Status> {
    let request = v1::GetQuarantinedMailRequest { name: name.to_owned(), ..Default::default() };
    let reply =
        harness.node.line.ask::<v1::GetQuarantinedMailResponse>(secret, "GetQuarantinedMail", &request);
    Ok(reply.await?.mail.expect("a mail"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_shown_what_names_it_and_the_first_tenants_admin_what_names_nobody() {
    let harness = Harness::start().await;
    let (ingress, nobody) = (ingress(&harness), Envelope::default());
    let html = "Content-Type: text/html\r\n";
    let named = stray_reply(2, html, "<b>Approve</b><script>steal()</script>");
    assert_eq!(ingress.ingest(&nobody, &named).await, Outcome::Quarantined("session_unknown"));
    let away = stray_reply(1, "Auto-Submitted: auto-replied\r\n", "I am away.");
    assert_eq!(ingress.ingest(&nobody, &away).await, Outcome::Ignored("auto_reply"));
    let strange = b"From: eve@example.com\r\nSubject: Hi\r\nMessage-ID: <2@example.com>\r\n\r\nPay me.\r\n";
    assert_eq!(ingress.ingest(&nobody, strange).await, Outcome::Quarantined("no_token"));
    // A tenant that does not exist counts as no tenant.
    assert_eq!(
        ingress.ingest(&nobody, &stray_reply(77, "", "Hello.")).await,
        Outcome::Quarantined("no_tenant")
    );
    let reasons = |mails: Vec<v1::QuarantinedMail>| {
        let mut reasons: Vec<(String, bool)> =
            mails.into_iter().map(|mail| (mail.reason, mail.unmatched)).collect();
        reasons.sort();
        reasons
    };
    let own = |word: &str, unmatched| (word.to_owned(), unmatched);
    let theirs = listed(&harness, harness.globex.key("admin")).await;
    let name = theirs[0].name.clone();
    assert_eq!(reasons(theirs), [own("session_unknown", false)]);
    let of_operator = reasons(listed(&harness, harness.acme.key("operator")).await);
    assert_eq!(of_operator, [own("auto_reply", false)]);
    let of_admin = reasons(listed(&harness, harness.acme.key("admin")).await);
    assert_eq!(of_admin, [own("auto_reply", false), own("no_tenant", true), own("no_token", true)]);
    let mail =
        got(&harness, harness.globex.key("operator"), &name).await.expect("the mail belongs to globex");
    assert_eq!((mail.from.as_str(), mail.subject.as_str()), ("ann@example.com", "Re: release"));
    assert_eq!(mail.text.trim(), "Approve");
    // The reply address is known only to those who got it, so it is masked.
    let shown = String::from_utf8(named.clone()).expect("text");
    let (before, rest) = shown.split_once("r+").expect("an address");
    let shown = format!("{before}r+…@{}", rest.split_once('@').expect("an address").1);
    assert_eq!(String::from_utf8_lossy(&mail.content), shown);
    assert!(mail.headers.contains(&format!("To: r+…@{DOMAIN}")), "{}", mail.headers);
    assert!(mail.headers.starts_with("From: Ann") && mail.headers.contains(html), "{}", mail.headers);
    let short = name.rsplit('/').next().expect("a part");
    refused(got(&harness, harness.acme.key("admin"), short).await, "NOT_FOUND");
    let delete = v1::DeleteQuarantinedMailRequest { name };
    let gone = harness.node.line.ask::<v1::DeleteQuarantinedMailResponse>(
        harness.globex.key("admin"),
        "DeleteQuarantinedMail",
        &delete,
    );
    gone.await.expect("the mail is deleted");
    assert!(listed(&harness, harness.globex.key("admin")).await.is_empty());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_kept_is_brought_again_and_once_kept_is_one() {
    let harness = Harness::start().await;
    let (ingress, nobody) = (ingress(&harness), Envelope::default());
    let long = stray_reply(1, "", &"x".repeat(MAIL_KEPT_BYTES_MAX));
    harness.node.quarantine.full.store(true, Ordering::Relaxed);
    assert_eq!(ingress.ingest(&nobody, &long).await, Outcome::Later);
    assert!(listed(&harness, harness.acme.key("admin")).await.is_empty());
    harness.node.quarantine.full.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(ingress.ingest(&nobody, &long).await, Outcome::Quarantined("session_unknown"));
    }
    let mails = listed(&harness, harness.acme.key("admin")).await;
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert!(mail.truncated && mail.size_bytes > u64::try_from(MAIL_KEPT_BYTES_MAX).expect("few"));
    let mail = got(&harness, harness.acme.key("admin"), &mail.name).await.expect("the mail is kept");
    // The mask is shorter than the token.
    let left_out = MAIL_KEPT_BYTES_MAX - mail.content.len();
    assert!(mail.truncated && (1..100).contains(&left_out), "{left_out}");
    harness.node.end().await;
}

impl Harness {
    /// Ingests a mail with this text about a session of a tenant, which is quarantined; returns the outcome.
    async fn bring(&self, of: (u32, SessionId), text: &str) -> Outcome {
        let outcome = ingress(self).ingest(&Envelope::default(), &reply_to(of, "", text)).await;
        assert!(matches!(outcome, Outcome::Quarantined(_)), "{text}: {outcome:?}");
        outcome
    }

    /// Ingests a mail that names no tenant.
    async fn bring_strange(&self) {
        let strange =
            b"From: eve@example.com\r\nSubject: Hi\r\nMessage-ID: <2@example.com>\r\n\r\nstrange\r\n";
        let outcome = ingress(self).ingest(&Envelope::default(), strange).await;
        assert_eq!(outcome, Outcome::Quarantined("no_token"));
    }

    /// The texts of all quarantined mails of this server, in order.
    fn kept(&self) -> Vec<String> {
        let quarantine = &self.node.quarantine;
        let text = |id: &str| {
            let content =
                quarantine.content(id).expect("the content can be read").expect("the content exists");
            let content = String::from_utf8(content).expect("a text");
            content.trim_end().rsplit("\r\n").next().expect("a line").to_owned()
        };
        let mut texts: Vec<String> = quarantine.list().iter().map(|mail| text(&mail.id)).collect();
        texts.retain(|text| text != "Who are you?");
        texts.sort();
        texts
    }

    /// A session of acme that was cancelled.
    async fn ended(&self, key: &str) -> v1::Session {
        let start = v1::StartSessionRequest {
            definition: "release".into(),
            session_id: key.to_owned(),
            ..Default::default()
        };
        let reply: v1::StartSessionResponse = self.ask("agent", "StartSession", &start).await;
        let session = reply.session.expect("a session");
        let cancel = v1::CancelSessionRequest { name: session.name.clone(), ..Default::default() };
        let _: v1::CancelSessionResponse = self.ask("operator", "CancelSession", &cancel).await;
        session
    }

    async fn erase(&self, session: &v1::Session) {
        let erase = v1::EraseSessionRequest { name: session.name.clone(), ..Default::default() };
        let _: v1::EraseSessionResponse = self.ask("admin", "EraseSession", &erase).await;
    }

    async fn delete(&self, session: &v1::Session) {
        let delete = v1::DeleteSessionRequest { name: session.name.clone(), ..Default::default() };
        let _: v1::DeleteSessionResponse = self.ask("admin", "DeleteSession", &delete).await;
    }

    /// Sets one rule of acme, for all definitions.
    async fn put_rule(&self, rule: v1::RetentionRule) {
        let retention = Some(v1::Retention { rules: vec![rule], etag: String::new() });
        let put = v1::PutRetentionRequest { retention, ..Default::default() };
        let _: v1::PutRetentionResponse = self.ask("admin", "PutRetention", &put).await;
    }
}

fn days(days: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: days * 86_400, nanos: 0 })
}

fn id_of(session: &v1::Session) -> SessionId {
    session.name.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_with_the_session_that_it_names_and_with_no_other() {
    let harness = Harness::start().await;
    let live = harness.session().await;
    let [erased, deleted] = [harness.ended("erased").await, harness.ended("deleted").await];
    let theirs = id_of(&harness.globex.session);
    let never = SessionId::from_key(TenantId(1), "never");
    harness.bring((1, id_of(&erased)), "to erased").await;
    harness.bring((1, id_of(&deleted)), "to deleted").await;
    harness.bring((1, id_of(&live)), "to live").await;
    harness.bring((1, never), "to unknown").await;
    harness.bring((2, theirs), "to globex").await;
    // A session of another tenant than the token names is unknown.
    harness.bring((2, id_of(&erased)), "to globex of acme").await;
    harness.bring_strange().await;
    let all = harness.kept();
    assert_eq!((all.len(), sweep(&harness.node.api).await), (7, 0), "no session has ended: {all:?}");
    harness.erase(&erased).await;
    harness.delete(&deleted).await;
    let left = ["strange", "to globex", "to globex of acme", "to live", "to unknown"];
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (2, left.map(str::to_owned).to_vec()));
    assert_eq!((sweep(&harness.node.api).await, harness.node.api.quarantine_deleted()), (0, 2));
    // Mail that comes later is deleted as well, before and after the rows are removed.
    for removed in [false, true] {
        if removed {
            harness.node.quiet().await;
        }
        harness.node.clock.advance(1);
        assert_eq!(
            harness.bring((1, id_of(&erased)), "to erased").await,
            Outcome::Quarantined("session_ended")
        );
        harness.bring((1, id_of(&deleted)), "to deleted").await;
        assert_eq!(harness.kept().len(), 7, "a deleted mail that comes again is kept again");
        assert_eq!((sweep(&harness.node.api).await, harness.kept()), (2, left.map(str::to_owned).to_vec()));
    }
    assert_eq!(harness.node.api.quarantine_deleted(), 6);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_shows_the_session_that_its_address_names() {
    let harness = Harness::start().await;
    let session = id_of(&harness.acme.session);
    harness.bring((1, session), "to a session").await;
    harness.bring_strange().await;
    let mut sessions: Vec<String> =
        listed(&harness, harness.acme.key("admin")).await.into_iter().map(|mail| mail.session).collect();
    sessions.sort();
    assert_eq!(sessions, [String::new(), format!("tenants/acme/sessions/{session}")]);
    // With a key of acme, tokens of other tenants are not valid.
    let raw = reply_to((2, id_of(&harness.globex.session)), "", "to globex");
    let outcome =
        ingress(&harness).of(TenantId(1), "ops".to_owned()).ingest(&Envelope::default(), &raw).await;
    assert_eq!(outcome, Outcome::Quarantined("no_token"));
    assert!(listed(&harness, harness.globex.key("admin")).await.is_empty());
    let named = |mail: &v1::QuarantinedMail| !mail.session.is_empty();
    assert_eq!(
        listed(&harness, harness.acme.key("admin")).await.iter().filter(|mail| named(mail)).count(),
        1
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_to_a_new_session_of_a_deleted_ones_key_stays() {
    let harness = Harness::start().await;
    let before = harness.ended("again").await;
    harness.bring((1, id_of(&before)), "to the first").await;
    harness.delete(&before).await;
    harness.node.quiet().await;
    let after = harness.ended("again").await;
    assert_eq!(before.name, after.name);
    harness.node.clock.advance(1);
    harness.bring((1, id_of(&after)), "to the second").await;
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (1, vec!["to the second".to_owned()]));
    harness.erase(&after).await;
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (1, Vec::new()));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_with_a_session_that_expires_and_stays_where_its_history_alone_does() {
    let harness = Harness::start().await;
    let rule = v1::RetentionRule { ended_sessions: days(20), history: days(2), ..Default::default() };
    harness.put_rule(rule).await;
    let gate = harness.acme.gate.clone();
    let decide = v1::DecideGateRequest {
        name: gate,
        decision: v1::GateDecision::Approve.into(),
        ..Default::default()
    };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    let session = harness.acme.session.clone();
    let cancel = v1::CancelSessionRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    harness.bring((1, id_of(&session)), "to a session").await;
    let id = id_of(&session);
    let shard = harness.node.cluster.shard_of(id.bucket());
    let has = |key: &Key| shard.read_stale().row(key).expect("rows that can be read").is_some();
    let (of_session, remains) = (Key::session(TenantId(1), id), Key::removed(TenantId(1), id));
    harness.node.clock.advance(3 * DAY_MS);
    harness.node.until(|| has(&remains)).await;
    harness.node.quiet().await;
    assert!(has(&of_session), "only the history is removed");
    assert_eq!(sweep(&harness.node.api).await, 0);
    harness.node.clock.advance(18 * DAY_MS);
    harness.node.until(|| !has(&of_session)).await;
    assert!(has(&remains), "the decisions are kept");
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (1, Vec::new()));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_kept_as_long_as_the_rule_of_its_tenant_says() {
    let harness = Harness::start().await;
    let never = |tenant: u32| (tenant, SessionId::from_key(TenantId(tenant), "never"));
    let admin = harness.acme.key("admin").to_owned();
    harness.put_rule(v1::RetentionRule { quarantine: days(10), ..Default::default() }).await;
    harness.bring(never(1), "old").await;
    harness.bring(never(2), "to globex").await;
    harness.bring_strange().await;
    harness.node.clock.advance(10 * DAY_MS);
    harness.bring(never(1), "new").await;
    assert_eq!(sweep(&harness.node.api).await, 0, "exactly ten days have passed");
    assert_eq!(listed(&harness, &admin).await.len(), 3);
    harness.node.clock.advance(1);
    assert_eq!(listed(&harness, &admin).await.len(), 2, "the rule holds before the mail is deleted");
    let left = ["new", "strange", "to globex"].map(str::to_owned).to_vec();
    // The harness's own mail, which came before, is deleted as well.
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (2, left));
    // Without a rule it is 30 days, and no rule can set more.
    let longer = v1::RetentionRule { quarantine: days(31), ..Default::default() };
    let put = v1::PutRetentionRequest {
        retention: Some(v1::Retention { rules: vec![longer], etag: String::new() }),
        ..Default::default()
    };
    let longer: Result<v1::PutRetentionResponse, _> = harness.attempt("admin", "PutRetention", &put).await;
    refused(longer, "FIELD_INVALID");
    harness.put_rule(v1::RetentionRule { quarantine: days(30), ..Default::default() }).await;
    harness.node.clock.advance(MAIL_KEPT_MS_MAX - 10 * DAY_MS);
    let left = vec!["new".to_owned()];
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (3, left.clone()), "globex has no rule");
    harness.node.clock.advance(10 * DAY_MS - 1);
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (0, left));
    harness.node.clock.advance(1);
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (1, Vec::new()));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_with_its_tenant() {
    let harness = Harness::start().await;
    let never = |tenant: u32| (tenant, SessionId::from_key(TenantId(tenant), "never"));
    harness.bring(never(1), "to acme").await;
    harness.bring(never(2), "to globex").await;
    harness.bring((2, id_of(&harness.globex.session)), "to a session of globex").await;
    let delete = v1::DeleteTenantRequest { tenant_id: "globex".into(), ..Default::default() };
    let _: v1::DeleteTenantResponse = harness.ask("admin", "DeleteTenant", &delete).await;
    // The harness's own mail is deleted as well.
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (3, vec!["to acme".to_owned()]));
    let catalogue = harness.node.cluster.catalogue();
    let globex = || catalogue.read_stale().row(&Key::tenant("globex")).expect("rows that can be read");
    harness.node.until(|| globex().is_none()).await;
    assert_eq!(harness.bring(never(2), "late").await, Outcome::Quarantined("no_tenant"));
    let shown = listed(&harness, harness.acme.key("admin")).await;
    assert_eq!(shown.len(), 1, "mail of a deleted tenant is not shown to other tenants: {shown:?}");
    assert_eq!((sweep(&harness.node.api).await, harness.kept()), (1, vec!["to acme".to_owned()]));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_of_other_servers_is_shown_and_deleted_and_a_server_that_does_not_answer_is_named() {
    let harness = Harness::start().await;
    let (others, silent) = harness.node.other_quarantines();
    let (mail, raw) = mail("0123456789abcdef0123", Some(TenantId(1)), harness.node.cluster.now());
    let id = mail.id.clone();
    others.keep(mail, raw).expect("the mail is kept");
    harness.bring((1, id_of(&harness.acme.session)), "to this server").await;
    // Another server may have the mail itself, or is the one that does not answer.
    let line = harness.node.line.to(0);
    let (operator, unreachable) = (harness.acme.key("operator"), [format!("servers/{silent}")]);
    let list = v1::ListQuarantinedMailRequest::default();
    let listed: v1::ListQuarantinedMailResponse =
        line.ask(operator, "ListQuarantinedMail", &list).await.expect("the mail is listed");
    assert!(listed.mails.iter().any(|mail| mail.name.ends_with(&id)), "{listed:?}");
    assert!(listed.mails.len() > 1, "{listed:?}");
    assert_eq!(listed.unreachable, unreachable);
    let get = async |name: &str| -> Result<v1::GetQuarantinedMailResponse, _> {
        let request = v1::GetQuarantinedMailRequest { name: name.to_owned(), ..Default::default() };
        line.ask(operator, "GetQuarantinedMail", &request).await
    };
    let shown = get(&id).await.expect("another server has it").mail.expect("a mail");
    assert_eq!(shown.text.trim(), "Who are you?");
    // The server that does not answer may have it.
    refused(get("ffffffffffffffffffff").await, "SERVER_UNREACHABLE");
    let delete = async |id: &str| -> Result<v1::DeleteQuarantinedMailResponse, _> {
        let request = v1::DeleteQuarantinedMailRequest { name: id.to_owned() };
        line.ask(operator, "DeleteQuarantinedMail", &request).await
    };
    for round in 0..2 {
        let deleted = delete(&id).await.expect("the mail is deleted, or was");
        assert_eq!(deleted.unreachable, unreachable, "round {round}");
        assert!(others.list().is_empty());
    }
    refused(delete("ffffffffffffffffffff").await, "SERVER_UNREACHABLE");
    harness.node.end().await;
}
