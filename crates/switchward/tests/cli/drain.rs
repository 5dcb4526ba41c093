//! A server that gets a stop signal under load.

use prost_types::value::Kind;
use std::collections::BTreeSet;
use std::error::Error as _;
use switchward_api::v1::{
    self, definition_service_client::DefinitionServiceClient, session_service_client::SessionServiceClient,
};
use switchward_testkit::Pages;
use tokio::{sync::mpsc, task::JoinSet};
use tonic::{
    Code, Request, Status,
    metadata::AsciiMetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use crate::server::{ADMIN_KEY, Running, Site};

const CALLERS: usize = 16;
/// Acknowledged answers after which the server gets the stop signal.
const BUSY: usize = 400;
/// A process that loops until the test ends it.
const ROUND: &str = r#"{
  "name": "round", "initial": "a",
  "states": {
    "a": {"question": "Again?", "answers": {"yes": {"next": "b"}, "no": {"next": null}}},
    "b": {"question": "And again?", "answers": {"yes": {"next": "a"}, "no": {"next": null}}}
  }
}"#;

#[derive(Clone)]
struct Credential(AsciiMetadataValue);

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

type Wire = InterceptedService<Channel, Credential>;

/// A connection of its own.
async fn connect(address: &str) -> Wire {
    let endpoint = Endpoint::from_shared(address.to_owned()).expect("an address");
    let channel = endpoint.connect().await.expect("the server listens");
    let credential = format!("Bearer {ADMIN_KEY}").parse().expect("a header");
    InterceptedService::new(channel, Credential(credential))
}

async fn deploy(address: &str) {
    let file = v1::DefinitionFile { path: "round.json".into(), content: ROUND.into() };
    let request = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
    let mut definitions = DefinitionServiceClient::new(connect(address).await);
    definitions.deploy_definition(request).await.expect("the definition is deployed");
}

/// Goes round until the server refuses: the session, and the refusal. Each acknowledged note is sent on.
async fn caller(
    number: usize,
    address: String,
    acknowledged: mpsc::UnboundedSender<String>,
) -> (String, Status) {
    let mut sessions = SessionServiceClient::new(connect(&address).await);
    let start = v1::StartSessionRequest { definition: "round".into(), ..Default::default() };
    let started = sessions.start_session(start).await.expect("a session starts").into_inner();
    let name = started.session.expect("a session").name;
    for turn in 0.. {
        let note = format!("{number}-{turn}");
        let request = v1::AnswerCheckpointRequest {
            name: name.clone(),
            answer: "yes".into(),
            note: note.clone(),
            request_id: note.clone(),
            ..Default::default()
        };
        match sessions.answer_checkpoint(request).await {
            Ok(_) => acknowledged.send(note).expect("somebody counts"),
            Err(status) => return (name, status),
        }
    }
    unreachable!("the server stops before any number is too small to count its answers");
}

/// The note of an answer.
fn note(event: v1::SessionEvent) -> Option<String> {
    let value = event.data?.fields.remove("note")?;
    let Some(Kind::StringValue(note)) = value.kind else { panic!("a note is a text: {value:?}") };
    Some(note)
}

/// The notes that a session's history holds.
async fn recorded(sessions: &mut SessionServiceClient<Wire>, session: &str) -> Vec<String> {
    let (mut notes, mut pages) = (Vec::new(), Pages::default());
    while let Some(page_token) = pages.next_token() {
        let request = v1::ListSessionEventsRequest {
            name: session.to_owned(),
            page_size: 1_000,
            page_token,
            ..Default::default()
        };
        let page = sessions.list_session_events(request).await.expect("the history is there").into_inner();
        notes.extend(page.events.into_iter().filter_map(note));
        pages.read(page.next_page_token);
    }
    notes
}

/// Returns true if a client retries a refusal: the server is unavailable, or the connection ended.
fn may_be_repeated(status: &Status) -> bool {
    let said = status.get_error_details().error_info().is_some();
    status.code() == Code::Unavailable || (!said && status.source().is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_under_load_keeps_all_that_it_acknowledged() {
    let site = Site::new();
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    deploy(&server.address).await;
    let (sender, mut acknowledged) = mpsc::unbounded_channel();
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        callers.spawn(caller(number, server.address.clone(), sender.clone()));
    }
    drop(sender);
    let mut notes = BTreeSet::new();
    while notes.len() < BUSY {
        notes.insert(acknowledged.recv().await.expect("all callers are at work"));
    }
    let (log, code) = tokio::task::spawn_blocking(|| server.stop()).await.expect("it stops");
    assert_eq!(code, Some(0), "{log}");
    let ends = callers.join_all().await;
    assert_eq!(ends.len(), CALLERS);
    for (session, status) in &ends {
        assert!(may_be_repeated(status), "{session}: {status:?}");
    }
    while let Some(note) = acknowledged.recv().await {
        notes.insert(note);
    }

    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    let mut sessions = SessionServiceClient::new(connect(&server.address).await);
    let mut found = BTreeSet::new();
    for (session, _) in &ends {
        for note in recorded(&mut sessions, session).await {
            assert!(found.insert(note.clone()), "{note} is recorded twice");
        }
    }
    let lost: Vec<_> = notes.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // A call that was on its way may have come to its end without its caller hearing of it.
    assert!(found.len() - notes.len() <= CALLERS, "{} recorded, {} acknowledged", found.len(), notes.len());
}
