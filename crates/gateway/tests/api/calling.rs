//! Workflows that call others: what must be in the catalogue, and what a session shows of the runs below its own.

use switchward_api::v1;

use crate::harness::{Harness, deployment};
use crate::refusal::refused;

/// A workflow that calls another, under unique names.
pub(crate) struct Pair {
    caller: String,
    called: String,
}

impl Pair {
    pub(crate) fn of(harness: &Harness) -> Self {
        Self { caller: harness.fresh("caller"), called: harness.fresh("called") }
    }

    pub(crate) fn caller(&self) -> String {
        serde_json::json!({
            "name": self.caller,
            "states": [
                { "name": "call", "type": "subworkflow", "workflow": self.called,
                  "output_mapping": { "back": "sum" } },
                { "name": "after", "type": "conversation" },
            ],
            "transitions": [{ "from": "call", "to": "after", "guards": [{ "type": "always" }] }],
        })
        .to_string()
    }

    pub(crate) fn called(&self) -> String {
        let ask = serde_json::json!({ "name": "ask", "type": "conversation", "instructions": "Ask." });
        serde_json::json!({ "name": self.called, "states": [ask], "transitions": [] }).to_string()
    }

    /// The called workflow, which calls its caller.
    fn cycle(&self) -> String {
        let back = serde_json::json!({ "name": "back", "type": "subworkflow", "workflow": self.caller });
        serde_json::json!({ "name": self.called, "states": [back], "transitions": [] }).to_string()
    }

    fn start(&self) -> v1::StartSessionRequest {
        v1::StartSessionRequest { definition: self.caller.clone(), ..Default::default() }
    }
}

async fn deploy(harness: &Harness, source: &str) {
    let _: v1::DeployDefinitionResponse =
        harness.ask("author", "DeployDefinition", &deployment(source)).await;
}

