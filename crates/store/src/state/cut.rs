//! A cut: the rows of several groups as they were at one moment.

use super::{Record, moment::Moment};
use crate::{GroupId, StoreError};
use std::{io::Write, path::Path};

/// The rows of several groups, each at an entry of its log. Later writes do not show in it and are not delayed by it; the
/// disk keeps what they replace as long as it exists.
pub struct Cut<R: Record> {
    groups: Vec<(u64, Moment<R>)>,
}

/// What a cut has written of a group.
pub(crate) struct CutRows {
    /// The index of the entry after which the rows were taken.
    pub(crate) index: u64,
    pub(crate) rows: u64,
    /// The digest of the rows, as of [`super::State::digest`].
    pub(crate) digest: [u8; 32],
}

impl<R: Record> Cut<R> {
    /// The rows of each group, with the index of the entry after which they were taken. It is for the caller to take all
    /// of them at one moment.
    #[must_use]
    pub fn of(groups: Vec<(u64, Moment<R>)>) -> Self {
        Self { groups }
    }

    /// The groups, in the given order.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(|(_, rows)| rows.group())
    }

    /// Writes the rows of a group as a snapshot file that names no position of a log. `path` is for error messages.
    ///
    /// # Errors
    /// If the group is not in the cut, the rows cannot be read, or `to` cannot be written.
    pub(crate) fn write(
        &self,
        group: GroupId,
        path: &Path,
        to: &mut dyn Write,
    ) -> Result<CutRows, StoreError> {
        let none = || StoreError::damaged("cut", format!("it does not contain the group {}", group.0));
        let (index, moment) =
            self.groups.iter().find(|(_, moment)| moment.group() == group).ok_or_else(none)?;
        let (rows, digest) = moment.write(path, to)?;
        Ok(CutRows { index: *index, rows, digest })
    }
}
