//! The rows that an entry changes, as every replica computes them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use switchward_engine::evolve;
use switchward_state::{Changes, Decision};

use crate::view::StateView;

/// Decodes an entry, and computes the rows that it changes.
///
/// # Errors
/// It cannot be decoded, or it does not fit the rows; the error says why.
pub(crate) fn evolved(entry: &[u8], view: &StateView) -> Result<(Decision, Changes), String> {
    caught(|| {
        let decision = Decision::decode(entry).map_err(|error| error.to_string())?;
        let changes = evolve(&decision, view).map_err(|error| error.to_string())?;
        Ok((decision, changes))
    })
}

/// Checks that replicas read in an entry what was decided. Then [`evolve`] changes the same rows on each of them as `decide` has
/// changed on its copies: both apply the same events to the same rows in the same order. With debug assertions, as in tests, the
/// rows are computed again and compared.
///
/// # Errors
/// It must not get into the log; the error says why.
pub(crate) fn check_entry(
    entry: &[u8],
    decision: &Decision,
    changes: &Changes,
    view: &StateView,
) -> Result<(), String> {
    let read = caught(|| Decision::decode(entry).map_err(|error| error.to_string()))?;
    if read != *decision {
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
