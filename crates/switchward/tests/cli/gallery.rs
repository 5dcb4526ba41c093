//! The support conversation of the gallery from its opening message to its end: a worker by gRPC, people and the customer
//! by calls of the API, on a clock that is moved by hand.

use prost_types::{ListValue, Struct, value::Kind};
use serde_json::{Value, json};
use std::time::Duration;
use switchward_api::v1::{
    self, session_service_client::SessionServiceClient, watch_session_response::Update,
    worker_service_client::WorkerServiceClient,
};
use tonic::{
    Request, Streaming,
    transport::{Channel, Endpoint},
};

use crate::support::{Dev, repository};

/// How long the test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request with a key.
fn with_key<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().expect("a header"));
    request
}

async fn connect(dev: &Dev) -> Channel {
    let endpoint = Endpoint::from_shared(dev.address().to_owned()).expect("an address");
    endpoint.connect().await.expect("the server listens")
}

fn text(text: &str) -> prost_types::Value {
    prost_types::Value { kind: Some(Kind::StringValue(text.to_owned())) }
}

/// The worker's result for an item: the intended workflow, or the data in the text.
fn read(item: &v1::WorkItem) -> Struct {
    let input = item.input.as_ref().expect("an input");
    let Some(Kind::StringValue(said)) = &input.fields["text"].kind else { panic!("no text: {input:?}") };
    let mut result = Struct::default();
    if item.kind() == v1::WorkKind::Intent {
        let list = ListValue { values: vec![text("complaint")] };
        let meant = prost_types::Value { kind: Some(Kind::ListValue(list)) };
        result.fields.insert("workflows".to_owned(), meant);
        return result;
    }
    if said.contains("lamp") {
        result.fields.insert("problem".to_owned(), text("The lamp is broken"));
    }
    if let Some(order) = said.split([' ', '.', ',']).find(|word| word.starts_with("A-")) {
        result.fields.insert("order".to_owned(), text(order));
    }
    result
}

/// A worker that does one thing at a time.
struct Worker {
    client: WorkerServiceClient<Channel>,
    key: String,
}

impl Worker {
    /// Takes the next work, which must be of this kind and for this state, and hands in what it says.
    async fn works(&mut self, kind: v1::WorkKind, state: &str) {
        let wanted = v1::WorkWanted {
            kinds: vec![v1::WorkKind::Intent.into(), v1::WorkKind::Extract.into()],
            ..v1::WorkWanted::default()
        };
        let wait = Some(prost_types::Duration { seconds: 30, nanos: 0 });
        let poll = v1::PollWorkRequest { wanted: Some(wanted), wait, ..Default::default() };
        let taken = self.client.poll_work(with_key(&self.key, poll)).await.expect("work").into_inner();
        let item = taken.items.first().expect("it comes in time");
        assert_eq!((item.kind(), item.state.as_str()), (kind, state));
        let complete = v1::CompleteWorkRequest {
            name: item.name.clone(),
            lease_token: item.lease_token.clone(),
            result: Some(read(item)),
            ..v1::CompleteWorkRequest::default()
        };
        let done = self.client.complete_work(with_key(&self.key, complete)).await.expect("a reply");
        assert!(done.get_ref().accepted, "{done:?}");
    }
}

/// The history of the session, as it comes.
struct Watched {
    stream: Streaming<v1::WatchSessionResponse>,
    seen: Vec<v1::SessionEvent>,
}

