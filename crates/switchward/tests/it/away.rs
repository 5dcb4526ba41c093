//! Redis is away: sessions go on, timers fire, effects wait within a bound and leave in the order in which they are due.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use switchward_api::v1;
use tokio::time::sleep;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::receiver::{Manner, Receiver};
use crate::setting;
use crate::site::{Caller, Redis, Site, SiteOptions};

/// The capacity of the outbox, of which a fifth is reserved.
const OUTBOX_MAX: usize = 100;
const UNRESERVED_MAX: usize = 80;
/// Sessions of each kind that ends in the meantime.
const EACH: u64 = 3;
/// How long the log is watched without requests.
const STILL: Duration = Duration::from_secs(4);
/// How far an effect may arrive before or after its turn: the number of concurrent deliveries to one destination, and as
/// many more for one that is delayed on a busy machine.
const OUT: usize = 2 * 16;
const PATIENCE: Duration = Duration::from_secs(60);
/// The request that waits for its turn, and a start that is tried again and again.
const REQUEST: u64 = 9_000;
const LATE: u64 = 9_001;

/// The approver.
const LEAD: &str = "lead@example.com";

/// Sends a message from a state of this name.
fn message(name: &str, url: &str) -> Value {
    json!({ "name": name, "type": "output", "target": "webhook", "template": "{{ gathered_data.n }}",
            "recipients": [format!("{url}/{{gathered_data.n}}/{name}")] })
}

