//! Events of a session are published to the endpoints of its tenant.

use switchward_state::catalogue::CatalogueCommand;
use switchward_state::delivery::{ChangeEndpoint, DeliveryCommand, DeliveryEvent};
use switchward_state::run::RunEvent;
use switchward_state::session::{SessionCommand, SessionEvent};
mod memory;

use memory::{Rows, ring, sealed};
use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{DeliveryReason, Digest, SessionId, TenantId, Time};
use switchward_state::catalogue::{
    Deploy, InstallMachine, InstallTenancy, Role, Settings, Tenancy, TenantOutbox,
};
use switchward_state::delivery::{
    AckEffect, Attempt, DeferEffect, DeliveryDetail, DisabledReason, EffectBody, Endpoint, EventSubject,
    FailEffect, FailureCode, PublishedEvent, PublishedType, Republish, SourceSecret,
};
use switchward_state::limits::{ENDPOINT_URL_BYTES_MAX, ENDPOINTS_MAX, TENANT_OUTBOX_MAX};
use switchward_state::seal::SecretOf;
use switchward_state::session::{Pause, Start};
use switchward_state::{
    Actor, Body, Command, Event, Key, OutboxScope, Reason, Reply, Row, Scope, index_keys,
};
use switchward_testkit::start_of;

const TENANT: TenantId = TenantId(7);
const ID: SessionId = SessionId([3; 16]);
const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": { "ask": { "question": "What now?", "answers": { "yes": { "next": null } } } }
}"#;

impl Rows {
    /// Executes a command and returns its events; replaying its decision must give the same rows.
    fn execute(&mut self, scope: Scope, body: Body) -> (u64, Vec<Event>) {
        self.attempt(scope, body).expect("it is not refused")
    }

    fn attempt(&mut self, scope: Scope, body: Body) -> Result<(u64, Vec<Event>), Reason> {
        let (actor, settings) = (Actor { subject: "kim".into(), role: Role::Admin }, Settings::default());
        let command = Command {
            tenant: TENANT,
            scope,
            request: None,
            expected_sequence: None,
            actor,
            settings,
            trace: None,
            address: None,
            body,
        };
        let decided = decide(&[command], self, Time(1_000)).expect("the rows can be read");
        let reply = decided.answers.into_iter().next().expect("one answer");
        let reply = reply.map_err(|rejection| rejection.reason)?;
        let sequence = if let Reply::Session { sequence, .. } = reply { sequence } else { 0 };
        let Some(decision) = decided.decision else { return Ok((sequence, Vec::new())) };
        let replayed = evolve(&decision, self).expect("it fits");
        assert_eq!(replayed, decided.changes);
        self.apply(decided.changes);
        Ok((sequence, decision.turns.into_iter().flat_map(|turn| turn.events).collect()))
    }
}

/// A shard with the process and these endpoints of the tenant, by name and filters.
fn shard(endpoints: &[(&str, &[&str], bool)]) -> (Rows, Start) {
    let compiled = compile_file("definition.json", PROCESS.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let endpoint = |(id, filters, enabled): &(&str, &[&str], bool)| Endpoint {
        id: (*id).to_owned(),
        url: format!("https://{id}.example/in"),
        secrets: vec![SourceSecret {
            sealed: sealed(TENANT, SecretOf::Endpoint(id), b"whsec_x"),
            until: None,
        }],
        filters: filters.iter().map(|one| (*one).to_owned()).collect(),
        disabled: (!enabled).then_some(DisabledReason::Gone),
        created: Time(1),
        health: None,
    };
    let endpoints = endpoints.iter().map(endpoint).collect();
    let tenancy = Tenancy { endpoints, ..Tenancy::first(Some(sealed(TENANT, SecretOf::Mail, &[1; 32]))) };
    let (mut rows, machine) = (Rows::default(), Arc::new(definition.machine));
    rows.execute(Scope::Shard, Body::Catalogue(CatalogueCommand::InstallTenancy(InstallTenancy { tenancy })));
    rows.execute(
        Scope::Shard,
        Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine: Arc::clone(&machine) })),
    );
    let start = start_of("gate", 1, machine_digest(&rows), "agent");
    (rows, start)
}

/// The digest of the installed machine.
fn machine_digest(rows: &Rows) -> Digest {
    let of = |row: &Arc<Row>| if let Row::Machine(machine) = &**row { Some(machine.digest()) } else { None };
    rows.0.values().find_map(of).expect("it is installed")
}

/// The published events: the endpoint, the type, the sequence after the event, and its subject.
fn published(events: &[Event]) -> Vec<(String, String, u64, Option<EventSubject>)> {
    let one = |event: &Event| {
        let Event::Delivery(DeliveryEvent::Queued { effect }) = event else { return None };
        let EffectBody::Publish { endpoint, kind, sequence, about, .. } = &effect.body else { return None };
        Some((endpoint.clone(), kind.to_string(), *sequence, about.clone()))
    };
    events.iter().filter_map(one).collect()
}

