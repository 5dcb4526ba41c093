//! Checks that all acknowledged requests have taken effect exactly once.

use anyhow::{Context as _, ensure};
use prost_types::value::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use switchward_api::v1;
use switchward_machine::SessionId;
use switchward_testkit::Pages;
use tokio::task::JoinSet;
use tonic::Code;

use crate::book::{Book, Page};
use crate::front::{Live, Wire};
use crate::plan::{Plan, STATES, STEPS};
use crate::tenants::{Tenant, pair};

/// Sessions that are looked at at one time.
const READERS: usize = 32;
/// Entries of a page of a list.
const PAGE: u32 = 1_000;

/// What may be missing of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callers {
    /// A request may be on its way, and may have been carried out already.
    Waiting,
    /// All have finished: every session is complete.
    Done,
}

/// Which sessions are looked at while callers wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Every one.
    All,
    /// Those that were not found complete before: what a complete one loses stays lost, and is missed at the end.
    Unsettled,
}

/// Looks at sessions of the book while callers wait for a server.
pub(crate) async fn meanwhile(book: &Arc<Book>, live: &Live, which: Look) -> anyhow::Result<()> {
    let mut pages = book.pages();
    if which == Look::Unsettled {
        pages.retain(|number, _| !book.settled.lock().unwrap().contains(number));
    }
    let complete =
        pages.iter().filter(|(_, page)| page.acknowledged.len() == STEPS).map(|(number, _)| *number);
    let complete: BTreeSet<u64> = complete.collect();
    look(book, live, Callers::Waiting, pages).await?;
    book.settled.lock().unwrap().extend(complete);
    Ok(())
}

async fn look(
    book: &Arc<Book>,
    live: &Live,
    callers: Callers,
    pages: BTreeMap<u64, Page>,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let (count, plans) = (pages.len(), Arc::clone(book));
    let found = each(pages.into_iter().collect(), live, move |wire, number, page: Page| {
        let plan = plans.plan(number);
        async move {
            Seen::read(&wire, &page.name).await?.check(&plan, &page, callers)?;
            Ok(page.acknowledged.len())
        }
    });
    let steps: usize = found.await?.into_iter().sum();
    eprintln!(
        "  {steps} acknowledged steps of {count} sessions are there, looked at in {:.1?}",
        begun.elapsed()
    );
    Ok(())
}

/// Looks at everything, when all callers have finished. Returns what was counted.
pub(crate) async fn the_end(book: &Arc<Book>, live: &Live) -> anyhow::Result<String> {
    look(book, live, Callers::Done, book.pages()).await?;
    let mut sessions = Vec::new();
    for tenant in Tenant::BOTH {
        let count = no_others(book, live, tenant).await;
        sessions.push(count.with_context(|| format!("the {} tenant", tenant.word()))?);
    }
    let replayed = replays(book, live).await?;
    let hidden = hidden(book, live).await?;
    Ok(format!(
        "{} and {} sessions of the two tenants, {replayed} requests repeated at the end, {hidden} sessions hidden from \
         the other tenant",
        sessions[0], sessions[1]
    ))
}

/// Sends the requests of sessions again: of all that were sent twice before, and of every tenth other one. They must only
/// return the same answer: where the session stood after the step, although it has ended since. Returns the number of
/// requests.
async fn replays(book: &Arc<Book>, live: &Live) -> anyhow::Result<usize> {
    let pages = sampled(book);
    let plans = Arc::clone(book);
    let found = each(pages, live, move |wire, number, page: Page| {
        let plan = plans.plan(number);
        async move {
            let before = Seen::read(&wire, &page.name).await?;
            let answers = again(&wire, &plan, &page).await?;
            ensure!(
                again(&wire, &plan, &page).await? == answers,
                "two repetitions were answered differently"
            );
            let steps: Vec<u64> = answers.iter().map(|session| session.sequence).collect();
            ensure!(
                answers.iter().all(|session| session.name == page.name) && steps == page.acknowledged,
                "repeated requests were answered with {answers:?}, first with {:?}",
                page.acknowledged
            );
            let after = Seen::read(&wire, &page.name).await?;
            ensure!(after == before, "a repeated request has left something: {after:?}");
            Ok(STEPS)
        }
    });
    Ok(found.await?.into_iter().sum())
}

