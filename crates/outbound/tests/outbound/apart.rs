//! A worker in a process of its own, which has no data and asks the servers.

use std::ops::ControlFlow;

use bytes::Bytes;
use futures::poll;
use switchward_delivery::DeliveryReason;
use switchward_gateway::proxy::AnswersDelivery as _;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::delivery::{ChangeEndpoint, DeliveryCommand, Endpoint, FailureCode, SourceSecret};
use switchward_state::seal::SecretOf;
use switchward_state::{Body, Command, Key, Kind, Row, Scope, View as _};
use switchward_webhook::{EventType, SigningSecret};

use crate::leaders::{PROCESS, SHARD, TENANT, deployed, each_mail_is_sent_once, mails};
use crate::servers::{NODES, Servers};

const CHANGES: usize = 6;

/// Every third answer to the worker is lost, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_leaders_and_lost_answers_send_each_mail_once() {
    let (servers, worker) = Servers::with_worker_apart().await;
    each_mail_is_sent_once(&servers, CHANGES).await;
    worker.end().await;
    servers.end().await;
}

/// The numbers of a session's effects.
async fn effects(servers: &Servers, session: SessionId) -> Vec<u64> {
    let view = servers.shard(NODES[0], SHARD).read().await.unwrap();
    let mut numbers = Vec::new();
    let prefix = Key::prefix_of_session(TENANT, session, Kind::Outbox);
    let scanned = view.scan(&prefix, None, &mut |_, row| {
        if let Row::Outbox(effect) = &**row {
            numbers.push(effect.number);
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    numbers
}

/// What a process says that has a delivery process's certificate and does not tell the truth.
pub(crate) async fn said(servers: &Servers, text: &str) -> Result<String, String> {
    let question = [&[1], text.as_bytes()].concat();
    let answer = servers.delivery_server(NODES[1]).answer(Bytes::from(question)).await?;
    Ok(String::from_utf8_lossy(&answer[1..]).into_owned())
}

/// The report of the first attempt to deliver an effect.
fn report(session: SessionId, number: u64, channel: &str, outcome: &str) -> String {
    format!(
        r#"{{"report":{{"job":{{"tenant":1,"session":"{session}","origin":{{"effect":{{"number":{number},"round":0,"attempt":0}}}},"channel":{channel}}},"outcome":{outcome}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_counts_only_for_what_is_on_the_bus_and_on_its_channel() {
    let servers = Servers::open(&[]).await;
    let machine = deployed(&servers, "checkpoint", PROCESS).await;
    let session = mails(&servers, 0, machine).await;
    let before = effects(&servers, session).await;
    assert!(!before.is_empty());
    let report = |number, channel: &str, outcome: &str| report(session, number, channel, outcome);
    let sent = r#"{"mail":{"message_id":"a"}}"#;
    for number in &before {
        for channel in [r#""message""#, r#""http""#, r#""model""#, r#"{"event":{"endpoint":"ops"}}"#] {
            assert_eq!(said(&servers, &report(*number, channel, sent)).await, Ok(r#""gone""#.to_owned()));
        }
    }
    for wrong in ["", "{}", "null", r#"{"wanted":{}}"#, r#"{"report":{"job":{}}}"#] {
        assert!(said(&servers, wrong).await.is_err(), "{wrong}");
    }
    let unknown = report(before[0], r#""mail""#, r#"{"failed":{"reason":"x","message":""}}"#);
    assert!(said(&servers, &unknown).await.is_err());
    let work = format!(
        r#"{{"report":{{"job":{{"tenant":1,"session":"{session}","origin":{{"work":{{"item":1,"fence":1}}}},"channel":"http"}},"outcome":{{"http":{{"status":200,"body":null}}}}}}}}"#
    );
    assert_eq!(said(&servers, &work).await, Ok(r#""gone""#.to_owned()));
    assert_eq!(effects(&servers, session).await, before, "nothing has changed");
    assert_eq!(said(&servers, &report(before[0], r#""mail""#, sent)).await, Ok(r#""accepted""#.to_owned()));
    assert_eq!(effects(&servers, session).await, before[1..]);
    servers.end().await;
}

/// A worker that was away takes jobs whose time is over. They go out again, and none of their attempts is used up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_was_not_begun_does_not_count() {
    let servers = Servers::open(&[]).await;
    let machine = deployed(&servers, "checkpoint", PROCESS).await;
    let session = mails(&servers, 0, machine).await;
    let [number, ..] = effects(&servers, session).await[..] else { panic!("a mail waits") };
    let late = r#"{"failed":{"reason":"not_begun","detail":{"job":"late"}}}"#;
    let late = report(session, number, r#""mail""#, late);
    assert_eq!(said(&servers, &late).await, Ok(r#""gone""#.to_owned()));
    let view = servers.shard(NODES[0], SHARD).read().await.unwrap();
    let rows = view.row(&Key::outbox(TENANT, session, number)).unwrap();
    let Some(Row::Outbox(effect)) = rows.as_deref() else { panic!("the mail waits on") };
    assert_eq!((effect.attempt().number, effect.last()), (0, None));
    servers.end().await;
}

/// The server that is asked delivers nothing itself. No address of this machine may be requested, so the worker refuses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_message_is_sent_by_the_worker_and_its_answer_comes_back() {
    let (servers, worker) = Servers::with_worker_apart().await;
    deployed(&servers, "checkpoint", PROCESS).await;
    let ring = servers.cluster(NODES[0]).ring();
    let secret = SigningSecret::of(&[7; 32]).unwrap().text();
    let put = ChangeEndpoint::Put {
        id: "ops".to_owned(),
        url: "https://127.0.0.1/in".to_owned(),
        filters: Vec::new(),
        secret: ring.seal([0; 24], TENANT, SecretOf::Endpoint("ops"), secret.as_bytes()).unwrap(),
        key: None,
        etag: String::new(),
    };
    let put = Body::Delivery(DeliveryCommand::Endpoint(put));
    servers.cluster(NODES[0]).execute(Command::of_server(TENANT, Scope::Catalogue, put)).await.unwrap();
    let record = servers.cluster(NODES[0]).catalogue().read().await.unwrap();
    let record = record.row(&Key::tenancy_record(TENANT)).unwrap();
    let Some(Row::Tenancy(record)) = record.as_deref() else { panic!("the tenant has a record") };
    let pinged = servers.pinger().ping(TENANT, "acme", &record.endpoints[0], EventType::Ping).await;
    assert_eq!(pinged.code, Some(FailureCode::Attempt(DeliveryReason::AddressRefused)), "{pinged:?}");
    assert!(pinged.message_id.starts_with("png_") && pinged.body.contains("ping"), "{pinged:?}");

    let head = |tenant: u32, endpoint: &str| {
        format!(
            r#"{{"tenant":{tenant},"session":"{}","origin":{{"ping":{{"number":1}}}},"channel":{{"event":{{"endpoint":"{endpoint}"}}}}}}"#,
            SessionId([0; 16])
        )
    };
    let wanted = async |head: String| said(&servers, &format!(r#"{{"wanted":{head}}}"#)).await.unwrap();
    assert!(wanted(head(1, "ops")).await.starts_with(r#"{"wanted""#));
    for unknown in [head(1, "other"), head(2, "ops")] {
        assert_eq!(wanted(unknown).await, r#""gone""#);
    }
    let report =
        format!(r#"{{"report":{{"job":{},"outcome":{{"webhook":{{"status":200}}}}}}}}"#, head(1, "ops"));
    assert_eq!(said(&servers, &report).await, Ok(r#""gone""#.to_owned()), "nothing of it is recorded");
    worker.end().await;
    servers.end().await;
}

/// An endpoint of a tenant, at an address that nobody asks in this test.
fn endpoint(servers: &Servers, tenant: TenantId) -> Endpoint {
    let secret = SigningSecret::of(&[7; 32]).unwrap().text();
    let ring = servers.cluster(NODES[0]).ring();
    let sealed = ring.seal([0; 24], tenant, SecretOf::Endpoint("ops"), secret.as_bytes()).unwrap();
    Endpoint {
        id: "ops".to_owned(),
        url: "https://hooks.example/in".to_owned(),
        secrets: vec![SourceSecret { sealed, until: None }],
        filters: Vec::new(),
        disabled: None,
        created: Time(1),
        health: None,
    }
}

/// No worker runs, so the messages wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_messages_of_one_tenant_do_not_block_those_of_others() {
    const OF_TENANT: usize = 8;
    let servers = Servers::without_worker().await;
    let (pinger, other) = (servers.pinger(), TenantId(TENANT.0 + 1));
    let (own, others) = (endpoint(&servers, TENANT), endpoint(&servers, other));
    let own = || pinger.ping(TENANT, "acme", &own, EventType::Ping);
    let mut waiting: Vec<_> = (0..OF_TENANT).map(|_| own()).collect();
    for ping in &mut waiting {
        assert!(poll!(ping).is_pending());
    }
    let refused = own().await;
    assert_eq!(refused.code, Some(FailureCode::Attempt(DeliveryReason::NotBegun)), "{refused:?}");
    let mut others = pinger.ping(other, "globex", &others, EventType::Ping);
    assert!(poll!(&mut others).is_pending());
    drop(waiting);
    assert!(poll!(&mut own()).is_pending(), "who no longer waits takes no part of the limit");
    drop(others);
    servers.end().await;
}
