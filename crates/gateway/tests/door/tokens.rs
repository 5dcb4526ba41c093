//! Reply tokens: what they open, for how long, and who gets to see them.

use prost::Message;
use switchward_api::v1;

use crate::rpcs::all;
use crate::told::{Told, refused};
use crate::ways::{Raw, Way, body, reply, stream};
use crate::world::World;
use tonic::Status;

/// A parcel: the carrier notes it, then ships it.
const PARCEL: &str = r#"{
  "name": "parcel",
  "states": [
    {
      "name": "note",
      "type": "action",
      "execution_mode": "deterministic",
      "operations": [
        { "type": "send_notification", "config": { "channel": "webhook", "recipients": ["https://example.com/?t={gathered.reply_token}"], "subject": "Answer with {gathered.reply_token}, please", "body": "b" } },
        { "type": "set_data", "config": { "key": "note", "value": ["Answer with {gathered.reply_token}, please"] } }
      ]
    },
    { "name": "ship", "type": "conversation", "instructions": "Give {gathered.reply_token} to the carrier" },
    { "name": "shipped", "type": "conversation" }
  ],
  "transitions": [
    { "from": "note", "to": "ship", "guards": [{ "type": "external_event", "config": { "event_key": "noted" } }] },
    { "from": "ship", "to": "shipped", "guards": [{ "type": "external_event", "config": { "event_key": "shipped" } }] }
  ]
}"#;

