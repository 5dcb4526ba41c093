//! A repeated request gets the bytes that it got before: after a restart, and at other servers whose groups have other leaders
//! by then. Refusals are no answers, and are not remembered.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use switchward_api::v1::{self, ToolDecision};
use switchward_shard::Shard;
use switchward_testkit::until;
use tonic::{Code, Status};

use crate::client::Line;
use crate::harness::{Harness, deployment, named, tool_call};
use crate::node::Node;
use crate::protocols::Protocol;
use crate::refusal::refused;
use crate::requests::without_secrets;
use crate::rpcs::{Rpc, all, set};
use crate::servers::BRISK;
use crate::working;

/// Calls whose answers do not outlast the server, and why.
const NOT_KEPT: [(&str, &str); 1] =
    [("AdvanceClock", "the clock of a development server starts again with it, and so do its moves")];
/// Limits that one call reaches.
const TIGHT: [(&str, &str); 2] =
    [("\"max_calls\": 5000", "\"max_calls\": 1"), ("\"max_usd\": 500", "\"max_usd\": 0.1")];

/// A request that was answered twice.
struct Sent {
    method: &'static str,
    role: &'static str,
    request: Vec<u8>,
    /// Another request with the same id, if a test compares it.
    other: Option<Vec<u8>>,
    /// The answer to the repetition.
    again: Bytes,
}

impl Sent {
    /// Makes a call, and repeats it.
    async fn twice(harness: &Harness, rpc: &Rpc, mut message: DynamicMessage) -> Self {
        set(&mut message, "request_id", Value::String(harness.fresh("kept")));
        let (method, role, request) = (rpc.method, rpc.role(), message.encode_to_vec());
        (rpc.other)(&mut message);
        let other = Some(message.encode_to_vec());
        let mut sent = Self { method, role, request, other, again: Bytes::new() };
        let first = sent.call(harness, &harness.node.line).await.expect(method);
        sent.again = sent.call(harness, &harness.node.line).await.expect(method);
        assert_eq!(without_secrets(rpc, &sent.again), without_secrets(rpc, &first), "{method}");
        sent
    }

    /// The same with a request that says its id itself; returns the answer as well.
    async fn answered<R: Message + Default>(
        harness: &Harness,
        method: &'static str,
        role: &'static str,
        request: &impl Message,
    ) -> (Self, R) {
        let request = request.encode_to_vec();
        let mut sent = Self { method, role, request, other: None, again: Bytes::new() };
        sent.again = sent.call(harness, &harness.node.line).await.expect(method);
        assert_eq!(sent.call(harness, &harness.node.line).await.expect(method), sent.again, "{method}");
        let reply = R::decode(sent.again.clone()).expect("a reply");
        (sent, reply)
    }

    async fn call(&self, harness: &Harness, line: &Line) -> Result<Bytes, Status> {
        line.call(Protocol::Grpc, self.method, harness.acme.key(self.role), &self.request).await
    }

    /// Repeats the call, and makes another one with its id.
    async fn comes_again(&self, harness: &Harness, line: &Line) {
        let again = self.insist(harness, line, &self.request).await;
        assert_eq!(again.expect(self.method), self.again, "{}", self.method);
        if let Some(other) = &self.other {
            refused(self.insist(harness, line, other).await, "REQUEST_ID_REUSED");
        }
    }

    /// Makes a call as a client does: again if the server cannot answer at present.
    async fn insist(&self, harness: &Harness, line: &Line, request: &[u8]) -> Result<Bytes, Status> {
        let mut outcome = None;
        until("the server answers", async || {
            let answer = line.call(Protocol::Grpc, self.method, harness.acme.key(self.role), request).await;
            let is_answer = answer.as_ref().err().is_none_or(|status| status.code() != Code::Unavailable);
            outcome = is_answer.then_some(answer);
            is_answer
        })
        .await;
        outcome.expect("an answer")
    }
}

/// One request of each method that takes an id, and those that were answered with a no.
async fn sent(harness: &Harness) -> Vec<Sent> {
    let rpcs: Vec<Rpc> = all().into_iter().filter(Rpc::is_once).collect();
    for (method, why) in NOT_KEPT {
        assert!(rpcs.iter().any(|rpc| rpc.method == method), "{method} takes no id any more: {why}");
    }
    let mut sent = Vec::new();
    for rpc in rpcs.iter().filter(|rpc| NOT_KEPT.iter().all(|(method, _)| *method != rpc.method)) {
        let message = rpc.request(harness).await;
        sent.push(Sent::twice(harness, rpc, message).await);
    }
    sent.extend(denied(harness).await);
    sent.extend(unchanged(harness).await);
    sent
}