#[test]
fn each_endpoint_gets_the_events_it_wants_in_the_entry_in_which_they_happen() {
    let (mut rows, start) = shard(&[
        ("all", &[], true),
        ("ends", &["session.completed", "task.*"], true),
        ("off", &["*"], false),
    ]);
    let (_, events) = rows.execute(Scope::Session(ID), Body::Session(SessionCommand::Start(start)));
    let at = |wanted: fn(&Event) -> bool| {
        u64::try_from(events.iter().position(wanted).expect("it happens")).unwrap() + 1
    };
    let (started, entered) = (
        at(|event| matches!(event, Event::Session(SessionEvent::Started { .. }))),
        at(|event| matches!(event, Event::Run(RunEvent::Entered { .. }))),
    );
    let row = |endpoint: &str, kind: &str, at: u64, about: Option<&str>| {
        (
            endpoint.to_owned(),
            kind.to_owned(),
            at,
            about.map(|about| EventSubject::OfSession(about.to_owned())),
        )
    };
    let first = [
        row("all", "session.started", started, None),
        row("all", "session.state_entered", entered, Some("ask")),
    ];
    assert_eq!(published(&events), first);
    let pause = Body::Session(SessionCommand::Pause(Pause { comment: "words of people".into() }));
    let (seen, events) = rows.execute(Scope::Session(ID), pause);
    let published = published(&events);
    assert_eq!(published, [row("all", "session.paused", seen, None)]);
    let Some(row) = rows.0.get(&Key::session(TENANT, ID)) else { panic!("there is no session") };
    let Row::Session(session) = &**row else { panic!("it is no session") };
    // A client that saw the reply may continue from its sequence, although a publish event followed.
    assert_eq!((session.stable_from, session.sequence), (Some(seen), seen + 1));
    assert_eq!((session.outbox().count, session.outbox().published), (0, 3));
}

#[test]
fn a_tenant_without_endpoints_has_no_messages() {
    for endpoints in [&[][..], &[("off", &["*"][..], false)]] {
        let (mut rows, start) = shard(endpoints);
        let (_, events) = rows.execute(Scope::Session(ID), Body::Session(SessionCommand::Start(start)));
        assert!(!events.is_empty());
        assert_eq!(published(&events), []);
    }
}

#[test]
fn a_session_republishes_its_own_events_alone() {
    let (mut rows, start) = shard(&[("all", &[], true)]);
    rows.execute(Scope::Session(ID), Body::Session(SessionCommand::Start(start)));
    let republish = |retry, kind| {
        let event = PublishedEvent { kind, sequence: 1, at: Time(1), about: None };
        let (endpoint, events) = ("all".into(), vec![event]);
        Body::Delivery(DeliveryCommand::Republish(Republish { endpoint, retry, events }))
    };
    let of_tenant =
        rows.attempt(Scope::Session(ID), republish(Vec::new(), PublishedType::DefinitionDeployed));
    assert_eq!(of_tenant, Err(Reason::FieldInvalid));
    let (_, events) = rows.execute(Scope::Session(ID), republish(Vec::new(), PublishedType::SessionStarted));
    assert_eq!(published(&events), [("all".to_owned(), "session.started".to_owned(), 1, None)]);
    let queued = |event: &Event| {
        if let Event::Delivery(DeliveryEvent::Queued { effect }) = event { Some(effect.number) } else { None }
    };
    let number = events.iter().find_map(queued).expect("a message");
    let fail = FailEffect { number, code: FailureCode::WebhookFailed, detail: None, round: Some(0) };
    rows.execute(Scope::Session(ID), Body::Delivery(DeliveryCommand::FailEffect(fail)));
    let beside = rows.attempt(Scope::Session(ID), republish(vec![number], PublishedType::DefinitionDeployed));
    assert_eq!(beside, Err(Reason::FieldInvalid), "it is refused before the dead letter is sent again");
}

fn put(id: &str, url: &str) -> ChangeEndpoint {
    ChangeEndpoint::Put {
        id: id.into(),
        url: url.into(),
        filters: vec!["session.*".into()],
        secret: sealed(TENANT, SecretOf::Endpoint(id), b"whsec_x"),
        key: Some(sealed(TENANT, SecretOf::Mail, &[1; 32])),
        etag: String::new(),
    }
}

fn change(rows: &mut Rows, change: ChangeEndpoint) -> Result<usize, Reason> {
    rows.attempt(Scope::Catalogue, Body::Delivery(DeliveryCommand::Endpoint(change)))
        .map(|(_, events)| events.len())
}

