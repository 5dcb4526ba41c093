//! What becomes of effects that cannot go out.

use std::sync::Arc;

use switchward_bus::{Memory, Settings};
use switchward_engine::{Answer, Deploy, EnsureTenancy, KeyRing, RetryEffect, RingKey, Scope, Start};
use switchward_machine::Time;
use switchward_shard::{ClusterOptions, ManualClock};
use switchward_store::DataDir;

use super::*;

const TENANT: TenantId = TenantId(1);
const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": {
        "ask": { "question": "What now?", "answers": { "help": { "next": "ask", "action": "notify_human" } } }
    }
}"#;

async fn cluster(folder: &std::path::Path, clock: &ManualClock) -> Cluster {
    let options = ClusterOptions {
        data: DataDir::open(folder).unwrap(),
        shards: 1,
        cache_bytes: 4 * 1024 * 1024,
        clock: Arc::new(clock.clone()),
        ring: KeyRing::of(vec![RingKey::of([1; 32])]),
        on_fatal: Box::new(|why| panic!("{why}")),
    };
    Cluster::open(options).await.unwrap()
}

/// A session of which somebody is told by mail.
async fn mailing(cluster: &Cluster) -> SessionId {
    let submit = async |scope, body| cluster.execute(Command::of_server(TENANT, scope, body)).await.unwrap();
    submit(
        Scope::Catalogue,
        Body::EnsureTenancy(EnsureTenancy { any_approver_address: false, link_auth: None, key: None }),
    )
    .await;
    let compiled = switchward_formats::compile_file("gate.json", PROCESS.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let machine = Arc::new(definition.machine);
    let digest = machine.digest();
    let deploy = Deploy {
        name: "gate".to_owned(),
        format: "checkpoint".to_owned(),
        source: digest,
        files: Vec::new(),
        machine,
        activate: true,
        etag: String::new(),
    };
    submit(Scope::Catalogue, Body::Deploy(deploy)).await;
    let session = SessionId([3; 16]);
    let start = Start {
        definition: "gate".to_owned(),
        version: 1,
        machine: digest,
        key: None,
        role: "agent".to_owned(),
        labels: Vec::new(),
        input: Vec::new(),
        queue: Vec::new(),
        contact: None,
        workflows: Vec::new(),
        assistant: None,
        message: None,
        callees: Vec::new(),
        reply_tenant: None,
        audience: vec!["kim@acme.example".to_owned()],
        escalation: Vec::new(),
        any_approver_address: false,
        reminders: None,
        quorum: None,
        policies: Vec::new(),
    };
    submit(Scope::Session(session), Body::Start(start)).await;
    let answer = Answer { answer: "help".to_owned(), state: None, note: String::new() };
    submit(Scope::Session(session), Body::Answer(answer)).await;
    session
}

async fn mail(shard: &Shard) -> Effect {
    let view = shard.read().await.unwrap();
    let prefix = Key::prefix_of_session(TENANT, SessionId([3; 16]), switchward_engine::Kind::Outbox);
    let mut found = None;
    view.scan(&prefix, None, &mut |_, row| {
        if let Row::Outbox(effect) = &**row {
            found = Some(effect.clone());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    found.expect("a mail")
}

#[tokio::test]
async fn a_mail_waits_so_long_for_a_server_that_sends_mail_and_is_a_dead_letter_then() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster(folder.path(), &clock).await;
    let session = mailing(&cluster).await;
    let shard = cluster.shard_of(session.bucket());
    let bus: Arc<dyn Bus> = Arc::new(Memory::new(Settings::default()));
    let road = Road { bus, mail: false, names: Arc::new(Known::new(cluster.clone())) };
    let mut out = Out::default();
    clock.advance(UNSENT_MAIL_MS - 1);
    round((shard, 16), &road, &mut out).await.map(drop).unwrap();
    assert_eq!(mail(shard).await.dead(), None, "a server that sends mail may come");
    clock.advance(1);
    round((shard, 16), &road, &mut out).await.map(drop).unwrap();
    let dead = mail(shard).await;
    assert_eq!(dead.dead().map(|dead| dead.code.as_str()), Some(NO_MAIL));
    // Sent anew it has its time again, and a server that sends mail takes it.
    let retry = Body::RetryEffect(RetryEffect { number: dead.number });
    cluster.execute(Command::of_server(TENANT, Scope::Session(session), retry)).await.unwrap();
    round((shard, 16), &road, &mut out).await.map(drop).unwrap();
    assert_eq!(mail(shard).await.dead(), None);
    clock.advance(UNSENT_MAIL_MS);
    let road = Road { mail: true, ..road };
    round((shard, 16), &road, &mut out).await.map(drop).unwrap();
    assert_eq!((mail(shard).await.dead(), out.sent.len()), (None, 1));
    cluster.shutdown().await.unwrap();
}
