//! Definitions whose names are free: spaces, quotes, percent signs, dots, and letters of any script.

use prost::Message;
use std::sync::Arc;
use switchward_api::v1;
use switchward_formats::{Naming, compile_file};
use switchward_machine::TenantId;
use switchward_machine::limits::NAME_BYTES_MAX;
use switchward_state::catalogue::{Deploy, SourceFile};
use switchward_testkit::Pages;

use crate::harness::{CHORE, Harness, RELEASE};
use crate::protocols::Protocol;
use crate::refusal::refused;

/// Names that every format with free names allows, and of which none is a slug.
fn names() -> Vec<String> {
    let names = [
        "Contract Review",
        " ",
        "50 % \"off\" AND more",
        "%2F",
        "v1.2",
        "..",
        "active",
        "back\\slash",
        "it's a:b@c?d#e&f=g",
        "\u{5408}\u{540c} \u{5be9}\u{67fb}",
        "{gathered.x}",
    ];
    let longest = "\u{e4}".repeat(NAME_BYTES_MAX / 2);
    names.into_iter().map(str::to_owned).chain([longest]).collect()
}

/// What a source compiles to, as a deployment under another name.
fn renamed(source: &str, name: &str) -> Deploy {
    assert!(Naming::Free.allows(name), "{name:?}");
    let compiled = compile_file("process.json", source.as_bytes(), None);
    let mut definition = compiled.definition.expect("a definition");
    definition.machine.meta.name = name.to_owned();
    Deploy {
        name: name.to_owned(),
        format: compiled.format.expect("a format").name().to_owned(),
        files: vec![SourceFile { path: "process.json".into(), bytes: source.as_bytes().to_vec() }],
        source: definition.source,
        machine: Arc::new(definition.machine),
        activate: true,
        etag: String::new(),
        findings: Vec::new(),
    }
}

async fn deployed(harness: &Harness, source: &str, names: &[String]) {
    for name in names {
        harness.node.deploy(TenantId(1), renamed(source, name)).await;
    }
}

