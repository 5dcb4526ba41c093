//! The servers of a development cluster that this process has started, and what can be done with them.

mod clocks;
mod partitions;
mod processes;
mod status;

use anyhow::Context as _;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Context, Poll};
use switchward_messages::cli::dev as texts;

use super::control::{Answer, Request};
use super::links::Links;
use super::logs::{Source, say};
use super::opening::is_used;
use super::plan::{Plan, Slot};
use super::process::{KeyCheck, Process, ended_in_words};
use crate::args::ClockKind;

/// The number of the server that founds the cluster.
pub(super) const FOUNDER: u64 = 1;

/// What a server does.
enum State {
    /// It has not been started.
    Planned,
    /// Its process runs, or is paused.
    Up(Box<Process>),
    /// It has ended in this way.
    Ended(String),
}

/// The servers.
pub(super) struct Crew {
    plan: Plan,
    links: Links,
    states: BTreeMap<u64, State>,
    clock: ClockKind,
    /// The key by which clocks are read and moved.
    key: String,
}

impl Crew {
    /// Servers that have not been started.
    pub(super) fn new(plan: Plan, links: Links, clock: ClockKind, key: String) -> Self {
        let states = plan.servers.iter().map(|slot| (slot.number, State::Planned)).collect();
        Self { plan, links, states, clock, key }
    }

    /// Starts all servers. Those that have data start together, because none of them leads alone. Then the others join, one
    /// after the other.
    ///
    /// # Errors
    /// A server ends before it is ready, or takes too long.
    pub(super) async fn form(&mut self) -> anyhow::Result<()> {
        let numbers: Vec<u64> = self.plan.servers.iter().map(|slot| slot.number).collect();
        let (known, new): (Vec<u64>, Vec<u64>) =
            numbers.into_iter().partition(|number| is_used(&self.plan.data(*number)));
        for number in &known {
            self.begin(*number, when_forming(*number))?;
        }
        for number in known {
            self.ready(number).await?;
            say(Source::Dev, &texts::ready(number));
        }
        for number in new {
            self.begin(number, when_forming(number))?;
            self.ready(number).await?;
            say(Source::Dev, &texts::ready(number));
        }
        self.align().await.iter().for_each(|missed| say(Source::Dev, missed));
        self.plan.set_formed()
    }

    /// Carries out a request.
    pub(super) async fn act(&mut self, request: Request) -> Answer {
        let done = match request {
            Request::Status {} => Ok(self.status()),
            Request::Kill { server } => self.kill(server).await,
            Request::Start { server, at_once: false } => self.start(server).await,
            Request::Start { server, at_once: true } => self.start_at_once(server),
            Request::Pause { server } => self.pause(server),
            Request::Resume { server } => self.resume(server).await,
            Request::Partition { server } => self.partition(server),
            Request::Heal { server } => self.heal(server).await,
            Request::Link { from, to, mode } => self.set_link(from, to, mode),
            Request::Advance { by_ms } => self.advance(by_ms).await,
        };
        match &done {
            Ok(Answer::Done { done, missed }) => {
                std::iter::once(done).chain(missed).for_each(|line| say(Source::Dev, line));
            }
            Ok(Answer::Status { .. } | Answer::Refused { .. }) | Err(_) => {}
        }
        done.unwrap_or_else(|message| Answer::Refused { message })
    }