/// Calls that a policy does not allow: by a rule, beyond a limit, and before a person has approved.
async fn denied(harness: &Harness) -> Vec<Sent> {
    let process = harness.fresh("tight");
    let source = TIGHT.iter().fold(named(&process), |source, (from, to)| source.replace(from, to));
    harness.deploy(&source).await;
    let start = v1::StartSessionRequest { definition: process, ..Default::default() };
    let started: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let name = started.session.expect("a session").name;
    harness.authorize(&name, "bash").await;
    let mut sent = Vec::new();
    for (capability, cost, wanted, reason) in [
        ("mcp:shell:rm", None, ToolDecision::Deny, "POLICY_DENIED"),
        ("bash", None, ToolDecision::Deny, "RATE_LIMITED"),
        ("mcp:web:get", Some("0.5"), ToolDecision::Deny, "BUDGET_EXHAUSTED"),
        ("mcp:filesystem:write_file", None, ToolDecision::Ask, ""),
    ] {
        let request = v1::AuthorizeToolCallRequest {
            request_id: harness.fresh("denied"),
            est_cost_usd: cost.map(str::to_owned),
            ..tool_call(&name, capability)
        };
        let (one, reply): (_, v1::AuthorizeToolCallResponse) =
            Sent::answered(harness, "AuthorizeToolCall", "agent", &request).await;
        assert_eq!((reply.decision(), reply.reason.as_str()), (wanted, reason), "{reply:?}");
        sent.push(one);
    }
    sent
}

/// Calls that are answered, and have not done what was asked: a result that does not match its schema, and a version that is
/// active already.
async fn unchanged(harness: &Harness) -> [Sent; 2] {
    let (_, queue) = working::reading(harness).await;
    let item = working::one(harness, &queue).await;
    let bad = v1::CompleteWorkRequest {
        result: working::result("amount", "much"),
        request_id: harness.fresh("wrong"),
        ..working::done(&item)
    };
    let (wrong, reply): (_, v1::CompleteWorkResponse) =
        Sent::answered(harness, "CompleteWork", "worker", &bad).await;
    assert!(!reply.accepted, "{reply:?}");
    let deploy = deployment(&named(&harness.fresh("active")));
    let deployed: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &deploy).await;
    let activate = v1::ActivateVersionRequest {
        name: deployed.version.expect("a version").name,
        request_id: harness.fresh("active"),
        ..Default::default()
    };
    let (active, _): (_, v1::ActivateVersionResponse) =
        Sent::answered(harness, "ActivateVersion", "author", &activate).await;
    [wrong, active]
}

/// Requests that were refused.
struct Refused {
    resume: v1::ResumeSessionRequest,
}

impl Refused {
    /// Is refused: the session is not paused.
    async fn send(harness: &Harness) -> Self {
        let (name, request_id) = (harness.session().await.name, harness.fresh("refused"));
        let this = Self { resume: v1::ResumeSessionRequest { name, request_id, ..Default::default() } };
        for _ in 0..2 {
            refused(this.resume(harness).await, "STATE_MISMATCH");
        }
        this
    }

    async fn resume(&self, harness: &Harness) -> Result<v1::ResumeSessionResponse, Status> {
        harness.attempt("operator", "ResumeSession", &self.resume).await
    }

    /// Is decided again, and accepted once the session is paused.
    async fn pass(&self, harness: &Harness) {
        refused(self.resume(harness).await, "STATE_MISMATCH");
        let pause = v1::PauseSessionRequest { name: self.resume.name.clone(), ..Default::default() };
        let _: v1::PauseSessionResponse = harness.ask("operator", "PauseSession", &pause).await;
        let resumed = self.resume(harness).await.expect("the session is paused by now");
        assert_eq!(self.resume(harness).await.expect("the same answer"), resumed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_gets_the_same_bytes_after_a_restart() {
    let harness = Harness::start().await;
    let (sent, refused) = (sent(&harness).await, Refused::send(&harness).await);
    let harness = harness.restarted().await;
    for one in &sent {
        one.comes_again(&harness, &harness.node.line).await;
    }
    refused.pass(&harness).await;
    harness.node.end().await;
}

/// The number of the server that leads each group; `None` if none does at present.
fn leaders(harness: &Harness) -> Vec<Option<u64>> {
    let leader = |group: usize| {
        let mut servers = harness.node.clusters().zip(1..);
        let found = servers.find(|(cluster, _)| cluster.all().nth(group).is_some_and(Shard::leads));
        found.map(|(_, number)| number)
    };
    (0..harness.node.cluster.all().count()).map(leader).collect()
}

/// Has other servers lead all that this one leads.
async fn hand_over(harness: &Harness, from_server: u64) {
    let transfer = v1::TransferLeadersRequest { from_server, ..Default::default() };
    until("the server leads nothing", async || {
        let moved: Result<v1::TransferLeadersResponse, _> =
            harness.attempt("admin", "TransferLeaders", &transfer).await;
        let leaders = leaders(harness);
        moved.is_ok() && leaders.iter().all(|leader| leader.is_some_and(|one| one != from_server))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_gets_the_same_bytes_at_other_servers_under_other_leaders() {
    let harness = Harness::over(Node::start_three(None, BRISK).await).await;
    let (sent, refused) = (sent(&harness).await, Refused::send(&harness).await);
    let mut led: Vec<Vec<Option<u64>>> = leaders(&harness).into_iter().map(|one| vec![one]).collect();
    for (server, other) in [(1, 2), (2, 3), (3, 1)] {
        hand_over(&harness, server).await;
        for (group, leader) in led.iter_mut().zip(leaders(&harness)) {
            group.push(leader);
        }
        let line = harness.node.line.to(other - 1);
        for one in &sent {
            one.comes_again(&harness, &line).await;
        }
    }
    let has_moved = |group: &Vec<Option<u64>>| group.iter().any(|one| one.is_some() && *one != group[0]);
    assert!(led.iter().all(has_moved), "{led:?}");
    refused.pass(&harness).await;
    harness.node.end().await;
}
