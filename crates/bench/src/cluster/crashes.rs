//! All servers are killed at once under load, again and again: nothing that was acknowledged is lost, and they serve again.

use anyhow::ensure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::Plan;
use super::servers::{COUNT, Servers};
use super::table::{Bound, Table, median, worst};
use super::writers::{Product, Target as _, Writers, insist};
use crate::load::{NOTE, STATES};

/// Callers of the load, and of the look at what is there afterwards.
const CALLERS: usize = 64;
/// How often all servers are killed if nothing is said.
const ROUNDS: usize = 20;
/// How long the callers work before each kill.
const LOAD: Duration = Duration::from_secs(3);
/// The most seconds from the kill until all callers write again.
const SERVING_MAX: f64 = 10.0;

/// What of a session was acknowledged: its start, and this many answers.
#[derive(Clone)]
struct AcknowledgedSession {
    name: String,
    answers: usize,
}

/// Measures, and adds the figures.
///
/// # Errors
/// A server does not start again, or a call is refused.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let rounds = plan.rounds.unwrap_or(ROUNDS);
    let scratch = plan.scratch()?;
    let mut servers = Servers::start(plan.binary, scratch.path(), plan.shards).await?;
    let product = Product::at(&servers.addresses())?;
    let (mut book, mut serving, mut lost) = (Vec::new(), Vec::new(), 0);
    for round in 1..=rounds {
        let load = Load::start(&product, round);
        sleep(LOAD).await;
        load.dies.store(true, Ordering::Relaxed);
        let killed = Instant::now();
        for number in 1..=COUNT {
            servers.kill(number).await?;
        }
        let kept = load.kept().await?;
        let took = restart(&mut servers, &product, killed).await?;
        let gone = missing(&product, &kept).await?;
        eprintln!(
            "killed all servers {round} of {rounds} times: serving again after {took:.2} s; {} sessions, {gone} lost",
            kept.len()
        );
        serving.push(took);
        lost += gone;
        book.extend(kept);
    }
    // What was there after its own kill must be there after all of them.
    lost += missing(&product, &book).await?;
    table.add(
        format!("all killed {rounds} times: acknowledged sessions"),
        book.len() as f64,
        "",
        Bound::Shown,
    );
    table.add("all killed: sessions that lack something", lost as f64, "", Bound::AtMost(0.0));
    table.add("all killed: until all callers write again, median", median(&serving), "s", Bound::Shown);
    table.add(
        "all killed: until all callers write again, worst",
        worst(&serving),
        "s",
        Bound::AtMost(SERVING_MAX),
    );
    Ok(())
}

/// Starts all servers at once. Returns the seconds from the kill until callers of each server write again.
async fn restart(servers: &mut Servers, product: &Product, killed: Instant) -> anyhow::Result<f64> {
    for number in 1..=COUNT {
        servers.begin(number)?;
    }
    let mut writers = Writers::start(product, CALLERS);
    let serving = writers.all_after(killed).await?;
    writers.stop().await?;
    for number in 1..=COUNT {
        servers.ready(number).await?;
    }
    servers.caught_up().await?;
    Ok(serving.as_secs_f64())
}

/// Callers that carry out one session after another until the servers die.
struct Load {
    dies: Arc<AtomicBool>,
    callers: JoinSet<anyhow::Result<Vec<AcknowledgedSession>>>,
}

impl Load {
    fn start(product: &Product, round: usize) -> Self {
        let (dies, mut callers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for caller in 0..CALLERS {
            let (product, dies) = (product.clone(), Arc::clone(&dies));
            callers.spawn(async move {
                let mut book = Vec::new();
                for number in 0_u64.. {
                    let id = format!("crash-{round}-{caller}-{number}");
                    let Err(status) = session(&product, caller, &id, &mut book).await else { continue };
                    // Calls fail when the servers are killed, and not before.
                    ensure!(dies.load(Ordering::Relaxed), "a call failed before the kill: {status}");
                    break;
                }
                Ok(book)
            });
        }
        Self { dies, callers }
    }

    /// Waits for all callers. Fails if one of them did.
    async fn kept(mut self) -> anyhow::Result<Vec<AcknowledgedSession>> {
        let mut all = Vec::new();
        while let Some(book) = self.callers.join_next().await {
            all.extend(book??);
        }
        Ok(all)
    }
}

/// Carries out one session, and notes what is acknowledged.
async fn session(
    product: &Product,
    caller: usize,
    id: &str,
    book: &mut Vec<AcknowledgedSession>,
) -> Result<(), Status> {
    let server = caller % product.servers();
    let name = product.start(server, id).await?;
    let at = book.len();
    book.push(AcknowledgedSession { name: name.clone(), answers: 0 });
    for (number, state) in STATES.into_iter().enumerate() {
        let answer = v1::AnswerCheckpointRequest {
            name: name.clone(),
            state: state.into(),
            answer: "yes".into(),
            note: NOTE.into(),
            request_id: format!("{id}-{number}"),
            ..v1::AnswerCheckpointRequest::default()
        };
        product.clients[server].clone().answer_checkpoint(product.request(answer)).await?;
        book[at].answers += 1;
    }
    Ok(())
}

/// How many sessions lack something that was acknowledged.
async fn missing(product: &Product, book: &[AcknowledgedSession]) -> anyhow::Result<u64> {
    let mut readers = JoinSet::new();
    for (reader, part) in book.chunks(book.len().div_ceil(CALLERS).max(1)).enumerate() {
        let (product, part) = (product.clone(), part.to_vec());
        readers.spawn(async move {
            let mut missing = 0;
            for kept in part {
                let call = |server| read(&product, server, &kept.name);
                let (answers, _) = insist(product.servers(), reader, product.answer_max(), call).await?;
                missing += u64::from(answers.is_none_or(|answers| answers < kept.answers));
            }
            anyhow::Ok(missing)
        });
    }
    let mut missing = 0;
    while let Some(read) = readers.join_next().await {
        missing += read??;
    }
    Ok(missing)
}

/// How many answers a session has; `None` if it does not exist.
async fn read(product: &Product, server: usize, name: &str) -> Result<Option<usize>, Status> {
    let request = v1::GetSessionRequest { name: name.to_owned(), ..v1::GetSessionRequest::default() };
    let found = product.clients[server].clone().get_session(product.request(request)).await;
    match found {
        Ok(found) => Ok(found.into_inner().session.and_then(|session| answers(&session))),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

/// How many answers a session has by where it stands; `None` if it stands at no state of the definition.
fn answers(session: &v1::Session) -> Option<usize> {
    if session.end_time.is_some() {
        return Some(STATES.len());
    }
    let [at] = &session.at[..] else { return None };
    STATES.iter().position(|state| state == at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_a_session_are_those_before_its_state() {
        let at = |state: &str| v1::Session { at: vec![state.to_owned()], ..v1::Session::default() };
        assert_eq!(STATES.map(|state| answers(&at(state))), [Some(0), Some(1), Some(2)]);
        assert_eq!((answers(&at("elsewhere")), answers(&v1::Session::default())), (None, None));
        let ended = v1::Session { end_time: Some(prost_types::Timestamp::default()), ..at("x") };
        assert_eq!(answers(&ended), Some(3));
    }
}