fn kept(rows: &Rows) -> Tenancy {
    let row = rows.0.get(&Key::tenancy_record(TENANT)).expect("there is a record");
    let Row::Tenancy(tenancy) = &**row else { panic!("it is no tenancy") };
    tenancy.clone()
}

#[test]
fn an_endpoint_keeps_its_secret_until_it_is_rotated_and_is_sent_again_when_it_is_put_again() {
    let mut rows = Rows::default();
    assert_eq!(change(&mut rows, put("ops", "https://one.example/")), Ok(1));
    assert_eq!(change(&mut rows, put("ops", "https://one.example/")), Ok(0), "nothing has changed");
    let disable = |reason| ChangeEndpoint::Disable { id: "ops".into(), reason };
    assert_eq!(change(&mut rows, disable(DisabledReason::Gone)), Ok(1));
    assert_eq!(
        change(&mut rows, disable(DisabledReason::Failing)),
        Ok(0),
        "it is disabled for another reason"
    );
    let disabled = kept(&rows).endpoints[0].clone();
    assert_eq!(
        (disabled.disabled, disabled.wants(PublishedType::SessionStarted)),
        (Some(DisabledReason::Gone), false)
    );
    let ChangeEndpoint::Put { id, url, filters, key, .. } = put("ops", "https://two.example/") else {
        unreachable!()
    };
    let ops = |secret: &str| sealed(TENANT, SecretOf::Endpoint("ops"), secret.as_bytes());
    let etag = "0000000000000000".to_owned();
    let stale = ChangeEndpoint::Put { id, url, filters, secret: ops("whsec_other"), key, etag };
    assert_eq!(change(&mut rows, stale), Err(Reason::EtagMismatch));
    assert_eq!(change(&mut rows, put("ops", "https://two.example/")), Ok(1));
    let rotate = |secret: &str, overlap_ms| {
        let (id, secret, etag) = ("ops".into(), ops(secret), String::new());
        ChangeEndpoint::Rotate { id, secret, overlap_ms, etag }
    };
    assert_eq!(change(&mut rows, rotate("whsec_second", 500)), Ok(1));
    let endpoint = kept(&rows).endpoints[0].clone();
    assert!(endpoint.wants(PublishedType::SessionStarted) && !endpoint.wants(PublishedType::TaskCreated));
    let good = |at| -> Vec<String> {
        endpoint.good_secrets(ring(), TENANT, at).iter().map(|text| text.to_string()).collect()
    };
    assert_eq!(good(Time(1_499)), ["whsec_second", "whsec_x"]);
    assert_eq!(good(Time(1_500)), ["whsec_second"]);
    assert_eq!(kept(&rows).revision, 4);
    let delete = || ChangeEndpoint::Delete { id: "ops".into(), etag: String::new() };
    assert_eq!(change(&mut rows, delete()), Ok(1));
    assert_eq!(change(&mut rows, delete()), Err(Reason::NotFound));
    assert_eq!(change(&mut rows, rotate("whsec_third", 0)), Err(Reason::NotFound));
}

#[test]
fn a_tenant_has_so_many_endpoints_and_no_more() {
    let mut rows = Rows::default();
    for at in 0..ENDPOINTS_MAX {
        assert_eq!(change(&mut rows, put(&format!("e-{at}"), "https://one.example/")), Ok(1));
    }
    assert_eq!(change(&mut rows, put("more", "https://one.example/")), Err(Reason::QuotaExceeded));
    assert_eq!(change(&mut rows, put("e-0", "https://two.example/")), Ok(1));
    for (id, url) in
        [("", ""), ("Ops", ""), ("a.b", ""), ("ok", "x".repeat(ENDPOINT_URL_BYTES_MAX + 1).as_str())]
    {
        assert_eq!(change(&mut rows, put(id, url)), Err(Reason::FieldInvalid), "{id:?}");
    }
    assert!(kept(&rows).endpoints.is_sorted_by(|one, next| one.id < next.id));
}

/// The published events of the tenant itself: the endpoint, the type, the number, and the subject.
fn of_tenant(events: &[Event]) -> Vec<(String, String, u64, Option<EventSubject>)> {
    let one = |event: &Event| {
        let Event::Delivery(DeliveryEvent::Queued { effect }) = event else {
            return None;
        };
        let EffectBody::Publish { endpoint, kind, sequence, about, .. } = &effect.body else { return None };
        Some((endpoint.clone(), kind.to_string(), *sequence, about.clone()))
    };
    events.iter().filter_map(one).collect()
}

fn deploy(source: &str) -> Body {
    let compiled = compile_file("definition.json", PROCESS.as_bytes(), None);
    let machine = Arc::new(compiled.definition.expect("it is one").machine);
    let (name, format, source) = ("gate".into(), "checkpoint".into(), Digest::of(source.as_bytes()));
    let (files, activate, etag) = (Vec::new(), true, String::new());
    Body::Catalogue(CatalogueCommand::Deploy(Deploy {
        findings: Vec::new(),
        name,
        format,
        files,
        source,
        machine,
        activate,
        etag,
    }))
}

