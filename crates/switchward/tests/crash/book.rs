//! The callers' own record of their answers, and the callers that play sessions and write it.

use anyhow::{Context as _, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use switchward_api::v1;

use crate::crew::{Counter, Crew};
use crate::front::{Answered, Front};
use crate::plan::{Notes, Plan, STATES};
use crate::tenants::Tenant;

/// What was acknowledged of one session.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Its resource name.
    pub(crate) name: String,
    /// Its sequence after each acknowledged step: the start, then the answers.
    pub(crate) acknowledged: Vec<u64>,
    /// Whether one of its requests was sent more than once.
    pub(crate) retried: bool,
}

/// All that was acknowledged. A step is written down as soon as its answer is there.
pub(crate) struct Book {
    seed: u64,
    notes: Notes,
    next: AtomicU64,
    closed: AtomicBool,
    pages: Mutex<BTreeMap<u64, Page>>,
    /// Sessions that were found complete after a cut.
    pub(crate) settled: Mutex<BTreeSet<u64>>,
    /// Acknowledged steps.
    pub(crate) steps: Counter,
    /// Requests that were sent more than once.
    pub(crate) retried: AtomicU64,
}

impl Book {
    pub(crate) fn new(seed: u64, notes: Notes) -> Arc<Self> {
        Arc::new(Self {
            seed,
            notes,
            next: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            pages: Mutex::default(),
            settled: Mutex::default(),
            steps: Counter::new(),
            retried: AtomicU64::new(0),
        })
    }

    pub(crate) fn plan(&self, number: u64) -> Plan {
        Plan { seed: self.seed, number, notes: self.notes }
    }

    /// What is written by now.
    pub(crate) fn pages(&self) -> BTreeMap<u64, Page> {
        self.pages.lock().unwrap().clone()
    }

    /// Callers that play sessions until the book is closed, and finish those that they have begun.
    pub(crate) fn callers(self: &Arc<Self>, front: &Arc<Front>, count: usize) -> Crew {
        Crew::begin(count, &self.steps, |caller| {
            let (book, front) = (Arc::clone(self), Arc::clone(front));
            async move {
                while !book.closed.load(Ordering::Relaxed) {
                    let number = book.next.fetch_add(1, Ordering::Relaxed);
                    let played = book.play(&front, caller, number).await;
                    played.with_context(|| format!("session {number}"))?;
                }
                Ok(())
            }
        })
    }

    /// No session is begun any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    async fn play(&self, front: &Front, caller: usize, number: u64) -> anyhow::Result<()> {
        let (plan, tenant) = (self.plan(number), Tenant::of(number));
        let answered = front.answered(tenant, caller, |wire| async move {
            wire.sessions().start_session(wire.request(plan.start())).await
        });
        let Answered { reply, tries } = answered.await.context("its start")?;
        let session = reply.session.context("a start was answered without a session")?;
        let name = session.name.clone();
        self.write(number, tries, &session)?;
        for (at, state) in STATES.iter().enumerate() {
            let answered = front.answered(tenant, caller, |wire| {
                let message = plan.answer(&name, at);
                async move { wire.sessions().answer_checkpoint(wire.request(message)).await }
            });
            let Answered { reply, tries } =
                answered.await.with_context(|| format!("its answer to {state}"))?;
            let session = reply.session.context("an answer was answered without a session")?;
            self.write(number, tries, &session)?;
        }
        Ok(())
    }

    fn write(&self, number: u64, tries: u32, session: &v1::Session) -> anyhow::Result<()> {
        let retried = tries > 1;
        {
            let mut pages = self.pages.lock().unwrap();
            let new = || Page { name: session.name.clone(), acknowledged: Vec::new(), retried: false };
            let page = pages.entry(number).or_insert_with(new);
            ensure!(page.name == session.name, "{} was answered with {}", page.name, session.name);
            page.acknowledged.push(session.sequence);
            page.retried |= retried;
        }
        self.retried.fetch_add(retried.into(), Ordering::Relaxed);
        self.steps.add();
        Ok(())
    }
}