impl Watched {
    async fn next(&mut self) -> Option<v1::SessionEvent> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.stream.message()).await.expect("something comes");
            match next.expect("no refusal")?.update.expect("an update") {
                Update::Event(event) => {
                    self.seen.push(event.clone());
                    return Some(event);
                }
                Update::Heartbeat(_) => {}
            }
        }
    }

    /// Reads on to the next event of this type.
    async fn until(&mut self, kind: &str) -> v1::SessionEvent {
        while let Some(event) = self.next().await {
            if event.r#type == kind {
                return event;
            }
        }
        panic!("it ended without {kind}: {:?}", self.seen);
    }

    /// The subjects and recipients of the mails so far.
    fn mails(&self) -> Vec<(String, String)> {
        let word = |data: &Struct, key: &str| match data.fields.get(key).and_then(|it| it.kind.clone()) {
            Some(Kind::StringValue(text)) => text,
            _ => String::new(),
        };
        let queued = self.seen.iter().filter(|event| event.r#type == "effect.queued");
        let data = queued.filter_map(|event| event.data.as_ref());
        data.filter(|data| word(data, "kind") == "email")
            .map(|data| (word(data, "to"), word(data, "subject")))
            .collect()
    }

    /// The states that were entered, in order.
    fn states(&self) -> Vec<&str> {
        let entered = self.seen.iter().filter(|event| event.r#type == "session.state_entered");
        entered.map(|event| event.state.as_str()).collect()
    }
}

/// A server with the workflows and their assistant, and those who take part.
struct Harness {
    dev: Dev,
    agent: String,
    /// An operator, who brings in what comes by mail and from outside.
    person: String,
}

impl Harness {
    fn open() -> Self {
        let dev = Dev::start();
        // The first two call the third, which exists when they are activated, in any order of the files.
        let files = ["complaint", "money-back", "pickup"].map(|name| {
            let file = repository(&format!("tests/gallery/support/{name}.yaml"));
            file.to_str().expect("a plain path").to_owned()
        });
        let alone = dev.run(&["deploy", &files[0]]).with_code(4);
        assert!(alone.err.contains("complaint calls pickup, which is not in the catalogue"), "{alone:?}");
        let words: Vec<&str> = ["deploy"].into_iter().chain(files.iter().map(String::as_str)).collect();
        dev.run(&words).with_code(0);
        let put = ["assistant", "put", "support", "--workflow", "complaint", "--workflow", "money-back"];
        dev.run(&[&put[..], &["--instructions", "Be kind, and brief."]].concat()).with_code(0);
        let key = |name: &str| dev.ready[name].as_str().expect("a key").to_owned();
        let (agent, person) = (key("agent_key"), key("person_key"));
        Self { dev, agent, person }
    }

    /// An approver's key.
    fn key_of(&self, subject: &str) -> String {
        let made = self.dev.json(&["keys", "create", "approver", "--subject", subject]);
        made["secret"].as_str().expect("a secret").to_owned()
    }

    fn call(&self, method: &str, key: &str, body: Value) -> Value {
        let reply = self.dev.post(method, key, &body);
        assert!(reply.get("code").is_none(), "{method}: {reply}");
        reply
    }

    /// What the agent does: the state that the conversation is at afterwards.
    fn agent(&self, method: &str, mut body: Value) -> String {
        body["name"] = json!("lamp-1");
        at(&self.call(&format!("SessionService/{method}"), &self.agent, body)["session"])
    }

    /// A reply by mail: the state afterwards.
    fn mail(&self, from: &str, text: &str) -> String {
        let body = json!({ "name": "lamp-1", "from": from, "text": text });
        at(&self.call("SessionService/RecordReply", &self.person, body)["session"])
    }

    fn session(&self) -> Value {
        self.call("SessionService/GetSession", &self.agent, json!({ "name": "lamp-1" }))["session"].clone()
    }

    /// The open gate of this person.
    fn gate_of(&self, approver: &str) -> String {
        let gates = self.call("GateService/ListGates", &self.agent, json!({ "filter": "status=\"open\"" }));
        let all = gates["gates"].as_array().cloned().unwrap_or_default();
        let of = |gate: &&Value| gate["approvers"].as_array().is_some_and(|it| it.contains(&json!(approver)));
        let gate = all.iter().find(of).unwrap_or_else(|| panic!("none of {approver}: {gates}"));
        gate["name"].as_str().expect("a name").to_owned()
    }

    async fn watch(&self) -> Watched {
        let mut client = SessionServiceClient::new(connect(&self.dev).await);
        let request = v1::WatchSessionRequest { name: "lamp-1".into(), from_sequence: 0 };
        let stream = client.watch_session(with_key(&self.agent, request)).await.expect("a stream");
        Watched { stream: stream.into_inner(), seen: Vec::new() }
    }

    async fn worker(&self) -> Worker {
        let key = self.dev.ready["worker_key"].as_str().expect("a key").to_owned();
        Worker { client: WorkerServiceClient::new(connect(&self.dev).await), key }
    }
}

fn at(session: &Value) -> String {
    session["at"][0].as_str().unwrap_or_default().to_owned()
}

/// From the opening message to the approval, by the worker, the customer, the store and the workshop.
async fn opened(harness: &Harness) -> Watched {
    let start = json!({
        "assistant": "support", "sessionId": "lamp-1", "contact": "sam@example.com", "message": "The lamp arrived broken!",
    });
    let started = harness.call("SessionService/StartSession", &harness.agent, start);
    assert_eq!(started["session"]["at"], json!(["intent"]));
    let mut watched = harness.watch().await;
    let mut worker = harness.worker().await;
    worker.works(v1::WorkKind::Intent, "intent").await;
    worker.works(v1::WorkKind::Extract, "read").await;
    let session = harness.session();
    assert_eq!(
        (at(&session).as_str(), &session["data"]),
        ("ask", &json!({ "problem": "The lamp is broken" }))
    );
    assert_eq!(session["assistantInstructions"], "Be kind, and brief.");

    harness.agent("PostMessage", json!({ "text": "Order A-17. The lamp is broken." }));
    assert_eq!(harness.agent("EndTurn", json!({})), "read");
    worker.works(v1::WorkKind::Extract, "read").await;
    assert_eq!(at(&harness.session()), "inspect");

    let gate = harness.gate_of("store@example.com");
    let answer = json!({ "name": gate, "decision": "GATE_DECISION_ANSWER", "answer": "It left us whole." });
    harness.call("GateService/DecideGate", &harness.key_of("store@example.com"), answer);
    let gate = harness.gate_of("workshop@example.com");
    let answer =
        json!({ "name": gate, "decision": "GATE_DECISION_ANSWER", "answer": "It cannot be mended." });
    harness.call("GateService/DecideGate", &harness.key_of("workshop@example.com"), answer);
    assert_eq!(at(&harness.session()), "decide");
    watched.until("approval.requested").await;
    watched
}

/// Without a decision for four hours, the head is asked.
async fn escalated(harness: &Harness, watched: &mut Watched) {
    let gate = harness.gate_of("lead@example.com");
    harness.dev.run(&["clock", "advance", "239m"]).with_code(0);
    let head = harness.key_of("head@example.com");
    let approve = json!({ "name": gate, "decision": "GATE_DECISION_APPROVE", "comment": "Do it" });
    let early = harness.dev.post("GateService/DecideGate", &head, &approve);
    assert!(early.to_string().contains("NOT_AN_APPROVER"), "{early}");
    harness.dev.run(&["clock", "advance", "1m"]).with_code(0);
    watched.until("approval.escalated").await;
    harness.call("GateService/DecideGate", &head, approve);
    assert_eq!(at(&harness.session()), "reply");
    let lead = harness.key_of("lead@example.com");
    let refuse = json!({ "name": gate, "decision": "GATE_DECISION_REJECT" });
    let late = harness.dev.post("GateService/DecideGate", &lead, &refuse);
    assert!(late.to_string().contains("ALREADY_RESOLVED"), "{late}");
}

/// The customer wants something else, the conversation turns, and the other workflow has its own calls one, too.
fn turned(harness: &Harness) {
    assert_eq!(harness.mail("eve@example.com", "no, money"), "reply", "it is not hers");
    assert_eq!(harness.mail("sam@example.com", "I want my money, please."), "talk");
    assert_eq!(harness.agent("SwitchWorkflow", json!({ "workflow": "money-back" })), "amount");
    let session = harness.session();
    assert_eq!(session["instructions"], "Look up what was paid for order A-17, and record the amount.");
    let call = json!({ "session": "lamp-1", "capability": "order_lookup" });
    let allowed = harness.call("PolicyService/AuthorizeToolCall", &harness.agent, call);
    assert_eq!(allowed["decision"], "TOOL_DECISION_ALLOW", "{allowed}");
    harness.agent("RecordData", json!({ "values": { "amount": 40 } }));
    assert_eq!(harness.agent("EndTurn", json!({})), "fetch");
    harness.agent("PostMessage", json!({ "text": "Monday would do." }));
    harness.agent("RecordData", json!({ "values": { "day": "Monday" } }));
    assert_eq!(harness.agent("EndTurn", json!({})), "arrival");
    assert_eq!(harness.session()["data"]["pickup_day"], "Monday");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_support_conversation_runs_from_its_opening_message_to_its_end() {
    let harness = Harness::open();
    let mut watched = opened(&harness).await;
    escalated(&harness, &mut watched).await;
    turned(&harness);
    let event =
        json!({ "name": "lamp-1", "key": "parcel.arrived", "data": { "weight": 2 }, "state": "arrival" });
    harness.call("SessionService/RecordEvent", &harness.person, event);
    while watched.next().await.is_some() {}

    let session = harness.session();
    assert_eq!(session["status"], "SESSION_STATUS_COMPLETED");
    let runs: Vec<_> = session["runs"].as_array().expect("runs").iter().map(|run| &run["status"]).collect();
    assert_eq!(runs, ["SESSION_STATUS_ABANDONED", "SESSION_STATUS_COMPLETED", "SESSION_STATUS_COMPLETED"]);
    let states = "read ask read inspect decide offer reply talk amount fetch day book arrival paid";
    let states: Vec<&str> = states.split(' ').collect();
    assert_eq!(watched.states(), states);
    let mails: Vec<(String, String)> = [
        ("store@example.com", "Your answer is needed: inspect"),
        ("workshop@example.com", "Your answer is needed: inspect"),
        ("lead@example.com", "Replace order A-17?"),
        ("head@example.com", "Replace order A-17?"),
        ("sam@example.com", "Your order A-17"),
        ("carrier@example.com", "Pick-up of A-17"),
        ("sam@example.com", "Your money for A-17"),
    ]
    .map(|(to, subject)| (to.to_owned(), subject.to_owned()))
    .into();
    assert_eq!(watched.mails(), mails);
    assert_eq!(harness.dev.stop(), Some(0));
}