fn wanting(id: &str, filter: &str) -> ChangeEndpoint {
    let ChangeEndpoint::Put { id, url, secret, key, etag, .. } = put(id, "https://one.example/") else {
        unreachable!()
    };
    ChangeEndpoint::Put { id, url, filters: vec![filter.into()], secret, key, etag }
}

#[test]
fn endpoints_get_events_of_definitions_and_of_disabled_endpoints() {
    let mut rows = Rows::default();
    let published_row = |of: &str, kind: &str, sequence, about: &EventSubject| {
        (of.to_owned(), kind.to_owned(), sequence, Some(about.clone()))
    };
    let second = EventSubject::Version { definition: "gate".into(), number: 2 };
    assert_eq!(of_tenant(&rows.execute(Scope::Catalogue, deploy("zero")).1), [], "nobody is there");
    for (id, filter) in [("all", "*"), ("defs", "definition.*"), ("ends", "session.*")] {
        assert_eq!(change(&mut rows, wanting(id, filter)), Ok(1));
    }
    let (_, events) = rows.execute(Scope::Catalogue, deploy("one"));
    let wanted = [
        published_row("all", "definition.deployed", 1, &second),
        published_row("defs", "definition.deployed", 1, &second),
        published_row("all", "definition.activated", 3, &second),
        published_row("defs", "definition.activated", 3, &second),
    ];
    assert_eq!(of_tenant(&events), wanted);
    let disabled = EventSubject::Endpoint { id: "defs".into(), reason: DisabledReason::Gone };
    let disable = ChangeEndpoint::Disable { id: "defs".into(), reason: DisabledReason::Gone };
    let (_, events) = rows.execute(Scope::Catalogue, Body::Delivery(DeliveryCommand::Endpoint(disable)));
    assert_eq!(of_tenant(&events), [published_row("all", "endpoint.disabled", 5, &disabled)]);
    assert_eq!(kept(&rows).outbox, Some(TenantOutbox { last: 5, waiting: 5 }));
    let revision = kept(&rows).revision;
    let defer = |attempt| DeferEffect {
        number: 1,
        attempt,
        wait_ms: 4_000,
        code: FailureCode::Attempt(DeliveryReason::Timeout),
        detail: DeliveryDetail::quote("too slow"),
        made: true,
    };
    let first = Attempt::default();
    assert_eq!(
        rows.execute(Scope::Catalogue, Body::Delivery(DeliveryCommand::DeferEffect(defer(first)))).1.len(),
        1
    );
    assert_eq!(
        rows.execute(Scope::Catalogue, Body::Delivery(DeliveryCommand::DeferEffect(defer(first)))).1.len(),
        0,
        "it was told before"
    );
    let Some(row) = rows.0.get(&Key::outbox(TENANT, OutboxScope::Tenant, 1)) else { panic!("it waits") };
    let Row::Outbox(effect) = &**row else { panic!("{row:?}") };
    assert_eq!((effect.attempt().number, effect.deliver_at), (1, Time(5_000)));
    assert_eq!(
        index_keys(&Key::outbox(TENANT, OutboxScope::Tenant, 1), row).len(),
        2,
        "it is found when it is due"
    );
    let ack = |number| Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number }));
    let fail = FailEffect { number: 2, code: FailureCode::WebhookFailed, detail: None, round: Some(0) };
    assert_eq!(rows.execute(Scope::Catalogue, ack(1)).1.len(), 1);
    assert_eq!(rows.execute(Scope::Catalogue, ack(1)).1.len(), 0);
    assert_eq!(rows.execute(Scope::Catalogue, Body::Delivery(DeliveryCommand::FailEffect(fail))).1.len(), 1);
    assert_eq!(kept(&rows).outbox, Some(TenantOutbox { last: 5, waiting: 3 }));
    assert_eq!(kept(&rows).revision, revision, "shards have no need to know");
}

#[test]
fn a_tenants_own_outbox_is_bounded() {
    let mut rows = Rows::default();
    assert_eq!(change(&mut rows, wanting("all", "definition.deployed")), Ok(1));
    for number in 0..TENANT_OUTBOX_MAX {
        assert_eq!(of_tenant(&rows.execute(Scope::Catalogue, deploy(&number.to_string())).1).len(), 1);
    }
    assert_eq!(of_tenant(&rows.execute(Scope::Catalogue, deploy("more")).1), []);
    rows.execute(Scope::Catalogue, Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: 1 })));
    assert_eq!(of_tenant(&rows.execute(Scope::Catalogue, deploy("again")).1).len(), 1);
}
