//! The rows that an entry changes, as every replica computes them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use switchward_state::{Changes, Decision, evolve};

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
