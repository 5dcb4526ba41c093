//! Where nobody is told of what people are asked, that is shown wherever the session or the gate is.

use switchward_api::v1;

use crate::world::{World, tool_call};

async fn put(world: &World, entries: &[(&str, &[&str])], audience: &[&str]) -> Vec<String> {
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
    let reply: v1::PutDirectoryResponse = world.ask("admin", "PutDirectory", &put).await;
    let got: v1::GetDirectoryResponse =
        world.ask("admin", "GetDirectory", &v1::GetDirectoryRequest::default()).await;
    assert_eq!(got.warnings, reply.warnings);
    reply.warnings
}

async fn start(world: &World, audience: &[&str]) -> v1::StartSessionResponse {
    let audience = audience.iter().map(|one| (*one).to_owned()).collect();
    let request = v1::StartSessionRequest { definition: "release".into(), audience, ..Default::default() };
    world.ask("operator", "StartSession", &request).await
}

/// A call that is asked about: what its caller hears, and the gate as the session and as the gate's own view show it.
async fn ask(world: &World, session: &str) -> (v1::AuthorizeToolCallResponse, v1::OpenGate, v1::Gate) {
    let call = tool_call(session, "mcp:filesystem:write_file");
    let told: v1::AuthorizeToolCallResponse = world.ask("agent", "AuthorizeToolCall", &call).await;
    let open = world.look(session).await.waiting_on.into_iter().next().expect("a gate");
    let request = v1::GetGateRequest { name: open.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = world.ask("agent", "GetGate", &request).await;
    (told, open, reply.gate.expect("a gate"))
}

/// What of a session waits to go out.
async fn effects(world: &World, session: &str) -> Vec<v1::Effect> {
    let filter = format!("session=\"{}\"", session.rsplit('/').next().expect("a part"));
    let list = v1::ListEffectsRequest { filter, ..Default::default() };
    let listed: v1::ListEffectsResponse = world.ask("operator", "ListEffects", &list).await;
    listed.effects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_says_what_of_it_leads_to_nobody() {
    let world = World::start().await;
    let none = put(&world, &[("kim", &["kim@acme.example"]), ("group:release", &["kim"])], &["kim"]).await;
    assert_eq!(none, [""; 0]);
    let odd = put(&world, &[("a", &["b"]), ("b", &["a"]), ("group:release", &["kim"])], &["nobody"]).await;
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
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_of_which_nobody_is_told_shows_that_everywhere() {
    let world = World::start().await;
    let reply = start(&world, &["group:none", "ops@acme.example"]).await;
    assert_eq!(reply.warnings, ["group:none is to be told, and leads to no address now"]);
    let session = reply.session.expect("a session");
    assert_eq!(session.audience, ["group:none", "ops@acme.example"]);
    let (told, open, gate) = ask(&world, &session.name).await;
    assert_eq!((told.unheard, open.unheard, gate.unheard), (false, false, false), "somebody is told");
    assert_eq!(
        (open.told.as_slice(), gate.told.as_slice()),
        (&session.audience[1..], &session.audience[1..])
    );
    let session = start(&world, &["group:none"]).await.session.expect("a session");
    let (told, open, gate) = ask(&world, &session.name).await;
    assert_eq!((told.unheard, open.unheard, gate.unheard), (true, true, true), "nobody is");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_cannot_decide_and_is_nobody_who_knows_of_it() {
    let world = World::start().await;
    let session = start(&world, &["agent@acme"]).await.session.expect("a session");
    let (told, open, gate) = ask(&world, &session.name).await;
    assert_eq!(gate.requested_by, "agent@acme");
    assert_eq!((told.unheard, open.unheard, gate.unheard), (true, true, true));
    let warned = ["nobody is told but agent@acme, who asked and cannot decide"];
    assert_eq!(
        (told.warnings.as_slice(), gate.warnings.as_slice()),
        (warned.map(str::to_owned).as_slice(), warned.map(str::to_owned).as_slice())
    );
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_directory_is_mended_those_who_should_have_been_told_are() {
    let world = World::start().await;
    let session = start(&world, &["group:release"]).await.session.expect("a session");
    let (_, _, gate) = ask(&world, &session.name).await;
    assert_eq!(gate.warnings, ["nobody is told of it"]);
    let effects = self::effects(&world, &session.name).await;
    let notice = effects.first().expect("a notice").clone();
    assert_eq!(notice.kind, "notice");
    let retry = v1::RetryEffectRequest { name: notice.name.clone(), ..Default::default() };
    let before = world.look(&session.name).await.sequence;
    let reply: v1::RetryEffectResponse = world.ask("operator", "RetryEffect", &retry).await;
    assert_eq!(reply.effect, Some(notice), "it still leads to nobody");
    assert_eq!(world.look(&session.name).await.sequence, before);
    put(&world, &[("group:release", &["kim@acme.example", "dana@acme.example"])], &[]).await;
    let reply: v1::RetryEffectResponse = world.ask("operator", "RetryEffect", &retry).await;
    assert_eq!(reply.effect, None, "the notice has nothing left to say");
    let request = v1::GetGateRequest { name: gate.name.clone(), ..Default::default() };
    let now: v1::GetGateResponse = world.ask("agent", "GetGate", &request).await;
    let now = now.gate.expect("a gate");
    assert_eq!((now.unheard, now.told.len(), now.warnings.len()), (false, 2, 0), "{now:?}");
    let effects = self::effects(&world, &session.name).await;
    let to: Vec<&str> = effects.iter().map(|effect| effect.to.as_str()).collect();
    assert_eq!(to, ["kim@acme.example", "dana@acme.example"]);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_whose_mails_reach_nobody_shows_that_until_one_does() {
    let world = World::start().await;
    let session = start(&world, &["kim@acme.example"]).await.session.expect("a session");
    let (_, open, _) = ask(&world, &session.name).await;
    assert!(!open.unheard);
    let effects = self::effects(&world, &session.name).await;
    let name = effects.first().expect("a mail").name.clone();
    let fail =
        v1::FailEffectRequest { name: name.clone(), code: "mail_rejected".into(), ..Default::default() };
    let _: v1::FailEffectResponse = world.ask("operator", "FailEffect", &fail).await;
    let open = world.look(&session.name).await.waiting_on.into_iter().next().expect("a gate");
    assert_eq!(
        (open.unheard, open.undeliverable.as_slice()),
        (true, ["kim@acme.example".to_owned()].as_slice())
    );
    let retry = v1::RetryEffectRequest { name, ..Default::default() };
    let _: v1::RetryEffectResponse = world.ask("operator", "RetryEffect", &retry).await;
    assert!(!world.look(&session.name).await.waiting_on[0].unheard);
    world.node.end().await;
}
