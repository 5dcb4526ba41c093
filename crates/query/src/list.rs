//! Lists: those that every shard keeps as an index, and those of the catalogue.

use minicbor::{CborLen, Decode, Encode};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_shard::StateView;
use switchward_state::{Key, RowKind, SharedRow, View, ViewError};

use crate::ask::{Reader, Sent};
use crate::limits::LOOKED_AT_MAX;

/// A list that every shard keeps as an index.
pub trait List {
    /// What an entry is about.
    type Item: Sent;

    /// The common beginning of its entries.
    fn prefix(&self) -> Vec<u8>;

    /// Reads what an entry is about; `None` if the list does not show it.
    ///
    /// # Errors
    /// A row cannot be read.
    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<Self::Item>, ViewError>;
}

/// How a term of a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Compared {
    /// `=`
    #[n(0)]
    Equal,
    /// `<`
    #[n(1)]
    Less,
    /// `<=`
    #[n(2)]
    LessOrEqual,
    /// `>`
    #[n(3)]
    Greater,
    /// `>=`
    #[n(4)]
    GreaterOrEqual,
}

impl Compared {
    /// Returns true if a value that compares like this to the term's value passes.
    #[must_use]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// The scan of one shard's part of a list.
pub struct Scan<L> {
    list: Arc<L>,
    rows: Reader,
    prefix: Vec<u8>,
    /// The last entry that was read of the index.
    after: Option<Vec<u8>>,
    /// Entries that were read and not yet picked.
    entries: VecDeque<Key>,
}

/// An entry of a list.
pub struct Entry<T> {
    /// Its position in the list: its bytes after the list's prefix.
    pub position: Vec<u8>,
    /// What it is about; `None` if the list does not show it.
    pub item: Option<T>,
}

impl<L: List> Scan<L> {
    /// Begins after a position, or at the beginning of the list.
    pub fn new(list: Arc<L>, rows: Reader, after: Option<&[u8]>) -> Self {
        let prefix = list.prefix();
        let after = after.map(|after| [prefix.as_slice(), after].concat());
        Self { list, rows, prefix, after, entries: VecDeque::new() }
    }

    /// Returns true if every entry that was read has been picked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of the last entry that was read.
    pub fn position(&self) -> Option<Vec<u8>> {
        self.after.as_ref().map(|after| after[self.prefix.len()..].to_vec())
    }

    /// Reads up to `max` entries of the index, and returns how many wait to be picked. They are picked afterwards, because
    /// picking reads rows.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn read_on(&mut self, max: usize) -> Result<usize, ViewError> {
        let Self { rows, prefix, after, entries, .. } = self;
        rows.rows().scan(prefix, after.as_deref(), &mut |key, _| {
            entries.push_back(key.clone());
            if entries.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(last) = entries.back() {
            *after = Some(last.as_bytes().to_vec());
        }
        Ok(entries.len())
    }

    /// Picks the next entry; `None` if all that were read are picked.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn pick_next(&mut self) -> Result<Option<Entry<L::Item>>, ViewError> {
        let Some(entry) = self.entries.pop_front() else { return Ok(None) };
        let item = self.list.pick(self.rows.rows(), &entry)?;
        let position = entry.as_bytes()[self.prefix.len()..].to_vec();
        Ok(Some(Entry { position, item }))
    }
}

/// The part of a list of the catalogue that a page shows.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Bounds {
    /// The position after which it begins; `None` is the beginning of the list.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub after: Option<Vec<u8>>,
    /// How many rows it holds at most.
    #[n(1)]
    pub size: u32,
}

/// Rows of a list of the catalogue.
#[derive(Debug, Clone, Encode, Decode, CborLen)]
pub struct Rows<T: RowKind + 'static> {
    /// In the list's order.
    #[n(0)]
    pub rows: Vec<SharedRow<T>>,
    /// The position after which the list goes on; `None` at its end.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub next: Option<Vec<u8>>,
}

impl Bounds {
    /// Reads the rows with this prefix.
    pub(crate) fn rows<T: RowKind>(&self, view: &StateView, prefix: &[u8]) -> Result<Rows<T>, ViewError> {
        self.rows_that(view, prefix, |_| true)
    }

    /// Reads those of the rows with this prefix that `shows` returns true for.
    pub(crate) fn rows_that<T: RowKind>(
        &self,
        view: &StateView,
        prefix: &[u8],
        shows: impl Fn(&T) -> bool,
    ) -> Result<Rows<T>, ViewError> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let after = self.after.as_ref().map(|after| [prefix, after].concat());
        let (mut rows, mut looked, mut last, mut more) = (Vec::new(), 0, Vec::new(), false);
        view.scan(prefix, after.as_deref(), &mut |key, row| {
            if rows.len() == size || looked == LOOKED_AT_MAX {
                more = true;
                return ControlFlow::Break(());
            }
            looked += 1;
            rows.extend(SharedRow::of(Arc::clone(row)).filter(|row: &SharedRow<T>| shows(row)));
            last = key.as_bytes()[prefix.len()..].to_vec();
            ControlFlow::Continue(())
        })?;
        Ok(Rows { rows, next: more.then_some(last) })
    }
}
