//! Definitions whose ends an agent must not reach, and sessions of them.

use switchward_api::v1;

use super::fields::Pool;
use crate::hostile::dice::Dice;
use crate::world::{RELEASE, World};

/// States that only somebody or something else can lead to.
pub(super) const FORBIDDEN: &str = "forbidden";

/// An approval of what an agent has recorded, which is used through what was shown.
pub(super) const PAY: &str = r#"{
  "name": "pay",
  "states": [
    { "name": "decide", "type": "approval", "approvers": ["boss@acme.example"],
      "request_template": {
        "subject_template": "Pay?", "body_template": "Pay {{ gathered_data.amount }} to {{ gathered_data.to }}?" } },
    { "name": "used", "type": "logic", "operations": [
      { "type": "set_data", "config": { "key": "paid", "value": "{gathered_data.approval.decide.shown.amount}" } } ] },
    { "name": "forbidden", "type": "conversation" },
    { "name": "refused", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "used" },
    { "from": "decide", "port": "rejected", "to": "refused" },
    { "from": "used", "to": "forbidden", "guards": [{ "type": "always" }] }
  ]
}"#;

/// A wait for a webhook.
const SHIP: &str = r#"{
  "name": "ship",
  "states": [
    { "name": "arrive", "type": "wait", "wait_for": "webhook", "timeout_hours": 48 },
    { "name": "forbidden", "type": "conversation" }
  ],
  "transitions": [{ "from": "arrive", "port": "received", "to": "forbidden" }]
}"#;

/// A guard on an event from outside.
const OUTSIDE: &str = r#"{
  "name": "outside",
  "states": [
    { "name": "ask", "type": "conversation", "instructions": "Ask." },
    { "name": "forbidden", "type": "conversation" }
  ],
  "transitions": [{ "from": "ask", "to": "forbidden",
    "guards": [{ "type": "external_event", "config": { "event_key": "paid" } }] }]
}"#;

/// A guard on what the user said.
const CONFIRM: &str = r#"{
  "name": "confirm",
  "states": [
    { "name": "ask", "type": "conversation", "instructions": "Ask." },
    { "name": "forbidden", "type": "conversation" }
  ],
  "transitions": [{ "from": "ask", "to": "forbidden", "guards": [{ "type": "user_confirmed" }] }]
}"#;

/// Definitions that a run begins a session of.
pub(super) const DEFINITIONS: [&str; 5] = ["pay", "ship", "outside", "confirm", "release"];

/// A server with those definitions, and what an admin has set.
pub(super) struct Site {
    pub(super) world: World,
    /// What stands for the tenant's settings and its directory.
    pub(super) etags: [String; 2],
    /// The key of who may approve payments.
    pub(super) boss: String,
}

impl Site {
    pub(super) async fn start() -> Self {
        let world = World::start().await;
        for source in [PAY, SHIP, OUTSIDE, CONFIRM] {
            world.deploy(source).await;
        }
        // The first version of it asks about fewer calls than the second one.
        world.deploy(&RELEASE.replace("{ \"capability\": \"mcp:filesystem:write_file\" }", ASKS)).await;
        let entry = |name: &str, members: &[&str]| v1::DirectoryEntry {
            name: name.to_owned(),
            members: members.iter().map(|member| (*member).to_owned()).collect(),
            ..v1::DirectoryEntry::default()
        };
        let entries = vec![
            entry("owner:release", &["boss@acme.example", "second@acme.example"]),
            entry("boss", &["boss@acme.example"]),
        ];
        let directory = v1::Directory { entries, audience: vec!["boss".into()], ..Default::default() };
        let put = v1::PutDirectoryRequest { directory: Some(directory), ..Default::default() };
        let _: v1::PutDirectoryResponse = world.ask("admin", "PutDirectory", &put).await;
        let etags = super::truths::etags(&world).await;
        let create = v1::CreateApiKeyRequest {
            role: v1::KeyRole::Approver.into(),
            subject: "boss@acme.example".into(),
            ..Default::default()
        };
        let made: v1::CreateApiKeyResponse = world.ask("admin", "CreateApiKey", &create).await;
        Self { world, etags, boss: made.secret }
    }

    /// A new session of each definition, begun as the role's user would; what the run's calls are about.
    pub(super) async fn sessions(&self, role: &str, dice: &mut Dice) -> Pool {
        let mut pool = Pool::default();
        let starts = if role == "agent" { "agent" } else { "operator" };
        for definition in DEFINITIONS {
            let fields = [("amount", "1200"), ("to", "dell@supplier.example")];
            let value = |text: &str| prost_types::Value {
                kind: Some(prost_types::value::Kind::StringValue(text.to_owned())),
            };
            let fields = fields.map(|(key, text)| (key.to_owned(), value(text)));
            let input = (definition == "pay").then(|| prost_types::Struct { fields: fields.into() });
            let request =
                v1::StartSessionRequest { definition: definition.into(), input, ..Default::default() };
            let reply: v1::StartSessionResponse = self.world.ask(starts, "StartSession", &request).await;
            let session = reply.session.expect("a session");
            pool.names.extend(session.waiting_on.iter().map(|gate| gate.name.clone()));
            pool.names.push(session.name.clone());
            pool.sessions.push(session.name);
        }
        if dice.below(2) == 0 {
            let call = self.world.authorize(&pool.sessions[4], "mcp:filesystem:write_file").await;
            pool.names.push(call.gate);
        }
        pool
    }

    pub(super) async fn end(self) {
        self.world.node.end().await;
    }
}

/// What the second version of `release` asks about.
const ASKS: &str =
    "{ \"capability\": \"mcp:filesystem:write_file\" }, { \"capability\": \"mcp:filesystem:read_file\" }";
