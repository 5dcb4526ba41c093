//! What becomes of effects that cannot go out.

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_bus::{Count, Counting, Delivery, Memory, Receipt, Redis, RedisConfig, Settings};
use switchward_machine::{DeliveryReason, Digest, Time};
use switchward_shard::{ClusterOptions, ManualClock};
use switchward_state::catalogue::{CatalogueCommand, Deploy, EnsureTenancy};
use switchward_state::delivery::{DeferEffect, DeliveryCommand, MailCap, RetryEffect};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::seal::{KeyRing, RingKey};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Key, Kind, Row, Scope, View as _};
use switchward_store::DataDir;
use switchward_testkit::{start_of, until};

use super::*;

const TENANT: TenantId = TenantId(1);
const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": {
        "ask": { "question": "What now?", "answers": { "help": { "next": "ask", "action": "notify_human" } } }
    }
}"#;

async fn cluster(folder: &std::path::Path, clock: &ManualClock) -> Cluster {
    cluster_of(1, folder, clock).await
}

async fn cluster_of(shards: u32, folder: &std::path::Path, clock: &ManualClock) -> Cluster {
    let options = ClusterOptions {
        data: DataDir::open(folder).unwrap(),
        shards,
        cache_bytes: 4 * 1024 * 1024,
        clock: Arc::new(clock.clone()),
        ring: KeyRing::of(vec![RingKey::of([1; 32])]),
        on_fatal: Box::new(|why| panic!("{why}")),
        member: None,
    };
    Cluster::open(options).await.unwrap()
}

/// The relay of a server that sends mail and has nothing in flight.
fn sending(cluster: &Cluster) -> Context {
    let bus: Arc<dyn Bus> = Arc::new(Memory::new(Settings::default()));
    sending_over(cluster, bus)
}

/// The same over a bus that others have, too.
fn sending_over(cluster: &Cluster, bus: Arc<dyn Bus>) -> Context {
    let names = Arc::new(Known::new(cluster.clone()));
    let caps = Caps::new(cluster.clone(), Arc::clone(&bus));
    Context { bus, mail: true, names, caps }
}

const SESSION: SessionId = SessionId([3; 16]);

/// A session that notifies somebody by mail.
async fn mailing(cluster: &Cluster) {
    let machine = deployed(cluster).await;
    mails(cluster, SESSION, machine).await;
}