/// The sessions of which a request was sent twice, and every tenth other one of each tenant.
fn sampled(book: &Book) -> Vec<(u64, Page)> {
    let pages = book.pages().into_iter();
    pages.filter(|(number, page)| page.retried || pair(*number).is_multiple_of(10)).collect()
}

/// The other tenant's agent is shown none of these sessions. Returns how many they are.
async fn hidden(book: &Book, live: &Live) -> anyhow::Result<usize> {
    let others = live.clone();
    let found = each(sampled(book), live, move |_, number, page: Page| {
        let wire = others.agent(Tenant::of(number).other(), 0);
        async move {
            // A name that includes the tenant may be all that the server checks.
            for name in [page.name.as_str(), id_of(&page.name)] {
                let request = v1::GetSessionRequest { name: name.to_owned(), ..Default::default() };
                let got = wire.sessions().get_session(wire.request(request)).await;
                let unknown = got.as_ref().is_err_and(|status| status.code() == Code::NotFound);
                ensure!(unknown, "the other tenant is shown {name}: {got:?}");
            }
            Ok(())
        }
    });
    Ok(found.await?.len())
}

async fn again(wire: &Wire, plan: &Plan, page: &Page) -> anyhow::Result<Vec<v1::Session>> {
    let mut sessions = Vec::new();
    let started = wire.sessions().start_session(wire.request(plan.start())).await?.into_inner();
    sessions.extend(started.session);
    for at in 0..STATES.len() {
        let answer = wire.request(plan.answer(&page.name, at));
        let answered = wire.sessions().answer_checkpoint(answer).await?.into_inner();
        sessions.extend(answered.session.map(|session| *session));
    }
    ensure!(sessions.len() == STEPS, "a repeated request was answered without a session");
    Ok(sessions)
}

/// There are these sessions of the tenant and no others: no request has made a second one.
async fn no_others(book: &Book, live: &Live, tenant: Tenant) -> anyhow::Result<usize> {
    let listed = sessions(&live.agent(tenant, 0), "").await?;
    let names: BTreeSet<String> = listed.iter().map(|session| session.name.clone()).collect();
    ensure!(names.len() == listed.len(), "a session is listed twice");
    let ours = book.pages().into_iter().filter(|(number, _)| Tenant::of(*number) == tenant);
    let ours: BTreeSet<String> = ours.map(|(_, page)| page.name).collect();
    ensure!(!ours.is_empty(), "no session was started");
    ensure!(names == ours, "{} sessions were started, {} are listed", ours.len(), names.len());
    Ok(names.len())
}

/// All sessions that a filter lets through.
async fn sessions(wire: &Wire, filter: &str) -> anyhow::Result<Vec<v1::Session>> {
    let (mut all, mut pages) = (Vec::new(), Pages::default());
    while let Some(page_token) = pages.next_token() {
        let filter = filter.to_owned();
        let request = v1::ListSessionsRequest { page_size: PAGE, page_token, filter, ..Default::default() };
        let page = wire.sessions().list_sessions(wire.request(request)).await?.into_inner();
        all.extend(page.sessions);
        pages.read(page.next_page_token);
    }
    Ok(all)
}

/// The last part of a session's name.
fn id_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// Sessions by the shard that they live in.
pub(crate) fn by_shard<'a>(
    names: impl IntoIterator<Item = &'a String>,
    shards: u16,
) -> anyhow::Result<BTreeMap<u16, usize>> {
    let mut found = BTreeMap::new();
    for name in names {
        let id: SessionId = id_of(name).parse().ok().with_context(|| format!("{name} is no session"))?;
        *found.entry(id.bucket().number() % shards).or_default() += 1;
    }
    Ok(found)
}

/// Does the same for many sessions, some at one time, each as its tenant's agent.
pub(crate) async fn each<P, T, F>(
    pages: Vec<(u64, P)>,
    live: &Live,
    look: impl Fn(Wire, u64, P) -> F + Clone + Send + 'static,
) -> anyhow::Result<Vec<T>>
where
    P: Send + 'static,
    T: Send + 'static,
    F: Future<Output = anyhow::Result<T>> + Send + 'static,
{
    let mut hands: Vec<Vec<(u64, P)>> = Vec::new();
    hands.resize_with(READERS, Vec::new);
    for (at, page) in pages.into_iter().enumerate() {
        hands[at % READERS].push(page);
    }
    let mut readers = JoinSet::new();
    for (reader, hand) in hands.into_iter().enumerate() {
        let (live, look) = (live.clone(), look.clone());
        readers.spawn(async move {
            let mut found = Vec::new();
            for (number, page) in hand {
                let wire = live.agent(Tenant::of(number), reader);
                let looked = look(wire, number, page).await;
                found.push(looked.with_context(|| format!("session {number}"))?);
            }
            anyhow::Ok(found)
        });
    }
    let mut found = Vec::new();
    while let Some(part) = readers.join_next().await {
        found.extend(part??);
    }
    Ok(found)
}