async fn parcel(world: &World) -> v1::Session {
    world.deploy(PARCEL).await;
    let request = v1::StartSessionRequest { definition: "parcel".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = world.ask("agent", "StartSession", &request).await;
    reply.session.expect("a session")
}

fn event(key: &str) -> v1::RecordEventRequest {
    v1::RecordEventRequest { key: key.into(), ..Default::default() }
}

/// Records an event with a token in the place of a key.
async fn send(world: &World, token: &str, event: &v1::RecordEventRequest) -> Result<v1::Session, Status> {
    let reply: v1::RecordEventResponse = world.node.line.ask(token, "RecordEvent", event).await?;
    Ok(reply.session.expect("a session"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_an_event_in_while_its_state_lasts() {
    let world = World::start().await;
    let session = parcel(&world).await;
    let first = session.reply_token.clone();
    let once = v1::RecordEventRequest { request_id: "noted-1".into(), ..event("noted") };
    let told = send(&world, &first, &once).await.expect("it is let in");
    assert_eq!((told.at.as_slice(), told.name.as_str()), (&["ship".to_owned()][..], session.name.as_str()));
    let shown = v1::Session { at: Vec::new(), name: String::new(), ..told.clone() };
    let known = v1::Session {
        status: told.status,
        status_word: told.status_word.clone(),
        sequence: told.sequence,
        update_time: told.update_time,
        ..v1::Session::default()
    };
    assert_eq!(shown, known, "the holder of a token is told where the session stands, and nothing else");
    let again = send(&world, &first, &once).await.expect("a repetition is answered like the first");
    assert_eq!(again.sequence, told.sequence);
    let outcome = send(&world, &first, &event("noted")).await;
    refused(outcome, "STATE_MISMATCH");
    let second = world.look(&session.name).await.reply_token;
    assert_ne!(first, second);
    let named =
        v1::RecordEventRequest { name: session.name.clone(), state: "ship".into(), ..event("shipped") };
    assert_eq!(send(&world, &second, &named).await.expect("it is let in").at, ["shipped"]);
    assert_eq!(world.look(&session.name).await.reply_token, "");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_nothing_else() {
    let world = World::start().await;
    let token = parcel(&world).await.reply_token;
    let mut first: Option<Told> = None;
    for rpc in all().into_iter().filter(|rpc| rpc.method != "RecordEvent") {
        let message = rpc.request(&world).await.encode_to_vec();
        let raw = Raw::post(Way::Grpc, rpc.method, body(Way::Grpc, rpc.method, &message));
        let answer = world.node.line.send(raw.with_key(&token)).await;
        let outcome = if rpc.streams() {
            stream(Way::Grpc, &answer).1
        } else {
            reply(Way::Grpc, rpc.method, &answer).map(drop)
        };
        let told = Told::of(&outcome.expect_err("it opens nothing"));
        assert_eq!(told, *first.get_or_insert_with(|| told.clone()), "{}", rpc.method);
    }
    assert_eq!(first.expect("an answer").reason, "CREDENTIAL_INVALID");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_for_its_session_alone() {
    let world = World::start().await;
    let (one, other) = (parcel(&world).await, parcel(&world).await);
    let unknown = "tenants/-/sessions/ses_00000000000000000000000000";
    let mut told = Vec::new();
    for name in [other.name.as_str(), unknown] {
        let named = v1::RecordEventRequest { name: name.into(), ..event("noted") };
        let status = send(&world, &one.reply_token, &named).await.expect_err("it is another session");
        told.push(format!("{:?}", Told::of(&status)).replace(name, "NAME"));
    }
    assert!(told[0] == told[1] && told[0].contains("NOT_FOUND"), "{told:?}");
    let id = |session: &v1::Session| session.name.rsplit('/').next().expect("an id").to_owned();
    let token = &one.reply_token;
    let code = token.rsplit('.').next().expect("a code");
    let zero = "0".repeat(code.len());
    let mut forged = vec![
        token.replace(&id(&one), &id(&other)),
        token.replace("acme", "globex"),
        token.replace("acme", "nobody"),
        token.replace("acme", ""),
        token.replace(".1.1.", ".1.2."),
        token.replace(".1.1.", ".2.1."),
        token.replace(".1.1.", ".01.1."),
        token.replace(".1.1.", ".+1.1."),
        token.replace(".1.1.", ".1.99999999999."),
        token.replace(code, &zero),
        token.replace(code, ""),
        token.to_uppercase(),
        format!("{token}0"),
        format!("{token}.0"),
        "swr_".into(),
        "swr_....".into(),
        "swr_\u{e9}.ses_1.1.1.ä".into(),
        format!("swr_{}", "a.".repeat(2_000)),
    ];
    forged.extend((token.len() - code.len()..token.len()).map(|at| {
        let changed = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
        format!("{}{changed}{}", &token[..at], &token[at + 1..])
    }));
    let before = world.node.state().await;
    for forged in forged {
        let raw = Raw::post(
            Way::Grpc,
            "RecordEvent",
            body(Way::Grpc, "RecordEvent", &event("noted").encode_to_vec()),
        );
        let answer = world.node.line.send(raw.with_key(&forged)).await;
        let status = reply(Way::Grpc, "RecordEvent", &answer).expect_err(&forged);
        assert_eq!(Told::of(&status).reason, "CREDENTIAL_INVALID", "{forged}");
    }
    assert_eq!(world.node.state().await, before);
    assert_eq!(send(&world, token, &event("noted")).await.expect("it is let in").at, ["ship"]);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_record_events_sees_no_token() {
    let world = World::start().await;
    let session = parcel(&world).await;
    let token = session.reply_token.clone();
    let get = v1::GetSessionRequest { name: session.name.clone(), ..Default::default() };
    let list =
        v1::ListSessionEventsRequest { name: session.name.clone(), page_size: 1_000, ..Default::default() };
    let id = session.name.rsplit('/').next().expect("an id");
    let filter = format!("session=\"{id}\"");
    let effects = v1::ListEffectsRequest { filter, ..v1::ListEffectsRequest::default() };
    for (role, sees) in
        [("agent", 2), ("operator", 2), ("admin", 2), ("worker", 1), ("author", 0), ("approver", 0)]
    {
        let got: v1::GetSessionResponse = world.ask(role, "GetSession", &get).await;
        let events: v1::ListSessionEventsResponse = world.ask(role, "ListSessionEvents", &list).await;
        let shown = got.session.expect("a session");
        assert_eq!(shown.reply_token, if sees == 2 { token.as_str() } else { "" }, "{role}");
        let data = format!("{:?}", shown.data);
        let wanted = if sees == 0 { "Answer with swr_…, please" } else { token.as_str() };
        assert!(data.contains(wanted), "{role}: {data}");
        let events = format!("{events:?}");
        assert!(events.contains(wanted), "{role}: {events}");
        assert_eq!(events.contains(&token), sees > 0, "{role}: {events}");
        let sent: v1::ListEffectsResponse = world.ask(role, "ListEffects", &effects).await;
        let [sent] = &sent.effects[..] else { panic!("{role}: {sent:?}") };
        let address = if sees > 0 { token.as_str() } else { "swr_…" };
        assert_eq!(
            (&sent.to, sent.subject.as_str()),
            (&format!("https://example.com/?t={address}"), &*format!("Answer with {address}, please"))
        );
    }
    let _moved = send(&world, &token, &event("noted")).await.expect("it is let in");
    let token = world.look(&session.name).await.reply_token;
    for (role, sees) in [("agent", true), ("approver", false)] {
        let got: v1::GetSessionResponse = world.ask(role, "GetSession", &get).await;
        let asked = got.session.expect("a session").instructions;
        assert_eq!(asked.contains(&token), sees, "{role}: {asked}");
        assert!(asked.starts_with("Give swr_") && asked.ends_with(" to the carrier"), "{role}: {asked}");
    }
    world.node.end().await;
}