/// Puts the definition into the catalogue.
async fn deployed(cluster: &Cluster) -> Digest {
    let submit = async |scope, body| cluster.execute(Command::of_server(TENANT, scope, body)).await.unwrap();
    submit(
        Scope::Catalogue,
        Body::Catalogue(CatalogueCommand::EnsureTenancy(EnsureTenancy {
            any_approver_address: false,
            link_auth: None,
            key: None,
        })),
    )
    .await;
    let compiled = switchward_formats::compile_file("gate.json", PROCESS.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let machine = Arc::new(definition.machine);
    let digest = machine.digest();
    let deploy = Deploy {
        findings: Vec::new(),
        name: "gate".to_owned(),
        format: "checkpoint".to_owned(),
        source: digest,
        files: Vec::new(),
        machine,
        activate: true,
        etag: String::new(),
    };
    submit(Scope::Catalogue, Body::Catalogue(CatalogueCommand::Deploy(deploy))).await;
    digest
}

/// Begins a session that notifies somebody by mail.
async fn mails(cluster: &Cluster, session: SessionId, machine: Digest) {
    let submit = async |body| {
        cluster.execute(Command::of_server(TENANT, Scope::Session(session), body)).await.unwrap()
    };
    let start =
        Start { audience: vec!["kim@acme.example".to_owned()], ..start_of("gate", 1, machine, "agent") };
    submit(Body::Session(SessionCommand::Start(start))).await;
    let answer = Answer { answer: "help".to_owned(), state: None, note: String::new() };
    submit(Body::Run(RunCommand::Answer(answer))).await;
}

async fn mail(shard: &Shard) -> Effect {
    mail_of(shard, SESSION).await
}

async fn mail_of(shard: &Shard, session: SessionId) -> Effect {
    let view = shard.read().await.unwrap();
    let prefix = Key::prefix_of_session(TENANT, session, Kind::Outbox);
    let mut found = None;
    view.scan(&prefix, None, &mut |_, row| {
        if let Row::Outbox(effect) = &**row {
            found = Some(effect.clone());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    found.expect("a mail is in the outbox")
}

#[tokio::test]
async fn a_mail_waits_so_long_for_a_server_that_sends_mail_and_is_a_dead_letter_then() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster(folder.path(), &clock).await;
    mailing(&cluster).await;
    let shard = cluster.shard_of(SESSION.bucket());
    let context = Context { mail: false, ..sending(&cluster) };
    let mut out = Out::default();
    clock.advance(UNSENT_MAIL_MS - 1);
    round(shard, 16, &context, &mut out).await.map(drop).unwrap();
    assert_eq!(mail(shard).await.dead_letter(), None, "the mail waits for a server that sends mail");
    clock.advance(1);
    round(shard, 16, &context, &mut out).await.map(drop).unwrap();
    let dead = mail(shard).await;
    assert_eq!(dead.dead_letter().map(|dead| dead.code.word()), Some(FailureCode::MailNotConfigured.word()));
    // Sent again, it has its time again, and a server that sends mail takes it.
    let retry = Body::Delivery(DeliveryCommand::RetryEffect(RetryEffect { number: dead.number }));
    cluster.execute(Command::of_server(TENANT, Scope::Session(SESSION), retry)).await.unwrap();
    round(shard, 16, &context, &mut out).await.map(drop).unwrap();
    assert_eq!(mail(shard).await.dead_letter(), None);
    clock.advance(UNSENT_MAIL_MS);
    let context = Context { mail: true, ..context };
    round(shard, 16, &context, &mut out).await.map(drop).unwrap();
    assert_eq!((mail(shard).await.dead_letter(), out.sent.len()), (None, 1));
    cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_mail_of_a_shard_that_is_ahead_of_its_leaders_clock_goes_out_at_once() {
    let decided = Time(1_782_000_000_000);
    let folder = tempfile::tempdir().unwrap();
    let before = cluster(folder.path(), &ManualClock::new(decided)).await;
    mailing(&before).await;
    before.shutdown().await.unwrap();
    drop(before);
    for behind_ms in [1, 3_600_000, decided.0] {
        let clock = ManualClock::new(Time(decided.0 - behind_ms));
        // Tasks of the cluster that was shut down may still hold the folder.
        until("the folder is free", async || DataDir::open(folder.path()).is_ok()).await;
        let cluster = cluster(folder.path(), &clock).await;
        let shard = cluster.shard_of(SESSION.bucket());
        let mut out = Out::default();
        round(shard, 16, &sending(&cluster), &mut out).await.map(drop).unwrap();
        assert_eq!(out.sent.len(), 1, "{behind_ms} ms behind");
        assert_eq!(shard.now(), clock.now(), "the clock itself was not moved");
        cluster.shutdown().await.unwrap();
    }
}

/// Lets this many mails of a shard go out and be delivered, but for the last one, which stays out.
async fn all_go_out(cluster: &Cluster, (shard, count): (&Shard, usize), context: &Context, out: &mut Out) {
    let mut gone = 0;
    while gone < count {
        round(shard, 1_024, context, out).await.map(drop).unwrap();
        let sent: Vec<EffectKey> = out.sent.keys().cloned().collect();
        assert!(!sent.is_empty(), "only {gone} of {count} were sent");
        gone += sent.len();
        for key in &sent[..sent.len() - usize::from(gone == count)] {
            let session = key.session().unwrap();
            let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect {
                number: mail_of(shard, session).await.number,
            }));
            cluster.execute(Command::of_server(TENANT, Scope::Session(session), ack)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn mails_that_are_out_and_mails_that_have_gone_out_count_for_the_cap_of_an_address() {
    let most = MailCap::Address.most();
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster(folder.path(), &clock).await;
    let machine = deployed(&cluster).await;
    // No session has an id of zeros.
    let sessions: Vec<SessionId> = (0..most + 2)
        .map(|n: u32| if n == 0 { u32::MAX } else { n })
        .map(|n| SessionId(std::array::from_fn(|at| n.to_be_bytes()[at % 4])))
        .collect();
    let (first, last) = sessions.split_at(usize::try_from(most).unwrap());
    join_all(first.iter().map(|&session| mails(&cluster, session, machine))).await;
    let shard = cluster.shard_of(SESSION.bucket());
    let context = sending(&cluster);
    let mut out = Out::default();
    all_go_out(&cluster, (shard, first.len()), &context, &mut out).await;
    mails(&cluster, last[0], machine).await;
    round(shard, 1_024, &context, &mut out).await.map(drop).unwrap();
    let waits = mail_of(shard, last[0]).await;
    assert_eq!(
        waits.last().map(|last| last.code.word()),
        Some(FailureCode::MailCap(MailCap::Address).word()),
        "{waits:?}"
    );
    assert_eq!(out.sent.len(), 1);
    // The next leader has nothing in flight, and counts those that have gone out.
    let (mut out, context) = (Out::default(), sending(&cluster));
    mails(&cluster, last[1], machine).await;
    round(shard, 1_024, &context, &mut out).await.map(drop).unwrap();
    assert_eq!(out.sent.len(), 1, "the cap allows one mail");
    let of_last = |key: &EffectKey| last.iter().any(|session| key.session() == Some(*session));
    let are_out =
        |out: &Out| last.iter().all(|session| out.sent.keys().any(|key| key.session() == Some(*session)));
    assert!(!are_out(&out));
    clock.advance(3_600_000);
    round(shard, 1_024, &context, &mut out).await.map(drop).unwrap();
    out.sent.retain(|key, _| of_last(key));
    round(shard, 1_024, &context, &mut out).await.map(drop).unwrap();
    assert!(are_out(&out), "both are sent in the next hour");
    cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn mails_of_all_shards_count_for_one_cap() {
    let most = usize::try_from(MailCap::Address.most()).unwrap();
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster_of(2, folder.path(), &clock).await;
    let machine = deployed(&cluster).await;
    let in_shard = |shard: &Shard, count: usize| -> Vec<SessionId> {
        let all = (1..u16::MAX).map(|n| SessionId(std::array::from_fn(|at| n.to_be_bytes()[at % 2])));
        all.filter(|it| cluster.shard_of(it.bucket()).number() == shard.number()).take(count).collect()
    };
    let [one, other] = cluster.shards() else { panic!("there are two shards") };
    let (first, second) = (in_shard(one, most - 1), in_shard(other, 2));
    join_all(first.iter().chain(&second).map(|&session| mails(&cluster, session, machine))).await;
    let context = sending(&cluster);
    let (mut of_one, mut of_other) = (Out::default(), Out::default());
    all_go_out(&cluster, (one, first.len()), &context, &mut of_one).await;
    for (shard, out) in [(one, &mut of_one), (other, &mut of_other)] {
        round(shard, 1_024, &context, out).await.map(drop).unwrap();
    }
    assert_eq!(of_other.sent.len(), 1, "the cap of both shards allows one mail");
    let waits = join_all(second.iter().map(|&session| mail_of(other, session))).await;
    let codes: Vec<&str> = waits.iter().filter_map(|mail| Some(mail.last()?.code.word())).collect();
    assert_eq!(codes, ["mail_address_limit"]);
    cluster.shutdown().await.unwrap();
}

/// Two servers that have no rows of each other have only the bus in common.
#[tokio::test]
async fn mails_of_all_servers_on_one_bus_count_for_one_cap() {
    let most = u16::try_from(MailCap::Address.most()).unwrap();
    let (folders, clock) =
        ([(); 2].map(|()| tempfile::tempdir().unwrap()), ManualClock::new(Time(1_782_000_000_000)));
    let [one, other] = [cluster(folders[0].path(), &clock).await, cluster(folders[1].path(), &clock).await];
    let session = |n: u16| SessionId(std::array::from_fn(|at| n.to_be_bytes()[at % 2]));
    let first: Vec<SessionId> = (1..most).map(session).collect();
    let machine = deployed(&one).await;
    assert_eq!(deployed(&other).await, machine);
    join_all(first.iter().map(|&session| mails(&one, session, machine))).await;
    let bus: Arc<dyn Bus> = Arc::new(Memory::new(Settings::default()));
    let (of_one, of_other) = (sending_over(&one, Arc::clone(&bus)), sending_over(&other, bus));
    let (here, there) = (one.shard_of(SESSION.bucket()), other.shard_of(SESSION.bucket()));
    let (mut out, mut out_there) = (Out::default(), Out::default());
    all_go_out(&one, (here, first.len()), &of_one, &mut out).await;
    for number in [most, most + 1] {
        mails(&other, session(number), machine).await;
    }
    round(there, 1_024, &of_other, &mut out_there).await.map(drop).unwrap();
    assert_eq!(out_there.sent.len(), 1, "the cap of both servers allows one mail");
    let waits = join_all([most, most + 1].map(|number| mail_of(there, session(number)))).await;
    let codes: Vec<&str> = waits.iter().filter_map(|mail| Some(mail.last()?.code.word())).collect();
    assert_eq!(codes, ["mail_address_limit"]);
    // The next leader of the first server's shard counts what is on the bus under the same names.
    let (mut out, of_one) = (Out::default(), sending_over(&one, Arc::clone(&of_one.bus)));
    round(here, 1_024, &of_one, &mut out).await.map(drop).unwrap();
    assert_eq!(out.sent.len(), 1);
    // An attempt that has failed counts no more.
    let failed = out.sent.keys().next().and_then(EffectKey::session).unwrap();
    let mail = mail_of(here, failed).await;
    let (number, attempt, code) =
        (mail.number, mail.attempt(), FailureCode::Attempt(DeliveryReason::Timeout));
    let defer = DeferEffect { number, attempt, wait_ms: 60_000, code, detail: None, made: true };
    let defer = Body::Delivery(DeliveryCommand::DeferEffect(defer));
    one.execute(Command::of_server(TENANT, Scope::Session(failed), defer)).await.unwrap();
    round(here, 1_024, &of_one, &mut out).await.map(drop).unwrap();
    assert_eq!(out.sent.len(), 0);
    mails(&other, session(most + 2), machine).await;
    round(there, 1_024, &of_other, &mut out_there).await.map(drop).unwrap();
    assert_eq!(out_there.sent.len(), 2, "one mail more is allowed");
    for cluster in [one, other] {
        cluster.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn no_mail_goes_out_or_is_deferred_while_the_bus_cannot_count() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster(folder.path(), &clock).await;
    mailing(&cluster).await;
    let shard = cluster.shard_of(SESSION.bucket());
    // Nobody listens on this port.
    let absent = RedisConfig::new("redis://127.0.0.1:1".to_owned());
    let bus = Arc::new(Redis::open(absent).await.unwrap());
    let mut out = Out::default();
    let round = round(shard, 16, &sending_over(&cluster, bus), &mut out).await;
    assert!(matches!(round, Ok(Round::Full(wait)) if !wait.is_zero()));
    let mail = mail(shard).await;
    assert_eq!((out.sent.len(), mail.last(), mail.attempt().number), (0, None, 0));
    cluster.shutdown().await.unwrap();
}

/// A bus that counts one mail and no other one.
struct CountsOne {
    bus: Memory,
    counted: AtomicBool,
}

#[async_trait]
impl Bus for CountsOne {
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<Published, BusError> {
        self.bus.publish(stream, envelope).await
    }

    async fn ready(&self, stream: Stream) -> Result<(), BusError> {
        self.bus.ready(stream).await
    }

    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        self.bus.take(stream, consumer, max, wait).await
    }

    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError> {
        self.bus.ack(stream, receipts).await
    }

    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.bus.keep(stream, consumer, receipts).await
    }

    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.bus.release(stream, consumer, receipts).await
    }

    async fn count(&self, count: &Count) -> Result<Counting, BusError> {
        if self.counted.swap(true, Ordering::SeqCst) {
            return Err(BusError::Closed);
        }
        self.bus.count(count).await
    }

    async fn uncount(&self, count: &Count) -> Result<(), BusError> {
        self.bus.uncount(count).await
    }

    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        self.bus.answer(name, answer).await
    }

    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        self.bus.answered(name, wait).await
    }

    async fn close(&self) {
        self.bus.close().await;
    }
}

#[tokio::test]
async fn what_a_failed_round_has_not_published_goes_out_in_the_next_one() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(Time(1_782_000_000_000)));
    let cluster = cluster(folder.path(), &clock).await;
    let machine = deployed(&cluster).await;
    for session in [SESSION, SessionId([4; 16])] {
        mails(&cluster, session, machine).await;
    }
    let shard = cluster.shard_of(SESSION.bucket());
    let bus = CountsOne { bus: Memory::new(Settings::default()), counted: AtomicBool::new(false) };
    let mut out = Out::default();
    let failed = round(shard, 16, &sending_over(&cluster, Arc::new(bus)), &mut out).await;
    assert!(failed.is_err(), "the second mail cannot be counted");
    assert!(out.sent.is_empty(), "the first one is not on the bus either");
    round(shard, 16, &sending(&cluster), &mut out).await.map(drop).unwrap();
    assert_eq!(out.sent.len(), 2);
    cluster.shutdown().await.unwrap();
}