/// A session and its history, as the API shows them.
#[derive(Debug, PartialEq)]
struct Seen {
    session: v1::Session,
    events: Vec<v1::SessionEvent>,
}

impl Seen {
    async fn read(wire: &Wire, name: &str) -> anyhow::Result<Self> {
        let get = wire.request(v1::GetSessionRequest { name: name.to_owned(), ..Default::default() });
        let got = wire.sessions().get_session(get).await.context("it is gone")?.into_inner();
        let session = got.session.context("a session was not shown")?;
        let (mut events, mut pages) = (Vec::new(), Pages::default());
        while let Some(page_token) = pages.next_token() {
            let name = name.to_owned();
            let list =
                v1::ListSessionEventsRequest { name, page_size: PAGE, page_token, ..Default::default() };
            let page = wire.sessions().list_session_events(wire.request(list)).await?.into_inner();
            events.extend(page.events);
            pages.read(page.next_page_token);
        }
        Ok(Self { session, events })
    }

    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a v1::SessionEvent> {
        self.events.iter().filter(move |event| event.r#type == kind)
    }

    fn check(&self, plan: &Plan, page: &Page, callers: Callers) -> anyhow::Result<()> {
        self.check_steps(plan, page, callers).with_context(|| format!("{page:?}, but {self:?}"))
    }

    fn check_steps(&self, plan: &Plan, page: &Page, callers: Callers) -> anyhow::Result<()> {
        ensure!(
            self.session.name == page.name && self.session.session_id == plan.key(),
            "it is another session"
        );
        ensure!(self.of("session.started").count() == 1, "it was started more or less often than once");
        let growing = self.events.windows(2).all(|two| two[0].sequence < two[1].sequence);
        ensure!(growing, "the sequences of its events do not grow");
        let acknowledged = page.acknowledged.len();
        let steps: Vec<&v1::SessionEvent> =
            self.of("session.started").chain(self.of("session.answered")).collect();
        let more = match callers {
            Callers::Waiting => usize::from(acknowledged < STEPS),
            Callers::Done => 0,
        };
        ensure!(
            (acknowledged..=acknowledged + more).contains(&steps.len()),
            "{acknowledged} steps were acknowledged, {} are there",
            steps.len()
        );
        for (at, event) in steps.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| page.acknowledged.get(before));
            ensure!(
                before.is_none_or(|before| event.sequence > *before),
                "step {at} is older than acknowledged"
            );
            let sequence = page.acknowledged.get(at);
            ensure!(
                sequence.is_none_or(|sequence| event.sequence <= *sequence),
                "step {at} is newer than acknowledged"
            );
            if at > 0 {
                check_answer(event, plan, at - 1)?;
            }
        }
        ensure!(page.acknowledged.last().is_none_or(|last| self.session.sequence >= *last), "it went back");
        let complete = steps.len() == STEPS;
        ensure!((self.session.status() == v1::SessionStatus::Completed) == complete, "its status is wrong");
        ensure!(self.of("session.completed").count() == usize::from(complete), "it completed wrongly");
        ensure!(complete || callers == Callers::Waiting, "it is not complete");
        Ok(())
    }
}

fn check_answer(event: &v1::SessionEvent, plan: &Plan, at: usize) -> anyhow::Result<()> {
    let fields = event.data.clone().unwrap_or_default().fields;
    let text = |name: &str| match fields.get(name).and_then(|value| value.kind.clone()) {
        Some(Kind::StringValue(text)) => text,
        _ => String::new(),
    };
    ensure!(event.state == STATES[at] && text("state") == STATES[at], "answer {at} is of {:?}", event.state);
    ensure!(text("answer") == "yes" && text("note") == plan.note(at), "answer {at} says something else");
    Ok(())
}
