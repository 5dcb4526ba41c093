//! Limits that span sessions, under SIGKILL: exactly as many calls are permitted as fit, wherever the sessions live.
//! Two tenants have the same limit of the same process at the same time, and neither uses up the other's.

use anyhow::{Context as _, ensure};
use rand::Rng as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use std::time::Instant;
use switchward_api::v1;
use switchward_machine::Micros;

use crate::crew::{CALLERS, Counter, Crew};
use crate::front::{Answered, Front, Live, Wire};
use crate::plan::{DEFINITION, deploy};
use crate::rng::{Rng, setting};
use crate::scratch;
use crate::server::{Host, Server};
use crate::tenants::{Tenant, pair};
use crate::verify::{by_shard, each};

/// Sessions that ask once each: half of them are the second tenant's.
const SESSIONS: u64 = 2 * SESSIONS_OF_A_TENANT;
const SESSIONS_OF_A_TENANT: u64 = 500;
/// Shards that they live in; the limit lives in one of them.
const SHARDS: u16 = 4;
/// Calls that are permitted to all sessions of a tenant together.
const PERMITTED: usize = 50;
/// Runs on one data folder, whose log gets longer with each; every start replays it.
const RUNS_OF_A_FOLDER: u64 = 5;
/// Kills while they ask.
const KILLS: usize = 4;
/// What a call costs, and the cap that is used up by [`PERMITTED`] of them.
const COST_USD: &str = "0.25";
const CAP_USD: f64 = 12.5;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Calls,
    Money,
}