/// Makes a call with the agent's key by one protocol.
async fn by<R: Message + Default>(
    harness: &Harness,
    protocol: Protocol,
    method: &str,
    request: &impl Message,
) -> R {
    let key = harness.acme.key("agent");
    let reply = harness.node.line.call(protocol, method, key, &request.encode_to_vec()).await;
    R::decode(reply.unwrap_or_else(|status| panic!("{method}: {status:?}"))).expect("a reply")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_is_read_by_any_of_its_names_over_every_protocol() {
    let harness = Harness::start().await;
    let names = names();
    deployed(&harness, RELEASE, &names).await;
    for protocol in Protocol::ALL {
        for name in &names {
            let whole = format!("tenants/acme/definitions/{name}");
            for written in [name.clone(), format!("definitions/{name}"), whole.clone()] {
                let get = v1::GetDefinitionRequest { name: written.clone(), ..Default::default() };
                let reply: v1::GetDefinitionResponse = by(&harness, protocol, "GetDefinition", &get).await;
                assert_eq!(reply.definition.expect("a definition").name, whole, "{written:?}");
                let name = format!("{written}/versions/active");
                let get = v1::GetVersionRequest { name, ..Default::default() };
                let reply: v1::GetVersionResponse = by(&harness, protocol, "GetVersion", &get).await;
                let version = reply.version.expect("a version");
                assert_eq!((version.name, version.number), (format!("{whole}/versions/1"), 1), "{written:?}");
            }
        }
    }
    let absent = v1::GetDefinitionRequest { name: "Contract review".into(), ..Default::default() };
    let outcome: Result<v1::GetDefinitionResponse, _> =
        harness.attempt("agent", "GetDefinition", &absent).await;
    refused(outcome, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_definitions_has_every_name_once_page_by_page() {
    let harness = Harness::start().await;
    let names = names();
    deployed(&harness, RELEASE, &names).await;
    let (mut found, mut pages) = (Vec::new(), Pages::default());
    while let Some(page_token) = pages.next_token() {
        let list = v1::ListDefinitionsRequest { page_size: 1, page_token, ..Default::default() };
        let reply: v1::ListDefinitionsResponse = harness.ask("agent", "ListDefinitions", &list).await;
        found.extend(reply.definitions.into_iter().map(|definition| definition.name));
        pages.read(reply.next_page_token);
    }
    for name in &names {
        let whole = format!("tenants/acme/definitions/{name}");
        assert_eq!(found.iter().filter(|found| **found == whole).count(), 1, "{name:?}");
    }
    harness.node.end().await;
}

/// The sessions that a filter lists, by name.
async fn listed(harness: &Harness, filter: String) -> Vec<String> {
    let (mut found, mut pages) = (Vec::new(), Pages::default());
    while let Some(page_token) = pages.next_token() {
        let list = v1::ListSessionsRequest { filter: filter.clone(), page_token, ..Default::default() };
        let reply: v1::ListSessionsResponse = harness.ask("agent", "ListSessions", &list).await;
        found.extend(reply.sessions.into_iter().map(|session| session.name));
        pages.read(reply.next_page_token);
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_gates_name_their_definition_and_a_filter_finds_them() {
    let harness = Harness::start().await;
    let names = names();
    deployed(&harness, RELEASE, &names).await;
    let guard = harness.policy().await;
    for name in &names {
        let whole = format!("tenants/acme/definitions/{name}");
        let start = v1::StartSessionRequest { definition: name.clone(), ..Default::default() };
        let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
        let session = reply.session.expect("a session");
        assert_eq!(session.definition, whole);
        let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
        assert_eq!(
            listed(&harness, format!("definition=\"{escaped}\"")).await,
            std::slice::from_ref(&session.name)
        );

        let gate = harness.authorize(&session.name, "mcp:filesystem:write_file").await.gate;
        let get = v1::GetGateRequest { name: gate, ..Default::default() };
        let reply: v1::GetGateResponse = harness.ask("operator", "GetGate", &get).await;
        assert_eq!(reply.gate.expect("a gate").definition, whole);

        let (definition, policy) = (name.clone(), guard.clone());
        let attach = v1::AttachPolicyRequest { definition, policy, ..Default::default() };
        let reply: v1::AttachPolicyResponse = harness.ask("author", "AttachPolicy", &attach).await;
        assert_eq!(reply.definition.expect("a definition").name, whole);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_takes_the_work_of_a_free_name_alone() {
    let harness = Harness::start().await;
    let names = names();
    deployed(&harness, CHORE, &names).await;
    for name in &names {
        let start = v1::StartSessionRequest { definition: name.clone(), ..Default::default() };
        let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    }
    for name in &names {
        let wanted = Some(v1::WorkWanted { queues: vec![name.clone()], ..Default::default() });
        let poll = v1::PollWorkRequest { wanted, ..Default::default() };
        let reply: v1::PollWorkResponse = harness.ask("worker", "PollWork", &poll).await;
        let of: Vec<&str> = reply.items.iter().map(|item| item.version.as_str()).collect();
        assert_eq!(of, [format!("tenants/acme/definitions/{name}/versions/1")]);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directory_has_settings_for_the_longest_name() {
    let harness = Harness::start().await;
    let longest = names().pop().expect("a name");
    let entry = |name: String| v1::DirectoryEntry {
        name,
        members: vec!["ann@example.com".into()],
        ..Default::default()
    };
    let put = |name: String| {
        let directory = Some(v1::Directory { entries: vec![entry(name)], ..Default::default() });
        v1::PutDirectoryRequest { directory, ..Default::default() }
    };
    for name in ["Contract Review", longest.as_str()] {
        let name = format!("definition:{name}");
        let reply: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put(name.clone())).await;
        let entries = reply.directory.expect("a directory").entries;
        assert_eq!(entries[0].name, name.to_lowercase());
    }
    let outcome: Result<v1::PutDirectoryResponse, _> =
        harness.attempt("admin", "PutDirectory", &put("x".repeat(401))).await;
    refused(outcome, "FIELD_INVALID");
    harness.node.end().await;
}