/// The runs of a session: number, parent, state and status.
fn runs_of(session: &v1::Session) -> Vec<(u32, u32, String, v1::SessionStatus)> {
    let run = |run: &v1::SessionRun| (run.run, run.parent, run.state.clone(), run.status());
    session.runs.iter().map(run).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_shows_the_runs_below_its_own_and_what_they_do() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    let early: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &deployment(&pair.caller())).await;
    refused(early.map(drop), "NO_SUCH_WORKFLOW");
    let stored = v1::DeployDefinitionRequest { activate: Some(false), ..deployment(&pair.caller()) };
    let stored: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &stored).await;
    let version = stored.version.expect("a version");
    assert_eq!((version.active, stored.findings.len()), (false, 1));
    assert_eq!(stored.findings[0].code, "SW1250");
    let check = v1::CheckDefinitionRequest {
        files: deployment(&pair.caller()).files,
        ..v1::CheckDefinitionRequest::default()
    };
    let checked: v1::CheckDefinitionResponse = harness.ask("author", "CheckDefinition", &check).await;
    assert!(checked.ok);
    assert_eq!(checked.findings, stored.findings);
    let activate = v1::ActivateVersionRequest { name: version.name, ..Default::default() };
    let early: Result<v1::ActivateVersionResponse, _> =
        harness.attempt("author", "ActivateVersion", &activate).await;
    refused(early.map(drop), "NO_SUCH_WORKFLOW");

    let inactive = v1::DeployDefinitionRequest { activate: Some(false), ..deployment(&pair.called()) };
    let _: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &inactive).await;
    let checked: v1::CheckDefinitionResponse = harness.ask("author", "CheckDefinition", &check).await;
    assert_eq!(checked.findings, []);
    let _: v1::ActivateVersionResponse = harness.ask("author", "ActivateVersion", &activate).await;
    let early: Result<v1::StartSessionResponse, _> =
        harness.attempt("agent", "StartSession", &pair.start()).await;
    refused(early.map(drop), "NO_SUCH_WORKFLOW");
    deploy(&harness, &pair.called()).await;
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &pair.start()).await;
    let session = reply.session.expect("a session");
    let checkpoint = session.checkpoint.clone().expect("a checkpoint");
    assert_eq!((session.at.clone(), checkpoint.state.as_str()), (vec!["call".to_owned()], "ask"));
    assert_eq!(session.instructions, "Ask.");
    let waiting = v1::SessionStatus::Waiting;
    assert_eq!(
        runs_of(&harness.look(&session.name).await),
        [(1, 0, "call".into(), waiting), (2, 1, "ask".into(), waiting)]
    );

    let sum = prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(3.0)) };
    let values = Some(prost_types::Struct { fields: [("sum".to_owned(), sum.clone())].into() });
    let record =
        v1::RecordDataRequest { name: session.name.clone(), values, ..v1::RecordDataRequest::default() };
    let _: v1::RecordDataResponse = harness.ask("agent", "RecordData", &record).await;
    assert_eq!(harness.look(&session.name).await.data, None, "the data belong to the child");
    let turn = v1::EndTurnRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::EndTurnResponse = harness.ask("agent", "EndTurn", &turn).await;
    let after = harness.look(&session.name).await;
    let done = v1::SessionStatus::Completed;
    assert_eq!(runs_of(&after), [(1, 0, "after".into(), waiting), (2, 1, "ask".into(), done)]);
    assert_eq!(after.data.expect("data").fields.get("back"), Some(&sum));

    let list = v1::ListSessionEventsRequest { name: session.name, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &list).await;
    let states: Vec<(&str, &str)> =
        listed.events.iter().map(|event| (event.r#type.as_str(), event.state.as_str())).collect();
    let entered: Vec<&str> =
        states.iter().filter(|(of, _)| *of == "session.state_entered").map(|(_, state)| *state).collect();
    assert_eq!(entered, ["call", "ask", "after"], "each state is read from the machine of its own run");
    assert!(states.contains(&("run.started", "")) && states.contains(&("run.ended", "")), "{states:?}");
    let of_child = |event: &&v1::SessionEvent| event.message.contains("run=2");
    assert!(listed.events.iter().filter(of_child).count() >= 4, "{:?}", listed.events);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_that_call_one_another_are_refused_where_the_cycle_closes() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    deploy(&harness, &pair.called()).await;
    deploy(&harness, &pair.caller()).await;
    let cycle = deployment(&pair.cycle());
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &cycle).await;
    refused(outcome.map(drop), "DEFINITION_INVALID");
    let quiet = v1::DeployDefinitionRequest { activate: Some(false), ..cycle };
    let _: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &quiet).await;
    let name = format!("{}/versions/latest", pair.called);
    let activate = v1::ActivateVersionRequest { name, ..Default::default() };
    let outcome: Result<v1::ActivateVersionResponse, _> =
        harness.attempt("author", "ActivateVersion", &activate).await;
    refused(outcome.map(drop), "DEFINITION_INVALID");
    let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &pair.start()).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_through_a_child_ends_and_its_long_history_can_be_read_from_anywhere() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    let set = serde_json::json!({ "type": "set_data", "config": { "key": "said", "value": 1 } });
    let says = serde_json::json!({ "name": "say", "type": "logic", "operations": [set] });
    let called = serde_json::json!({ "name": pair.called, "states": [says], "transitions": [] });
    let call = serde_json::json!({ "name": "call", "type": "subworkflow", "workflow": pair.called });
    let again =
        serde_json::json!({ "from": "call", "to": "call", "guards": [{ "type": "always", "config": {} }] });
    let turning = serde_json::json!({ "name": pair.caller, "states": [call], "transitions": [again] });
    deploy(&harness, &called.to_string()).await;
    deploy(&harness, &turning.to_string()).await;
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &pair.start()).await;
    let session = reply.session.expect("a session");
    assert_eq!((session.status(), session.reason.as_str()), (v1::SessionStatus::Failed, "drain_limit"));
    assert!(session.sequence > 4_096, "{}", session.sequence);
    for back in [0, 10, 900, session.sequence - 1] {
        let from_sequence = session.sequence - back;
        let list = v1::ListSessionEventsRequest {
            name: session.name.clone(),
            from_sequence,
            page_size: 1_000,
            ..Default::default()
        };
        let listed: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &list).await;
        let first = listed.events.first().expect("an event").sequence;
        assert!((from_sequence..from_sequence + 10).contains(&first), "{from_sequence}: {first}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_names_an_active_run_that_waits_for_no_other() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    deploy(&harness, &pair.called()).await;
    deploy(&harness, &pair.caller()).await;
    let started: v1::StartSessionResponse = harness.ask("agent", "StartSession", &pair.start()).await;
    let name = started.session.expect("a session").name;
    let signal = |run, state: &str, work_item: &str| v1::SignalCompletionRequest {
        name: name.clone(),
        address: Some(v1::RunAddress { run, state: state.into(), work_item: work_item.into() }),
        ..Default::default()
    };
    for good in [signal(2, "", ""), signal(0, "ask", ""), signal(2, "ask", ""), signal(0, "", "")] {
        let reply: v1::SignalCompletionResponse = harness.ask("agent", "SignalCompletion", &good).await;
        let session = reply.session.expect("a session");
        assert_eq!((session.active_runs.len(), session.active_run_count), (0, 0), "one run alone is active");
        assert!(session.checkpoint.is_some_and(|at| at.state == "ask"));
    }
    let work = harness.leased().await.name;
    for (bad, reason) in [
        (signal(1, "", ""), "STATE_MISMATCH"),
        (signal(0, "call", ""), "STATE_MISMATCH"),
        (signal(2, "call", ""), "STATE_MISMATCH"),
        (signal(3, "", ""), "STATE_MISMATCH"),
        (signal(0, &"x".repeat(257), ""), "FIELD_INVALID"),
        (signal(0, "", &work), "NOT_FOUND"),
    ] {
        let outcome: Result<v1::SignalCompletionResponse, _> =
            harness.attempt("agent", "SignalCompletion", &bad).await;
        refused(outcome, reason);
    }
    harness.node.end().await;
}
