//! What a replica has taken at the marks in its log.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use switchward_store::{Moment, State};
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::failure::line;
use crate::limits::DIGESTS_KEPT;
use crate::mark::{ID_BYTES, Mark, Takes};
use crate::record::Stored;

/// The digest of the rows at a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Digested {
    /// It is being computed.
    UnderWay,
    Done([u8; 32]),
    /// The rows could not be read; the text says why.
    Failed(String),
}

/// The rows at a mark, with the index of its entry.
pub(crate) struct MarkedRows {
    pub(crate) index: u64,
    pub(crate) rows: Moment<Stored>,
}

/// A mark whose rows somebody waits for.
struct Wanted {
    id: [u8; ID_BYTES],
    taken: Option<MarkedRows>,
}

/// What one replica has taken.
#[derive(Default)]
pub(crate) struct Marks {
    /// The newest digests, by the indexes of their marks.
    digests: Mutex<VecDeque<(u64, Digested)>>,
    wanted: Mutex<Option<Wanted>>,
    /// Raised by each change.
    changes: watch::Sender<u64>,
}

impl Marks {
    /// Takes what a mark asks for. The state's writer calls it when the mark is applied, before it applies anything else; what
    /// takes long goes on beside it.
    pub(crate) fn reach(self: &Arc<Self>, state: &State<Stored>, mark: &Mark, index: u64) {
        match mark.takes {
            Takes::Digest => {
                let rows = state.moment();
                self.put(index, Digested::UnderWay);
                let marks = Arc::clone(self);
                tokio::spawn(async move {
                    let digest = blocking(move || rows.digest()).await;
                    let digest = match digest {
                        Ok(Ok(digest)) => Digested::Done(digest),
                        Ok(Err(error)) => Digested::Failed(line(&error)),
                        Err(error) => Digested::Failed(error.to_string()),
                    };
                    marks.put(index, digest);
                });
            }
            Takes::Rows => {
                let mut wanted = self.wanted.lock();
                if let Some(wanted) = wanted.as_mut().filter(|wanted| wanted.id == mark.id) {
                    wanted.taken = Some(MarkedRows { index, rows: state.moment() });
                }
                drop(wanted);
                self.changed();
            }
        }
    }

    /// The digest at a mark; `None` if this replica has not taken it, or no longer has it.
    pub(crate) fn digest(&self, index: u64) -> Option<Digested> {
        self.digests.lock().iter().find(|(at, _)| *at == index).map(|(_, digest)| digest.clone())
    }

    /// Has this replica take its rows at a mark.
    pub(crate) fn want(&self, id: [u8; ID_BYTES]) {
        *self.wanted.lock() = Some(Wanted { id, taken: None });
    }

    /// The rows at a mark, once they are taken; at most once.
    pub(crate) fn take_wanted(&self, id: [u8; ID_BYTES]) -> Option<MarkedRows> {
        self.wanted.lock().as_mut().filter(|wanted| wanted.id == id)?.taken.take()
    }

    /// Has this replica take no rows at a mark any more.
    pub(crate) fn want_none(&self, id: [u8; ID_BYTES]) {
        self.wanted.lock().take_if(|wanted| wanted.id == id);
    }

    /// Notifies when something was taken.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn put(&self, index: u64, digest: Digested) {
        let mut digests = self.digests.lock();
        digests.retain(|(at, _)| *at != index);
        digests.push_back((index, digest));
        if digests.len() > DIGESTS_KEPT {
            digests.pop_front();
        }
        drop(digests);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_digests_are_kept() {
        let marks = Marks::default();
        let kept = u64::try_from(DIGESTS_KEPT).unwrap();
        for index in 0..=kept {
            marks.put(index, Digested::UnderWay);
            marks.put(index, Digested::Done([1; 32]));
        }
        assert_eq!(marks.digest(0), None);
        assert_eq!(marks.digest(1), Some(Digested::Done([1; 32])));
        assert_eq!(marks.digest(kept), Some(Digested::Done([1; 32])));
        assert_eq!(marks.digest(kept + 1), None);
    }
}
