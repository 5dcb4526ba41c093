//! The rows that an entry changes, as every replica computes them.
//!
//! An entry that no replica can apply would stop a shard on all servers at once, so it must not get into the log. The leader
//! applies it before it proposes it:
//!
//! 1. `decide` writes rows only by `apply` for each event, `finish` for each turn and `stamp` for the decision. It uses what
//!    they change as the rows of the commands that follow. If one of them fails or panics, so does `decide`, and the batch is
//!    halved until the command is alone.
//! 2. `evolve` calls the same three functions with the same arguments in the same order. They read nothing but the rows and
//!    their arguments: no clock, no key ring, nothing random.
//! 3. The arguments are the same, because the entry reads as what was decided: [`check_entry`].
//! 4. The rows are the same, because the entry is written in the term of the leader that decided it or not at all, and nothing
//!    else is decided in between.
//! 5. The index entries follow from the rows before and after. `Shared::puts` computes them before the entry is proposed, and
//!    the leader puts these very ones.
//!
//! What is left puts rows into memory and wakes tasks, which cannot fail. To evolve the entry again on the leader would
//! double the cost of a decision; with debug assertions, as in all tests, [`check_entry`] does that.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use switchward_engine::{RowBefore, evolve_with_before};
use switchward_state::{Changes, Decision};

use crate::view::StateView;

/// A decision, the rows that it changes, and what is known of each of them as it was before.
pub(crate) type Evolved = (Decision, Changes, Vec<RowBefore>);

/// Decodes an entry, and computes the rows that it changes.
///
/// # Errors
/// It cannot be decoded, or it does not fit the rows; the error says why.
pub(crate) fn evolved(entry: &[u8], view: &StateView) -> Result<Evolved, String> {
    caught(|| {
        let decision = Decision::decode(entry).map_err(|error| error.to_string())?;
        let evolved = evolve_with_before(&decision, view).map_err(|error| error.to_string())?;
        let (changes, before) = evolved;
        Ok((decision, changes, before))
    })
}

/// Checks that replicas read in an entry what was decided. With debug assertions, the rows are computed again and compared.
///
/// # Errors
/// It must not get into the log; the error says why.
pub(crate) fn check_entry(
    entry: &[u8],
    decision: &Decision,
    changes: &Changes,
    view: &StateView,
) -> Result<(), String> {
    if !caught(|| decision.reads_as(entry).map_err(|error| error.to_string()))? {
        return Err("the entry does not read as what was decided".to_owned());
    }
    if cfg!(debug_assertions) && evolved(entry, view)?.1 != *changes {
        return Err("replicas would not change the rows that were decided".to_owned());
    }
    Ok(())
}

/// Runs what works on copies of rows alone: if it panics, the copies are gone, and the panic is the error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of_panic(&*panic)))
}

/// What a panic says.
pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a message"))
}
