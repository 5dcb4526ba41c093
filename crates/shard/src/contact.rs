//! How long ago this server last knew a shard's rows to be the newest ones: a server that is cut off from the others does
//! not learn of a change, and must not say that there is none.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a server knows of its contact with the leader of one group.
#[derive(Default)]
pub(crate) struct Contact {
    /// When the last question began that the leader has answered: the rows hold everything that was acknowledged before.
    confirmed: Mutex<Option<Instant>>,
    /// True while the leader has not answered for too long, as far as somebody wants to know.
    lost: watch::Sender<bool>,
}

/// Notifies when this server loses contact with the leader of a shard.
pub struct ContactWatch(watch::Receiver<bool>);

impl ContactWatch {
    /// Waits until no leader has confirmed for [`CONTACT_LOST`](crate::limits::CONTACT_LOST) that this server has
    /// everything; returns at once if that is so already. Cancel safe.
    pub async fn lost(&mut self) {
        if self.0.wait_for(|lost| *lost).await.is_err() {
            // The shard is gone, and the server with it.
            std::future::pending().await
        }
    }

    /// Returns true if contact is lost at present.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        *self.0.borrow()
    }
}

impl Contact {
    /// When the last question began that was answered, or `since` if that is later.
    pub(crate) fn last(&self, since: Instant) -> Instant {
        self.confirmed.lock().map_or(since, |at| at.max(since))
    }

    /// Notifies of the next loss.
    pub(crate) fn watch(&self) -> ContactWatch {
        ContactWatch(self.lost.subscribe())
    }

    /// Returns true if a question that began within this time has been answered.
    pub(crate) fn within(&self, age: Duration) -> bool {
        self.confirmed.lock().is_some_and(|at| at.elapsed() <= age)
    }

    /// Returns true if somebody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.lost.receiver_count() > 0
    }

    /// Notes that a question that began at this time was answered.
    pub(crate) fn confirm(&self, asked: Instant) {
        let mut confirmed = self.confirmed.lock();
        *confirmed = (*confirmed).max(Some(asked));
    }

    /// Publishes that contact is lost.
    pub(crate) fn lose(&self) {
        self.set_lost(true);
    }

    /// Publishes that it is not lost.
    pub(crate) fn regain(&self) {
        self.set_lost(false);
    }

    fn set_lost(&self, lost: bool) {
        self.lost.send_if_modified(|before| std::mem::replace(before, lost) != lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn contact_counts_from_the_question_and_no_late_answer_takes_it_back() {
        let contact = Contact::default();
        assert!(!contact.within(Duration::from_secs(9)), "nothing was ever confirmed");
        let first = Instant::now();
        tokio::time::advance(Duration::from_secs(3)).await;
        let second = Instant::now();
        contact.confirm(second);
        contact.confirm(first);
        assert!(contact.within(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!contact.within(Duration::from_secs(1)) && contact.within(Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_watches_a_lost_contact_learns_it_at_once() {
        let contact = Contact::default();
        let mut early = contact.watch();
        assert!(!early.is_lost() && contact.is_watched());
        contact.set_lost(true);
        early.lost().await;
        contact.watch().lost().await;
        contact.set_lost(false);
        assert!(!contact.watch().is_lost());
    }
}
