//! Bugs that the simulation must find. They are planted one at a time, on the thread of a simulation. Only builds with the
//! feature `planted` contain them, which no build of the product has.

use std::cell::Cell;
use std::io;
use std::ops::{Bound, ControlFlow};
use switchward_state::delivery::EffectBody;
use switchward_state::{Decision, IndexKey, Key, Row, View};
use switchward_store::{State, planted as of_store};

use crate::record::Stored;

/// A bug that a simulation plants, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Entries are acknowledged before they are on disk.
    AckBeforeSync,
    /// A vote is given before it is on disk.
    VoteNotSynced,
    /// A server that was once alone takes itself for alone for ever.
    AloneForEver,
    /// A leader reads, and refuses, without asking a majority.
    ReadWithoutQuorum,
    /// A leader decides before the entries of earlier terms are applied.
    DecideBeforeBarrier,
    /// A leader forgets the entry whose callers it has given up.
    UnsettledForgotten,
    /// A server that has lost its disk is accepted under its old number.
    WipedServerVotes,
    /// A server is accepted whose disk is an earlier copy.
    LowerBootAccepted,
    /// A snapshot has no rows by which requests are recognised that come again.
    SnapshotWithoutRequests,
    /// What a call has cost is lost if it arrives at the ledger before the call is confirmed.
    SettleBeforeConfirmLost,
    /// A command whose outcome is unknown is sent to the leader again.
    ForwardedTwice,
    /// A server drops a field of an entry that it does not know.
    FieldDropped,
}

impl Bug {
    /// All bugs.
    pub const ALL: [Self; 12] = [
        Self::AckBeforeSync,
        Self::VoteNotSynced,
        Self::AloneForEver,
        Self::ReadWithoutQuorum,
        Self::DecideBeforeBarrier,
        Self::UnsettledForgotten,
        Self::WipedServerVotes,
        Self::LowerBootAccepted,
        Self::SnapshotWithoutRequests,
        Self::SettleBeforeConfirmLost,
        Self::ForwardedTwice,
        Self::FieldDropped,
    ];

    /// The name under which it is planted.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AckBeforeSync => "ack-before-sync",
            Self::VoteNotSynced => "vote-not-synced",
            Self::AloneForEver => "alone-for-ever",
            Self::ReadWithoutQuorum => "read-without-quorum",
            Self::DecideBeforeBarrier => "decide-before-barrier",
            Self::UnsettledForgotten => "unsettled-forgotten",
            Self::WipedServerVotes => "wiped-server-votes",
            Self::LowerBootAccepted => "lower-boot-accepted",
            Self::SnapshotWithoutRequests => "snapshot-without-requests",
            Self::SettleBeforeConfirmLost => "settle-before-confirm-lost",
            Self::ForwardedTwice => "forwarded-twice",
            Self::FieldDropped => "field-dropped",
        }
    }

    /// The bug of the files that it stands for, if it is one.
    fn of_store(self) -> Option<of_store::Bug> {
        match self {
            Self::WipedServerVotes => Some(of_store::Bug::OtherFolderAccepted),
            Self::LowerBootAccepted => Some(of_store::Bug::OlderFolderAccepted),
            Self::AckBeforeSync
            | Self::VoteNotSynced
            | Self::AloneForEver
            | Self::ReadWithoutQuorum
            | Self::DecideBeforeBarrier
            | Self::UnsettledForgotten
            | Self::SnapshotWithoutRequests
            | Self::SettleBeforeConfirmLost
            | Self::ForwardedTwice
            | Self::FieldDropped => None,
        }
    }
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, instead of the one before.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
    of_store::plant(bug.and_then(Bug::of_store));
}

/// Returns true if this bug is planted on this thread.
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Returns true if the outbox in these rows still confirms the call whose cost this effect settles.
pub(crate) fn confirms_later(rows: &impl View, body: &EffectBody) -> bool {
    let EffectBody::Settle { call: Some(call), .. } = body else { return false };
    let mut waiting = Vec::new();
    let read = rows.scan(&IndexKey::relay(), None, &mut |entry, _| {
        waiting.extend(IndexKey::due_of(entry).map(|due| due.key));
        ControlFlow::Continue(())
    });
    let confirms = |key: &Key| {
        let row = rows.row(key).ok().flatten();
        let Some(Row::Outbox(effect)) = row.as_deref() else { return false };
        matches!(&effect.body, EffectBody::Confirm { call: confirmed, .. } if confirmed == call)
    };
    read.is_ok() && waiting.iter().any(confirms)
}

/// An entry as a server writes it down that does not know who has sent a command under which request id.
pub(crate) fn with_a_field_dropped(entry: &[u8]) -> Option<Vec<u8>> {
    let mut decision = Decision::decode(entry).ok()?;
    decision.turns.iter_mut().for_each(|turn| turn.request = None);
    Some(decision.encode())
}

/// Removes the rows by which requests are recognised that come again.
///
/// # Errors
/// The rows cannot be read.
pub(crate) fn forget_requests(rows: &State<Stored>) -> io::Result<()> {
    let mut forgotten = Vec::new();
    let read = rows.scan(Bound::Unbounded, Bound::Unbounded, usize::MAX, |key, row| {
        if let Row::Request(_) = &*row.0 {
            forgotten.push((key.into(), None));
        }
        ControlFlow::Continue(())
    });
    read.map_err(io::Error::other)?;
    rows.apply(forgotten, rows.applied().unwrap_or_default());
    Ok(())
}