/// Definitions that each send one message in the end: at once, after this many seconds, after a reply, after work.
fn definitions(url: &str, seconds: f64) -> [Value; 5] {
    let always = json!({ "from": "push", "to": "fine", "guards": [{ "type": "always" }] });
    let sent = |from: &str| json!({ "from": from, "port": "done", "to": "fine" });
    let fine = json!({ "name": "fine", "type": "conversation" });
    let asked = json!({ "type": "http_request", "config": {
        "method": "POST", "url": format!("{url}/{{gathered_data.n}}/order"), "body": {}, "into": "order" } });
    [
        json!({ "name": "tell", "states": [message("told", url), fine], "transitions": [sent("told")] }),
        json!({ "name": "nap",
            "states": [
                { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": seconds / 3_600.0 },
                message("woken", url), fine ],
            "transitions": [{ "from": "rest", "port": "received", "to": "woken" }, sent("woken")] }),
        json!({ "name": "asks",
            "states": [
                { "name": "decide", "type": "approval", "approvers": [LEAD] },
                message("decided", url), fine, { "name": "stop", "type": "conversation" } ],
            "transitions": [
                { "from": "decide", "port": "approved", "to": "decided" },
                { "from": "decide", "port": "rejected", "to": "stop" }, sent("decided")] }),
        json!({ "name": "claim",
            "states": [
                { "name": "ask", "type": "conversation" },
                { "name": "read", "type": "parse", "instructions": "A number.",
                  "fields": [{ "name": "amount", "type": "number", "required": true }] },
                message("done", url), fine ],
            "transitions": [
                { "from": "ask", "to": "read", "guards": [{ "type": "always" }] },
                { "from": "read", "port": "complete", "to": "done" },
                { "from": "read", "port": "incomplete", "to": "fine" }, sent("done")] }),
        json!({ "name": "order",
            "states": [{ "name": "push", "type": "logic", "operations": [asked] }, fine],
            "transitions": [always] }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_go_on_while_redis_is_away() -> anyhow::Result<()> {
    let down = Duration::from_secs(setting("FAULTS_DOWN_SECONDS", 20)).max(Duration::from_secs(20));
    let receiver = Receiver::start(1, Manner::Good).await?;
    let mut redis = Redis::start().await?;
    let options = SiteOptions {
        ports: vec![receiver.port],
        shards: 1,
        outbox_max: OUTBOX_MAX,
        ..SiteOptions::default()
    };
    let site = Site::new(&redis, &options)?;
    let server = site.start().await?;
    let caller = site.caller(0)?;
    for definition in definitions(&receiver.url(), down.as_secs_f64() * 0.9) {
        caller.deploy(&definition).await?;
    }
    let lead = caller.operator(LEAD).await?;
    redis.kill().await?;
    let begun = Instant::now();
    let parked = [("nap", 1_000), ("asks", 2_000), ("claim", 3_000)];
    for (definition, first) in parked {
        for number in first..first + EACH {
            caller.begin(definition, number).await?;
        }
    }
    for number in 3_000..3_000 + EACH {
        say(&caller, format!("claim-{number}")).await?;
    }
    caller.begin("asks", 2_000 + EACH).await?;
    caller.begin("order", REQUEST).await?;
    let filled = fill(&caller).await?;
    eprintln!("  {:.0?}: {filled} messages wait, no more are taken on", begun.elapsed());
    still(&site).await?;
    reserved(&caller, &lead).await?;
    eprintln!("  {:.0?}: decisions, completions and cancels got in", begun.elapsed());
    woken(&caller, begun, down).await?;
    ensure!(receiver.count() == 0, "something arrived without a way");
    refused(&caller).await?;
    redis.run().await?;
    arrives(&receiver, filled).await?;
    eprintln!("  {:.0?}: everything has arrived", begun.elapsed());
    caller.begin("tell", LATE).await?;
    server.kill().await
}

/// Says something in a conversation, and ends the turn.
async fn say(caller: &Caller, name: String) -> anyhow::Result<()> {
    let wanted = v1::PostMessageRequest { name: name.clone(), text: "One.".into(), ..Default::default() };
    caller.sessions().post_message(caller.request(wanted)).await?;
    let wanted = v1::EndTurnRequest { name, ..Default::default() };
    caller.sessions().end_turn(caller.request(wanted)).await?;
    Ok(())
}

/// Starts sessions that send a message each, until one is refused. Returns the number of started ones.
async fn fill(caller: &Caller) -> anyhow::Result<usize> {
    for number in 0..=UNRESERVED_MAX {
        match caller.clone().start("tell".to_owned(), u64::try_from(number)?).await {
            Ok(_) => {}
            Err(status) => {
                ensure!(status.code() == Code::ResourceExhausted, "refused otherwise: {status}");
                let details = status.get_error_details();
                ensure!(details.retry_info().is_some(), "nobody is told when to try again: {details:?}");
                ensure!(number > UNRESERVED_MAX / 2, "only {number} were taken on");
                return Ok(number);
            }
        }
    }
    anyhow::bail!("the outbox has no bound")
}

/// One more is refused, and one that was taken on before is answered as it was.
async fn refused(caller: &Caller) -> anyhow::Result<()> {
    caller.clone().start("tell".to_owned(), 0).await.context("the first, once more")?;
    let late = caller.clone().start("tell".to_owned(), LATE).await;
    let code = late.map_or_else(|status| status.code(), |_| Code::Ok);
    ensure!(code == Code::ResourceExhausted, "it was not refused: {code:?}");
    Ok(())
}

/// What cannot go out costs no entries of the log, however often it is tried.
async fn still(site: &Site) -> anyhow::Result<()> {
    let before = site.metric("switchward_shard_entries_total").await?;
    sleep(STILL).await;
    let after = site.metric("switchward_shard_entries_total").await?;
    ensure!(before > 0.0 && after == before, "the log grew from {before} entries to {after}");
    Ok(())
}

/// What ends work that is under way gets in, and adds its messages.
async fn reserved(caller: &Caller, lead: &Caller) -> anyhow::Result<()> {
    for number in 2_000..2_000 + EACH {
        let wanted = v1::RecordReplyRequest {
            name: format!("asks-{number}"),
            from: LEAD.into(),
            text: "yes".into(),
            ..Default::default()
        };
        lead.sessions().record_reply(lead.request(wanted)).await.context("a decision")?;
        ensure!(
            caller.session(&format!("asks-{number}")).await?.at == ["fine"],
            "the decision moved nothing"
        );
    }
    let name = format!("asks-{}", 2_000 + EACH);
    let wanted = v1::CancelSessionRequest { name: name.clone(), ..Default::default() };
    caller.sessions().cancel_session(caller.request(wanted)).await.context("a cancel")?;
    let wanted = v1::PollWorkRequest { max_items: 10, ..Default::default() };
    let items = caller.work().poll_work(caller.request(wanted)).await.context("work")?.into_inner().items;
    ensure!(items.len() == usize::try_from(EACH)?, "{items:?}");
    for item in items {
        let amount = prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(1.0)) };
        let result = prost_types::Struct { fields: [("amount".to_owned(), amount)].into() };
        let wanted = v1::CompleteWorkRequest {
            name: item.name,
            lease_token: item.lease_token,
            result: Some(result),
            ..Default::default()
        };
        let done = caller.work().complete_work(caller.request(wanted)).await.context("a completion")?;
        ensure!(done.get_ref().accepted, "{done:?}");
    }
    refused(caller).await
}

/// Timers fire and sessions are answered to the end of the time, one look a second.
async fn woken(caller: &Caller, begun: Instant, down: Duration) -> anyhow::Result<()> {
    let mut woken = 0;
    while begun.elapsed() < down || woken < EACH {
        ensure!(begun.elapsed() < down + PATIENCE, "{woken} of {EACH} timers have fired");
        sleep(Duration::from_secs(1)).await;
        woken = 0;
        for number in 1_000..1_000 + EACH {
            let session = caller.session(&format!("nap-{number}")).await?;
            woken += u64::from(session.at == ["fine"]);
        }
        if begun.elapsed().as_secs().is_multiple_of(10) {
            eprintln!("  {:.0?}: {woken} timers have fired", begun.elapsed());
        }
    }
    Ok(())
}

/// Everything arrives once, and in order, as far as concurrent deliveries allow.
async fn arrives(receiver: &Receiver, filled: usize) -> anyhow::Result<()> {
    let wanted = filled + 3 * usize::try_from(EACH)? + 1;
    let begun = Instant::now();
    while receiver.count() < wanted {
        ensure!(begun.elapsed() < PATIENCE, "{} of {wanted} have arrived", receiver.count());
        sleep(Duration::from_millis(200)).await;
    }
    let mut attempts = receiver.attempts();
    ensure!(attempts.len() == wanted, "{} came, {wanted} were sent: {attempts:?}", attempts.len());
    attempts.sort_by_key(|attempt| attempt.begun);
    let order = attempts.iter().filter_map(|one| one.path.strip_suffix("/told")?.get(1..)?.parse().ok());
    let order: Vec<usize> = order.collect();
    ensure!(order.len() == filled, "{} of {filled} messages came", order.len());
    let worst = order.iter().enumerate().map(|(came, sent)| came.abs_diff(*sent)).max().unwrap_or_default();
    eprintln!("  none came more than {worst} places from its turn");
    ensure!(worst <= OUT, "one came {worst} places from its turn: {order:?}");
    Ok(())
}
