//! The leader of a shard is killed again and again while gates ask people by mail and an endpoint receives events: no effect is
//! lost, and no mail goes out twice. A delivery process does the jobs. It is not killed: what a process was sending when it died
//! is sent again, because nobody knows whether it arrived.

use anyhow::{bail, ensure};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::delivering::Delivery;
use super::operating::{GROUPS, until, voters};
use super::servers::{Caller, KEY, Servers, can_be_repeated};
use crate::mail_sink::MailSink;
use crate::receiver::{Manner, Outcome, Receiver};
use crate::setting;
use crate::site::Redis;

/// Servers of the cluster.
const COUNT: usize = 3;
/// The groups whose leaders are killed in turn: those of the sessions.
const SHARDS: [u64; 2] = [1, 2];
/// Kills, unless `LEADER_KILLS` says otherwise.
const KILLS: u64 = 5;
/// Callers that start sessions.
const SENDERS: usize = 4;
/// Sessions that are started after each kill before the next one.
const BETWEEN: usize = 20;
/// How long a caller rests after each session.
const PAUSE: Duration = Duration::from_millis(250);
/// Sessions in all: those of one caller may send 5,000 mails in an hour, and the others would wait.
const SESSIONS_MAX: usize = 4_800;
/// How long a caller waits before it asks the next server.
const AGAIN: Duration = Duration::from_millis(50);
/// How often somebody who waits looks again.
const LOOK: Duration = Duration::from_millis(50);
/// The longest wait: a shard puts a job that has no outcome on Redis again after 105 seconds.
const PATIENCE: Duration = Duration::from_secs(180);

/// A session of this definition asks the person of its input, who is different each time: few mails may go to one address.
fn definition() -> String {
    json!({
        "name": "spend",
        "states": [
            { "name": "decide", "type": "approval", "approvers": ["{gathered_data.to}"],
              "request_template": { "subject_template": "Spend?", "body_template": "May we?" } },
            { "name": "pay", "type": "conversation" },
            { "name": "keep", "type": "conversation" },
        ],
        "transitions": [
            { "from": "decide", "port": "approved", "to": "pay" },
            { "from": "decide", "port": "rejected", "to": "keep" },
        ],
    })
    .to_string()
}

/// The configuration of mail of the servers, which send none themselves, and of the delivery process.
fn mail(sink: &MailSink) -> String {
    let port = sink.port;
    format!(
        "[mail]\nfrom = \"approvals@acme.example\"\n\
         [mail.smtp]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"plain\"\nhello = \"acme.example\"\n"
    )
}

/// Three servers whose jobs are done by delivery processes.
async fn started(redis: &Redis, sink: &MailSink) -> anyhow::Result<Servers> {
    let servers = Servers::prepare(COUNT).await?;
    let ring = servers.path("switchward-keys");
    servers.program(&["secrets", "create", &ring]).await?;
    let tables = format!("[redis]\nurl = {:?}\n{}[log]\n", redis.url(), mail(sink));
    for number in 1..=COUNT {
        servers.configure(number, &[("[cluster]\n", "[cluster]\nroles = [\"gateway\", \"engine\"]\n")])?;
        servers.configure(number, &[("[log]\n", &tables)])?;
        servers.configure(number, &[("data_dir =", &format!("keys_file = {ring:?}\ndata_dir ="))])?;
    }
    let servers = servers.founded(COUNT).await?;
    until(&servers, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS]).await?;
    Ok(servers)
}

/// Makes the definition and the endpoint known. Approvers may be named by the input of a session.
async fn deployed(servers: &Servers, receiver: &Receiver) -> anyhow::Result<()> {
    servers.client(1, KEY, &["tenant", "set", "--any-approver-address", "true"]).await?;
    servers.insist(|caller| async move { caller.deploy(definition()).await }).await?;
    let url = format!("{}/events", receiver.url());
    servers.insist(|caller| caller.put_endpoint("ops", &url, "session.started")).await
}

/// Callers that start sessions until they are stopped.
struct Senders {
    progress: Arc<Progress>,
    tasks: JoinSet<anyhow::Result<()>>,
}

/// What they have done.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    next: AtomicUsize,
    started: AtomicUsize,
    /// The number of sessions at which they rest.
    most: AtomicUsize,
}

impl Senders {
    fn begin(callers: &[Caller]) -> Self {
        let (progress, mut tasks) = (Arc::<Progress>::default(), JoinSet::new());
        for _ in 0..SENDERS {
            tasks.spawn(send(Arc::clone(&progress), callers.to_vec()));
        }
        Self { progress, tasks }
    }

    /// Lets them start this many more sessions than until now.
    fn allow(&self, more: usize) {
        self.progress.most.fetch_max(self.progress.next.load(SeqCst) + more, SeqCst);
    }

    /// Waits until this many more sessions were started.
    async fn go_on(&self, more: usize) -> anyhow::Result<()> {
        let wanted = self.progress.started.load(SeqCst) + more;
        self.allow(more);
        wait("sessions are started", || self.progress.started.load(SeqCst) >= wanted).await
    }

