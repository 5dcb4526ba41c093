//! A gate that notifies nobody shows that wherever the session or the gate is shown.

use switchward_api::v1;

use crate::harness::{Harness, tool_call};

async fn put(harness: &Harness, entries: &[(&str, &[&str])], audience: &[&str]) -> Vec<String> {
    let list = |names: &[&str]| names.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let entries = entries
        .iter()
        .map(|(name, members)| v1::DirectoryEntry {
            name: (*name).to_owned(),
            members: list(members),
            settings: None,
        })
        .collect();
    let directory = Some(v1::Directory { entries, audience: list(audience), ..v1::Directory::default() });
    let put = v1::PutDirectoryRequest { directory, ..Default::default() };
    let reply: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put).await;
    let got: v1::GetDirectoryResponse =
        harness.ask("admin", "GetDirectory", &v1::GetDirectoryRequest::default()).await;
    assert_eq!(got.warnings, reply.warnings);
    reply.warnings
}

async fn start(harness: &Harness, audience: &[&str]) -> v1::StartSessionResponse {
    let audience = audience.iter().map(|one| (*one).to_owned()).collect();
    let request = v1::StartSessionRequest { definition: "release".into(), audience, ..Default::default() };
    harness.ask("operator", "StartSession", &request).await
}

/// Opens a gate: returns the reply to the tool call, and the gate as shown by the session and by the gate's own view.
async fn ask(harness: &Harness, session: &str) -> (v1::AuthorizeToolCallResponse, v1::OpenGate, v1::Gate) {
    let call = tool_call(session, "mcp:filesystem:write_file");
    let asked: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    let open = harness.look(session).await.waiting_on.into_iter().next().expect("a gate");
    let request = v1::GetGateRequest { name: open.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    (asked, open, reply.gate.expect("a gate"))
}

/// The queued effects of a session.
async fn effects(harness: &Harness, session: &str) -> Vec<v1::Effect> {
    let filter = format!("session=\"{}\"", session.rsplit('/').next().expect("a part"));
    let list = v1::ListEffectsRequest { filter, ..Default::default() };
    let listed: v1::ListEffectsResponse = harness.ask("operator", "ListEffects", &list).await;
    listed.effects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_says_what_of_it_leads_to_nobody() {
    let harness = Harness::start().await;
    let none = put(&harness, &[("kim", &["kim@acme.example"]), ("group:release", &["kim"])], &["kim"]).await;
    assert_eq!(none, [""; 0]);
    let odd = put(&harness, &[("a", &["b"]), ("b", &["a"]), ("group:release", &["kim"])], &["nobody"]).await;
    assert_eq!(
        odd,
        [
            "a leads to no address",
            "b leads to no address",
            "group:release leads to no address",
            "kim, a member of group:release, is neither an address nor a name of the directory",
            "nobody, of the default audience, leads to no address",
        ]
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_notifies_nobody_shows_that_everywhere() {
    let harness = Harness::start().await;
    let reply = start(&harness, &["group:none", "ops@acme.example"]).await;
    assert_eq!(reply.warnings, ["group:none is to be notified, and leads to no address now"]);
    let session = harness.look(&reply.session.expect("a session").name).await;
    assert_eq!(session.audience, ["group:none", "ops@acme.example"]);
    let (asked, open, gate) = ask(&harness, &session.name).await;
    assert_eq!(
        (asked.unnotified, open.unnotified, gate.unnotified),
        (false, false, false),
        "somebody is notified"
    );
    assert_eq!(
        (open.notified.as_slice(), gate.notified.as_slice()),
        (&session.audience[1..], &session.audience[1..])
    );
    let session = start(&harness, &["group:none"]).await.session.expect("a session");
    let (asked, open, gate) = ask(&harness, &session.name).await;
    assert_eq!(
        (asked.unnotified, open.unnotified, gate.unnotified),
        (true, true, true),
        "nobody is notified"
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_cannot_decide_and_is_nobody_who_knows_of_it() {
    let harness = Harness::start().await;
    let session = start(&harness, &["agent@acme"]).await.session.expect("a session");
    let (asked, open, gate) = ask(&harness, &session.name).await;
    assert_eq!(gate.requested_by, "agent@acme");
    assert_eq!((asked.unnotified, open.unnotified, gate.unnotified), (true, true, true));
    let warned = ["nobody is notified except agent@acme, who asked for this and cannot decide"];
    assert_eq!(
        (asked.warnings.as_slice(), gate.warnings.as_slice()),
        (warned.map(str::to_owned).as_slice(), warned.map(str::to_owned).as_slice())
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_directory_is_mended_the_missed_recipients_are_notified() {
    let harness = Harness::start().await;
    let session = start(&harness, &["group:release"]).await.session.expect("a session");
    let (_, _, gate) = ask(&harness, &session.name).await;
    assert_eq!(gate.warnings, ["nobody is notified of it"]);
    let effects = self::effects(&harness, &session.name).await;
    let notice = effects.first().expect("a notice").clone();
    assert_eq!(notice.kind, "notice");
    let retry = v1::RetryEffectRequest { name: notice.name.clone(), ..Default::default() };
    let before = harness.look(&session.name).await.sequence;
    let reply: v1::RetryEffectResponse = harness.ask("operator", "RetryEffect", &retry).await;
    let notice = v1::Effect { subject: String::new(), ..notice };
    assert_eq!(reply.effect, Some(notice), "the name still has no address");
    assert_eq!(harness.look(&session.name).await.sequence, before);
    put(&harness, &[("group:release", &["kim@acme.example", "dana@acme.example"])], &[]).await;
    let reply: v1::RetryEffectResponse = harness.ask("operator", "RetryEffect", &retry).await;
    assert_eq!(reply.effect, None, "the notice is no longer needed");
    let request = v1::GetGateRequest { name: gate.name.clone(), ..Default::default() };
    let now: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    let now = now.gate.expect("a gate");
    assert_eq!((now.unnotified, now.notified.len(), now.warnings.len()), (false, 2, 0), "{now:?}");
    let effects = self::effects(&harness, &session.name).await;
    let to: Vec<&str> = effects.iter().map(|effect| effect.to.as_str()).collect();
    assert_eq!(to, ["kim@acme.example", "dana@acme.example"]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_whose_mails_reach_nobody_shows_that_until_one_does() {
    let harness = Harness::start().await;
    let session = start(&harness, &["kim@acme.example"]).await.session.expect("a session");
    let (_, open, _) = ask(&harness, &session.name).await;
    assert!(!open.unnotified);
    let effects = self::effects(&harness, &session.name).await;
    let name = effects.first().expect("a mail").name.clone();
    let fail =
        v1::FailEffectRequest { name: name.clone(), code: "mail_rejected".into(), ..Default::default() };
    let _: v1::FailEffectResponse = harness.ask("operator", "FailEffect", &fail).await;
    let open = harness.look(&session.name).await.waiting_on.into_iter().next().expect("a gate");
    assert_eq!(
        (open.unnotified, open.undeliverable.as_slice()),
        (true, ["kim@acme.example".to_owned()].as_slice())
    );
    let retry = v1::RetryEffectRequest { name, ..Default::default() };
    let _: v1::RetryEffectResponse = harness.ask("operator", "RetryEffect", &retry).await;
    assert!(!harness.look(&session.name).await.waiting_on[0].unnotified);
    harness.node.end().await;
}
