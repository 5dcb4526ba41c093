//! Definitions with states that an agent must not reach, and sessions of them.

use switchward_api::v1;

use super::fields::Pool;
use crate::harness::{Harness, RELEASE};
use crate::hostile::dice::Dice;

/// States that an agent alone must not reach.
pub(super) const FORBIDDEN: &str = "forbidden";

/// An approval of data that an agent has recorded; the process uses the data as shown.
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

/// The definitions of which a run starts a session.
pub(super) const DEFINITIONS: [&str; 5] = ["pay", "ship", "outside", "confirm", "release"];

/// A server with those definitions and an admin's settings.
pub(super) struct Site {
    pub(super) harness: Harness,
    /// The etags of the tenant and its directory.
    pub(super) etags: [String; 2],
    /// The key that may approve payments.
    pub(super) boss: String,
}

impl Site {
    pub(super) async fn start() -> Self {
        let harness = Harness::start().await;
        for source in [PAY, SHIP, OUTSIDE, CONFIRM] {
            harness.deploy(source).await;
        }
        // The first version of it asks about fewer calls than the second one.
        harness.deploy(&RELEASE.replace("{ \"capability\": \"mcp:filesystem:write_file\" }", ASKS)).await;
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
        let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put).await;
        let etags = super::truths::etags(&harness).await;
        let create = v1::CreateApiKeyRequest {
            role: v1::KeyRole::Approver.into(),
            subject: "boss@acme.example".into(),
            ..Default::default()
        };
        let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
        Self { harness, etags, boss: made.secret }
    }

    /// Starts a session of each definition as the role's user would; returns the names for the run's calls.
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
            let reply: v1::StartSessionResponse = self.harness.ask(starts, "StartSession", &request).await;
            let session = reply.session.expect("a session");
            pool.names.extend(session.waiting_on.iter().map(|gate| gate.name.clone()));
            pool.names.push(session.name.clone());
            pool.sessions.push(session.name);
        }
        if dice.below(2) == 0 {
            let call = self.harness.authorize(&pool.sessions[4], "mcp:filesystem:write_file").await;
            pool.names.push(call.gate);
        }
        pool
    }

    pub(super) async fn end(self) {
        self.harness.node.end().await;
    }
}

/// The capabilities for which the second version of `release` asks.
const ASKS: &str =
    "{ \"capability\": \"mcp:filesystem:write_file\" }, { \"capability\": \"mcp:filesystem:read_file\" }";