    /// Stops them; returns the number of sessions.
    async fn end(mut self) -> anyhow::Result<usize> {
        self.progress.stop.store(true, SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(self.progress.started.load(SeqCst))
    }
}

async fn send(progress: Arc<Progress>, callers: Vec<Caller>) -> anyhow::Result<()> {
    while !progress.stop.load(SeqCst) {
        let more = |next: usize| (next < progress.most.load(SeqCst)).then_some(next + 1);
        let Ok(number) = progress.next.fetch_update(SeqCst, SeqCst, more) else {
            sleep(AGAIN).await;
            continue;
        };
        start(&callers, number).await?;
        progress.started.fetch_add(1, SeqCst);
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Starts a session: asks one server after the other, until one has done it.
async fn start(callers: &[Caller], number: usize) -> anyhow::Result<()> {
    let (key, to) = (format!("spend-{number}"), format!("kim{number}@acme.example"));
    let deadline = Instant::now() + PATIENCE;
    for caller in callers.iter().cycle().skip(number % callers.len()) {
        match caller.start_with("spend", &key, "to", &to).await {
            Ok(_) => return Ok(()),
            Err(status) => {
                ensure!(can_be_repeated(&status) && Instant::now() < deadline, "{key}: {status}");
            }
        }
        sleep(AGAIN).await;
    }
    bail!("there are no servers")
}

/// Waits until this holds.
async fn wait(what: &str, mut holds: impl FnMut() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        ensure!(Instant::now() < deadline, "not so within {PATIENCE:?}: {what}");
        sleep(LOOK).await;
    }
    Ok(())
}

/// The server that leads a group, as it says itself; not the one that was killed, if any.
async fn leader(servers: &Servers, group: u64, killed: Option<usize>) -> anyhow::Result<usize> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for number in (1..=COUNT).filter(|number| Some(*number) != killed) {
            let own = u64::try_from(number)?;
            let known = servers.caller(number)?.leader_of(group).await;
            if known.is_ok_and(|leader| leader == Some(own)) {
                return Ok(number);
            }
        }
        ensure!(Instant::now() < deadline, "no server leads group {group}");
        sleep(LOOK).await;
    }
}

/// Kills the leader of a group. Another server leads the group before the killed one starts again.
async fn kill_leader(servers: &mut Servers, group: u64) -> anyhow::Result<()> {
    let killed = leader(servers, group, None).await?;
    servers.kill(killed).await?;
    leader(servers, group, Some(killed)).await?;
    servers.run(killed).await
}

/// How often each mail was accepted, by its message id.
fn mails(sink: &MailSink) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for mail in sink.mails() {
        *counts.entry(mail.message_id).or_default() += 1;
    }
    counts
}

/// The people who have got a mail.
fn people(sink: &MailSink) -> BTreeSet<String> {
    sink.mails().into_iter().map(|mail| mail.to).collect()
}

/// The ids of the events that were accepted. An event that comes again has the same id.
fn events(receiver: &Receiver) -> BTreeSet<String> {
    let accepted = receiver.attempts().into_iter().filter(|attempt| attempt.outcome == Outcome::Accepted);
    accepted.map(|attempt| attempt.id).collect()
}

/// Waits until no effect is left, and checks that none was given up.
async fn nothing_left(servers: &Servers) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let pending = servers.insist(|caller| async move { caller.effects("pending").await }).await?;
        if pending.is_empty() {
            break;
        }
        ensure!(Instant::now() < deadline, "{} effects are left: {pending:?}", pending.len());
        sleep(LOOK).await;
    }
    let dead = servers.insist(|caller| async move { caller.effects("dead_letter").await }).await?;
    ensure!(dead.is_empty(), "these were given up: {dead:?}");
    Ok(())
}

/// Each session has one mail, which was accepted once, and one event.
fn assess(sink: &MailSink, receiver: &Receiver, sessions: usize) -> anyhow::Result<()> {
    let counts = mails(sink);
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "{} mails went out more than once: {twice:?}", twice.len());
    let (people, events) = (people(sink).len(), events(receiver).len());
    ensure!(
        (counts.len(), people, events) == (sessions, sessions, sessions),
        "of {sessions} sessions there are {} mails to {people} people, and {events} events",
        counts.len()
    );
    let again = receiver.count() - events;
    eprintln!("leader kills: {sessions} sessions, each mail accepted once; {again} events came again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_that_are_killed_lose_no_effect_and_no_mail_goes_out_twice() -> anyhow::Result<()> {
    let (sink, receiver) = (MailSink::start().await?, Receiver::start(1, Manner::Good).await?);
    let redis = Redis::start().await?;
    let mut servers = started(&redis, &sink).await?;
    let delivery = Delivery::start_with(&servers, &redis, &receiver, "one", &mail(&sink)).await?;
    deployed(&servers, &receiver).await?;
    let callers = (1..=COUNT).map(|number| servers.caller(number)).collect::<Result<Vec<_>, _>>()?;
    let (senders, kills) = (Senders::begin(&callers), setting("LEADER_KILLS", KILLS));
    let each = SESSIONS_MAX / usize::try_from(kills)?.max(1);
    ensure!(each >= 2 * BETWEEN, "{kills} kills are too many: there are too few sessions for each");
    senders.go_on(BETWEEN).await?;
    for (_, group) in (0..kills).zip(SHARDS.iter().cycle()) {
        senders.allow(each - BETWEEN);
        let (before_mails, before_events) = (sink.count(), receiver.count());
        kill_leader(&mut servers, *group).await?;
        senders.go_on(BETWEEN).await?;
        let go_on = || sink.count() > before_mails && receiver.count() > before_events;
        wait("mails and events go out", go_on).await?;
    }
    let sessions = senders.end().await?;
    let all = || people(&sink).len() >= sessions && events(&receiver).len() >= sessions;
    wait("everything has arrived", all).await?;
    nothing_left(&servers).await?;
    assess(&sink, &receiver, sessions)?;
    delivery.stop().await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}