impl Limit {
    fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Money => "money",
        }
    }

    /// Why a call is denied that does not fit.
    fn reason(self) -> &'static str {
        match self {
            Self::Calls => "RATE_LIMITED",
            Self::Money => "BUDGET_EXHAUSTED",
        }
    }

    /// The cap as the API writes it.
    fn cap(self) -> &'static str {
        match self {
            Self::Calls => "50",
            Self::Money => "12.5",
        }
    }

    fn cost(self) -> Option<String> {
        match self {
            Self::Calls => None,
            Self::Money => Some(COST_USD.to_owned()),
        }
    }

    /// The deploy gate under another name, so that every run has a limit of its own.
    fn definition(self, name: &str) -> anyhow::Result<String> {
        let mut source: Value = serde_json::from_str(DEFINITION)?;
        source["name"] = json!(name);
        if self == Self::Money {
            let rule =
                json!({"capability": "bash", "budget_limit": {"max_usd": CAP_USD, "period": "monthly"}});
            source["policy"]["allow"] = json!([rule]);
        }
        Ok(source.to_string())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_as_many_calls_are_permitted_as_the_rate_lets_through() -> anyhow::Result<()> {
    // All runs together are far shorter than the hour that the rate is about.
    runs(Limit::Calls, &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_as_much_money_is_permitted_as_the_budget_holds() -> anyhow::Result<()> {
    // A stopped clock starts no new month.
    runs(Limit::Money, &["--clock", "manual"]).await
}

async fn runs(limit: Limit, args: &[&str]) -> anyhow::Result<()> {
    let mut rng = Rng::of(&format!("limited {}", limit.word()));
    let runs: u64 = setting("CRASH_RUNS", 20);
    let (begun, mut kills, mut retried) = (Instant::now(), 0, 0);
    let mut done = 0;
    while done < runs {
        let scratch = scratch::folder()?;
        let mut served = Served::start(scratch.path(), args).await?;
        for number in done + 1..=runs.min(done + RUNS_OF_A_FOLDER) {
            let run = Run::new(limit, rng.seed, number);
            run.play(&mut served, &mut rng).await.with_context(|| format!("run {number}"))?;
            retried += run.retried.load(Ordering::Relaxed);
            done = number;
            eprintln!(
                "  run {done} of {runs}: {PERMITTED} of {SESSIONS_OF_A_TENANT} permitted in both tenants, {:.1?}",
                begun.elapsed()
            );
        }
        kills += served.kills;
        served.host.assert_sound()?;
    }
    eprintln!(
        "limited {}: {runs} runs, {kills} kills, {retried} calls asked about more than once, {:.1?} in all",
        limit.word(),
        begun.elapsed()
    );
    Ok(())
}

/// Every other kill comes while the limit is open, or has just been used up.
fn kill_before(at: usize) -> u64 {
    if at.is_multiple_of(2) { 4 * PERMITTED as u64 } else { SESSIONS - 1 }
}

/// A server that is killed and started again.
struct Served {
    host: Host,
    front: Arc<Front>,
    server: Option<Server>,
    kills: u32,
}

impl Served {
    async fn start(scratch: &Path, args: &[&str]) -> anyhow::Result<Self> {
        let host =
            Host::new(scratch, scratch.join("data")).with(&["--shards", &SHARDS.to_string()]).with(args);
        let server = host.start().await?;
        let front = Front::found(&server.ready).await?;
        front.open(&server.ready).await?;
        Ok(Self { host, front, server: Some(server), kills: 0 })
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        self.front.close();
        self.server.take().context("there is no server")?.kill().await?;
        self.kills += 1;
        let server = self.host.start().await?;
        self.front.open(&server.ready).await?;
        self.server = Some(server);
        Ok(())
    }
}

/// One limit in each tenant, and the sessions that ask for what it holds.
struct Run {
    limit: Limit,
    definition: String,
    /// The names of the sessions, and their outcomes.
    sessions: Arc<Mutex<BTreeMap<u64, String>>>,
    outcomes: Arc<Mutex<BTreeMap<u64, Outcome>>>,
    /// Calls that needed more than one try.
    retried: Arc<AtomicU64>,
}

/// A decision, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome(v1::ToolDecision, String);

/// One session's call. Its requests are the same at every repetition; one of the other tenant has the same ids.
#[derive(Clone)]
struct Asking {
    limit: Limit,
    tenant: Tenant,
    session: String,
    call_id: String,
}

impl Asking {
    fn authorize(&self) -> v1::AuthorizeToolCallRequest {
        v1::AuthorizeToolCallRequest {
            session: self.session.clone(),
            capability: "bash".into(),
            args: br#"{"command": "kubectl rollout status"}"#.to_vec().into(),
            est_cost_usd: self.limit.cost(),
            call_id: self.call_id.clone(),
            request_id: format!("{}-authorize", self.call_id),
            ..Default::default()
        }
    }

    fn report(&self) -> v1::ReportToolUsageRequest {
        v1::ReportToolUsageRequest {
            session: self.session.clone(),
            call_id: self.call_id.clone(),
            cost_usd: self.limit.cost(),
            request_id: format!("{}-report", self.call_id),
            ..Default::default()
        }
    }

    /// Asks for permission, and reports the usage of a permitted call.
    async fn play(&self, front: &Front, caller: usize, retried: &AtomicU64) -> anyhow::Result<Outcome> {
        let answered = front.answered(self.tenant, caller, |wire| {
            let message = self.authorize();
            async move { wire.policy().authorize_tool_call(wire.request(message)).await }
        });
        let Answered { reply, tries } = answered.await.context("its call")?;
        retried.fetch_add(u64::from(tries > 1), Ordering::Relaxed);
        ensure!(reply.call_id == self.call_id, "{} was answered with {}", self.call_id, reply.call_id);
        if reply.decision() == v1::ToolDecision::Allow && self.limit == Limit::Money {
            let reported = front.answered(self.tenant, caller, |wire| {
                let message = self.report();
                async move { wire.policy().report_tool_usage(wire.request(message)).await }
            });
            reported.await.context("its report")?;
        }
        Ok(Outcome(reply.decision(), reply.reason))
    }
}

impl Run {
    fn new(limit: Limit, seed: u64, number: u64) -> Self {
        let definition = format!("deploy-gate-{seed:x}-{number}");
        Self {
            limit,
            definition,
            sessions: Arc::default(),
            outcomes: Arc::default(),
            retried: Arc::default(),
        }
    }

    fn asking(&self, number: u64, session: String) -> Asking {
        let call_id = format!("{}-{}", self.definition, pair(number));
        Asking { limit: self.limit, tenant: Tenant::of(number), session, call_id }
    }

    /// All sessions ask, and the server is killed meanwhile.
    async fn play(&self, served: &mut Served, rng: &mut Rng) -> anyhow::Result<()> {
        let live = served.front.live().await?;
        deploy(&live, &self.limit.definition(&self.definition)?).await?;
        self.start_sessions(&served.front).await?;
        let mut crew = self.ask(&served.front);
        let mut killed: Vec<u64> = (0..KILLS).map(|at| rng.rng.random_range(1..=kill_before(at))).collect();
        killed.sort_unstable();
        for answers in killed {
            crew.until(answers).await?;
            served.restart().await?;
        }
        crew.finish().await?;
        served.restart().await?;
        self.check(&served.front.live().await?).await
    }

    async fn start_sessions(&self, front: &Arc<Front>) -> anyhow::Result<()> {
        let next = Arc::new(AtomicU64::new(0));
        let crew = Crew::begin(CALLERS, &Counter::new(), |caller| {
            let (front, next, sessions) = (Arc::clone(front), Arc::clone(&next), Arc::clone(&self.sessions));
            let definition = self.definition.clone();
            async move {
                while let Some(number) = take(&next) {
                    let message = start(&definition, number);
                    let answered = front.answered(Tenant::of(number), caller, |wire| {
                        let message = message.clone();
                        async move { wire.sessions().start_session(wire.request(message)).await }
                    });
                    let session = answered.await?.reply.session.context("a start without a session")?;
                    sessions.lock().unwrap().insert(number, session.name);
                }
                Ok(())
            }
        });
        crew.finish().await?;
        let found = by_shard(self.sessions.lock().unwrap().values(), SHARDS)?;
        ensure!(found.len() == usize::from(SHARDS), "the sessions live in few shards only: {found:?}");
        Ok(())
    }

    /// Begins to ask for all sessions concurrently.
    fn ask(&self, front: &Arc<Front>) -> Crew {
        let (next, answers) = (Arc::new(AtomicU64::new(0)), Counter::new());
        let askings: Vec<Asking> = {
            let sessions = self.sessions.lock().unwrap();
            sessions.iter().map(|(number, session)| self.asking(*number, session.clone())).collect()
        };
        let askings = Arc::new(askings);
        Crew::begin(CALLERS, &answers, |caller| {
            let (front, next, outcomes) = (Arc::clone(front), Arc::clone(&next), Arc::clone(&self.outcomes));
            let (askings, answers, retried) =
                (Arc::clone(&askings), answers.clone(), Arc::clone(&self.retried));
            async move {
                while let Some(number) = take(&next) {
                    let asking = &askings[usize::try_from(number)?];
                    let said = asking.play(&front, caller, &retried).await;
                    let said = said.with_context(|| asking.call_id.clone())?;
                    outcomes.lock().unwrap().insert(number, said);
                    answers.add();
                }
                Ok(())
            }
        })
    }

    /// Compares the outcomes with the cap, with the history, and with those of repeated requests.
    async fn check(&self, live: &Live) -> anyhow::Result<()> {
        let outcomes = self.outcomes.lock().unwrap().clone();
        ensure!(outcomes.len() == usize::try_from(SESSIONS)?, "{} calls were answered", outcomes.len());
        for tenant in Tenant::BOTH {
            let checked = self.check_tenant(live, tenant, &outcomes).await;
            checked.with_context(|| format!("the {} tenant", tenant.word()))?;
        }
        Ok(())
    }

    async fn check_tenant(
        &self,
        live: &Live,
        tenant: Tenant,
        outcomes: &BTreeMap<u64, Outcome>,
    ) -> anyhow::Result<()> {
        let outcomes: BTreeMap<u64, Outcome> = outcomes
            .iter()
            .filter(|(number, _)| Tenant::of(**number) == tenant)
            .map(|(number, outcome)| (*number, outcome.clone()))
            .collect();
        let allow = Outcome(v1::ToolDecision::Allow, String::new());
        let deny = Outcome(v1::ToolDecision::Deny, self.limit.reason().to_owned());
        let odd = outcomes.values().find(|outcome| **outcome != allow && **outcome != deny);
        ensure!(odd.is_none(), "a call was answered with {odd:?}");
        let permitted = outcomes.values().filter(|outcome| **outcome == allow).count();
        ensure!(permitted == PERMITTED, "{permitted} calls were permitted");
        let sessions = self.sessions.lock().unwrap().clone();
        let askings: Vec<(u64, (Asking, Outcome))> = outcomes
            .into_iter()
            .map(|(number, outcome)| (number, (self.asking(number, sessions[&number].clone()), outcome)))
            .collect();
        let last = askings.last().context("nobody has asked")?.1.0.clone();
        let found = each(askings, live, |wire, _, (asking, outcome)| async move {
            repeated(&wire, &asking, &outcome).await?;
            recorded(&wire, &asking, &outcome).await?;
            spent(&wire, &asking, &outcome).await
        });
        let spent: u64 = found.await?.into_iter().sum();
        if self.limit == Limit::Money {
            let cap = Micros::exact(self.limit.cap()).ok().context("the cap is no amount")?;
            ensure!(spent == cap.0, "{} of {} were spent", Micros(spent), cap);
        }
        self.used_up(&live.agent(tenant, 0), &last).await
    }

    /// The limit itself says that it is used up exactly.
    async fn used_up(&self, wire: &Wire, asking: &Asking) -> anyhow::Result<()> {
        let request = v1::ExplainDecisionRequest {
            session: asking.session.clone(),
            capability: "bash".into(),
            est_cost_usd: self.limit.cost(),
            ..Default::default()
        };
        let explained = wire.policy().explain_decision(wire.request(request)).await?.into_inner();
        let used = explained.rules.iter().flat_map(|rule| &rule.limits).next().context("no limit is told")?;
        let (max, now) = (used.max.as_str(), used.used.as_str());
        ensure!(max == self.limit.cap() && now == max && !used.available, "{now} of {max} are used");
        Ok(())
    }
}

/// Starts a session; every other one of a tenant has a business key.
fn start(definition: &str, number: u64) -> v1::StartSessionRequest {
    let own = format!("{definition}-{}", pair(number));
    v1::StartSessionRequest {
        definition: definition.to_owned(),
        request_id: format!("{own}-start"),
        session_id: if pair(number).is_multiple_of(2) { own } else { String::new() },
        ..Default::default()
    }
}

/// The next number, until all sessions have one.
fn take(next: &AtomicU64) -> Option<u64> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < SESSIONS)
}

/// The same request is answered as it was.
async fn repeated(wire: &Wire, asking: &Asking, outcome: &Outcome) -> anyhow::Result<()> {
    let again = wire.policy().authorize_tool_call(wire.request(asking.authorize())).await?.into_inner();
    let again = Outcome(again.decision(), again.reason);
    ensure!(again == *outcome, "{} was answered with {outcome:?}, then with {again:?}", asking.call_id);
    Ok(())
}

/// The history has this decision, and no other.
async fn recorded(wire: &Wire, asking: &Asking, outcome: &Outcome) -> anyhow::Result<()> {
    let request = v1::ListDecisionsRequest { session: asking.session.clone(), ..Default::default() };
    let page = wire.policy().list_decisions(wire.request(request)).await?.into_inner();
    let [record] = page.decisions.as_slice() else {
        anyhow::bail!("{} has {} decisions: {page:?}", asking.session, page.decisions.len());
    };
    let same =
        record.call_id == asking.call_id && Outcome(record.decision(), record.reason.clone()) == *outcome;
    ensure!(same, "{outcome:?} was answered, {record:?} was recorded");
    Ok(())
}

/// Returns the session's spend, micros, and checks that no reservation is left.
async fn spent(wire: &Wire, asking: &Asking, outcome: &Outcome) -> anyhow::Result<u64> {
    let request = v1::GetSessionRequest { name: asking.session.clone(), ..Default::default() };
    let got = wire.sessions().get_session(wire.request(request)).await?.into_inner();
    let budget = got.session.and_then(|session| session.budget).unwrap_or_default();
    let micros = |text: &str| Micros::exact(text).map(|micros| micros.0).unwrap_or(u64::MAX);
    ensure!(micros(&budget.reserved_usd) == 0, "{} are held after all reports", budget.reserved_usd);
    let permitted = outcome.0 == v1::ToolDecision::Allow;
    let cost = asking.limit.cost().filter(|_| permitted).as_deref().map_or(0, micros);
    ensure!(micros(&budget.used_usd) == cost, "{} were spent on {outcome:?}", budget.used_usd);
    Ok(cost)
}
