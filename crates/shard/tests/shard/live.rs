//! Callers of a server that dies and restarts under them.

use futures::future::join_all;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use switchward_shard::{Cluster, Failure};
use switchward_state::{Command, Rejection, Reply};
use switchward_testkit::PATIENCE;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};

use crate::server::{Server, Setup};

/// The result of a command, once it is known.
pub(crate) type Answered = Result<Reply, Rejection>;

/// A server, and callers on a runtime of their own who outlive it.
pub(crate) struct Live {
    setup: Setup,
    server: Option<Server>,
    current: watch::Sender<Option<Cluster>>,
    callers: Runtime,
}

impl Live {
    pub(crate) fn open(setup: &Setup) -> Self {
        let server = Server::open(setup);
        let current = watch::channel(Some(server.cluster().clone())).0;
        let callers = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { setup: setup.clone(), server: Some(server), current, callers }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Executes one command.
    pub(crate) fn execute(&self, command: Command) -> Answered {
        self.callers.block_on(insist(self.current.subscribe(), command))
    }

    /// Executes all commands with this many concurrent callers, who retry what gets no answer; the server is killed
    /// once this many answers have arrived. Answers are in the order of the commands.
    pub(crate) fn execute_all(
        &mut self,
        commands: Vec<Command>,
        callers: usize,
        kills: &[usize],
    ) -> Vec<Answered> {
        let (commands, next) = (Arc::new(commands), Arc::new(AtomicUsize::new(0)));
        let (count, mut counted) = watch::channel(0);
        let count = Arc::new(count);
        let caller = |_| {
            let (commands, next, count) = (commands.clone(), next.clone(), count.clone());
            let current = self.current.subscribe();
            self.callers.spawn(async move {
                let mut answers = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(command) = commands.get(at) else { return answers };
                    answers.push((at, insist(current.clone(), command.clone()).await));
                    count.send_modify(|count| *count += 1);
                }
            })
        };
        let working: Vec<_> = (0..callers).map(caller).collect();
        for kill in kills {
            self.callers.block_on(counted.wait_for(|count| count >= kill)).unwrap();
            self.kill();
        }
        let mut answers: Vec<_> =
            self.callers.block_on(join_all(working)).into_iter().flat_map(Result::unwrap).collect();
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Kills the server whatever it does, and opens it again.
    pub(crate) fn kill(&mut self) {
        let server = self.server.take().unwrap();
        server.assert_sound();
        server.crash();
        self.current.send_replace(None);
        let server = Server::open(&self.setup);
        self.current.send_replace(Some(server.cluster().clone()));
        self.server = Some(server);
    }

    /// Ends server and callers.
    pub(crate) fn end(mut self) {
        self.current.send_replace(None);
        self.server.take().unwrap().shut_down();
    }
}

/// Sends a command until it is answered. A caller notices a dead server by its connection.
async fn insist(current: watch::Receiver<Option<Cluster>>, command: Command) -> Answered {
    let answered = tokio::time::timeout(PATIENCE, retried(current, &command)).await;
    answered.unwrap_or_else(|_| panic!("no server has answered {command:?} within {PATIENCE:?}"))
}

async fn retried(mut current: watch::Receiver<Option<Cluster>>, command: &Command) -> Answered {
    loop {
        let cluster = current.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        let outcome = tokio::select! {
            outcome = cluster.execute(command.clone()) => outcome,
            _ = current.wait_for(Option::is_none) => Err(Failure::Stopped),
        };
        match outcome {
            Ok(reply) => return Ok(reply),
            Err(Failure::Rejected(rejection)) => return Err(rejection),
            Err(
                Failure::Electing
                | Failure::OutcomeUnknown
                | Failure::Internal
                | Failure::Unconfirmed
                | Failure::OtherMap { .. }
                | Failure::Overloaded
                | Failure::DiskLow { .. }
                | Failure::Draining
                | Failure::Stopped,
            ) => {
                drop(cluster);
                tokio::task::yield_now().await;
            }
        }
    }
}
