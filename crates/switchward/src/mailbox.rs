//! The mailbox of a development server: mails that would go out are kept here, and pages show them, with a box to answer
//! them as whoever got them.

mod pages;

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use switchward_delivery::Failed;
use switchward_delivery::mail::{Composed, Post};
use switchward_machine::Time;
use switchward_shard::Clock;

pub(crate) use pages::{guarded, pages, room, whole};

/// Mails that are kept; beyond it the oldest goes.
const KEPT_MAX: usize = 500;
/// The host of a development server's addresses; nothing outside is called so.
pub(crate) const HOST: &str = "switchward.localhost";

/// A mail that was sent.
#[derive(Clone)]
struct Kept {
    number: u64,
    at: Time,
    mail: Arc<Composed>,
    /// What was answered on its page, and what became of that.
    replies: Vec<(String, String)>,
}

#[derive(Default)]
struct State {
    last: u64,
    kept: VecDeque<Kept>,
}

/// The mails of a development server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mailbox {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
}

impl Mailbox {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { state: Arc::default(), clock }
    }

    /// The newest first.
    fn all(&self) -> Vec<Kept> {
        self.state.lock().kept.iter().rev().cloned().collect()
    }

    fn get(&self, number: u64) -> Option<Kept> {
        self.state.lock().kept.iter().find(|kept| kept.number == number).cloned()
    }

    fn answered(&self, number: u64, text: String, outcome: String) {
        let mut state = self.state.lock();
        if let Some(kept) = state.kept.iter_mut().find(|kept| kept.number == number) {
            kept.replies.push((text, outcome));
        }
    }
}

#[async_trait]
impl Post for Mailbox {
    async fn send(&self, _tenant: u32, mail: &Composed) -> Result<(), Failed> {
        let mut state = self.state.lock();
        // The same mail again, after an answer that was lost.
        if state.kept.iter().any(|kept| kept.mail.message_id == mail.message_id) {
            return Ok(());
        }
        state.last += 1;
        let (number, at) = (state.last, self.clock.now());
        state.kept.push_back(Kept { number, at, mail: Arc::new(mail.clone()), replies: Vec::new() });
        if state.kept.len() > KEPT_MAX {
            state.kept.pop_front();
        }
        Ok(())
    }
}