    /// Waits until a server ends by itself, and returns its number and how it has ended.
    pub(super) async fn next_end(&mut self) -> (u64, String) {
        poll_fn(|cx| self.poll_end(cx)).await
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<(u64, String)> {
        for (number, state) in &mut self.states {
            let State::Up(process) = state else { continue };
            if let Poll::Ready(status) = process.poll_end(cx) {
                let how = ended_in_words(status);
                *state = State::Ended(how.clone());
                return Poll::Ready((*number, how));
            }
        }
        Poll::Pending
    }

    /// Stops all servers, the last first. Each hands its groups over.
    pub(super) async fn stop(&mut self) {
        for (number, state) in self.states.iter_mut().rev() {
            if let State::Up(process) = state {
                process.stop().await;
                *state = State::Ended("stopped".to_owned());
                say(Source::Dev, &texts::server_stopped(*number));
            }
        }
    }

    /// The servers, by number, each with where its metrics are.
    pub(super) fn addresses(&self) -> Vec<(Slot, Option<String>)> {
        let metrics = |slot: &Slot| match self.states.get(&slot.number) {
            Some(State::Up(process)) => process.started().and_then(|started| started.metrics),
            Some(State::Planned | State::Ended(_)) | None => None,
        };
        self.plan.servers.iter().map(|slot| (*slot, metrics(slot))).collect()
    }

    fn begin(&mut self, number: u64, keys: KeyCheck) -> anyhow::Result<()> {
        let process = Process::start(number, &self.plan.file(number), keys)?;
        self.states.insert(number, State::Up(Box::new(process)));
        Ok(())
    }

    async fn ready(&self, number: u64) -> anyhow::Result<()> {
        let Some(State::Up(process)) = self.states.get(&number) else {
            anyhow::bail!("server {number} has not been started")
        };
        process.ready().await.with_context(|| format!("server {number} does not start"))
    }

    /// The process of a server, or a message that it has none.
    fn process(&mut self, number: u64) -> Result<&mut Process, String> {
        self.plan.server(number)?;
        let message = match self.states.get_mut(&number) {
            Some(State::Up(process)) => return Ok(process),
            Some(State::Ended(how)) => {
                format!("server {number} does not run ({how}); `switchward dev start {number}` starts it")
            }
            Some(State::Planned) | None => format!("server {number} has not been started yet"),
        };
        Err(message)
    }
}

/// When all servers start, the first one makes sure that the keys exist.
fn when_forming(number: u64) -> KeyCheck {
    if number == FOUNDER { KeyCheck::Ensure } else { KeyCheck::Skip }
}

/// An answer that everything was done.
fn done(done: String) -> Answer {
    Answer::Done { done, missed: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster of three that was never started.
    async fn crew(folder: &std::path::Path) -> Crew {
        let plan = Plan::make(folder.to_owned(), 3, 0).unwrap_or_else(|exit| panic!("{}", exit.message()));
        let links = Links::open(&plan.peers()).await.unwrap();
        Crew::new(plan, links, ClockKind::System, "swk_x".to_owned())
    }

    async fn refused(crew: &mut Crew, request: Request) -> String {
        match crew.act(request).await {
            Answer::Refused { message } => message,
            other @ (Answer::Done { .. } | Answer::Status { .. }) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = crew(folder.path()).await;
        assert_eq!(
            refused(&mut crew, Request::Kill { server: 4 }).await,
            "there is no server 4; there are 3"
        );
        let never = refused(&mut crew, Request::Pause { server: 1 }).await;
        assert_eq!(never, "server 1 has not been started yet");
        crew.states.insert(1, State::Ended("killed".to_owned()));
        let ended = refused(&mut crew, Request::Resume { server: 1 }).await;
        assert_eq!(ended, "server 1 does not run (killed); `switchward dev start 1` starts it");
        let clock = refused(&mut crew, Request::Advance { by_ms: 1 }).await;
        assert!(clock.contains("--clock manual"), "{clock}");
        let link = Request::Link { from: 1, to: 1, mode: super::super::link::Mode::Cut };
        assert_eq!(refused(&mut crew, link).await, "there is no link from server 1 to server 1");
        crew.clock = ClockKind::Manual;
        let clock = refused(&mut crew, Request::Advance { by_ms: 1 }).await;
        assert_eq!(clock, "no server runs whose clock could be advanced");
    }

    #[tokio::test]
    async fn the_status_shows_each_server_with_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = crew(folder.path()).await;
        crew.states.insert(3, State::Ended("killed by signal 9".to_owned()));
        crew.act(Request::Partition { server: 2 }).await;
        let Answer::Status { servers } = crew.act(Request::Status {}).await else { panic!("no status") };
        let shown: Vec<_> = servers.iter().map(|one| (one.process.as_str(), one.links.as_str())).collect();
        let expected =
            [("not started", "2 cut"), ("not started", "1 cut, 3 cut"), ("killed by signal 9", "2 cut")];
        assert_eq!(shown, expected);
        crew.act(Request::Heal { server: None }).await;
        let Answer::Status { servers } = crew.act(Request::Status {}).await else { panic!("no status") };
        assert!(
            servers.iter().all(|one| one.links == "open" && one.address.starts_with("http://127.0.0.1:"))
        );
    }
}
