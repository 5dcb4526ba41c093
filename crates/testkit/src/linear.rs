//! A checker of linearizability, by the algorithm of Wing and Gong with the memory of Lowe.

use std::collections::HashSet;
use std::hash::Hash;

/// The most operations of a history that is checked.
pub const OPERATIONS_MAX: usize = 128;

/// What one client did with an object, and what it learned.
#[derive(Debug, Clone)]
pub struct Operation<O> {
    /// When it began: a number that is lower than those of all later moments.
    pub invoked: u64,
    /// When it ended; `None` if its client never learned whether it took effect.
    pub returned: Option<u64>,
    /// What was asked, with what was answered.
    pub what: O,
}

/// Checks whether there is an order of the operations that respects their times, and in which each answer is right. An
/// operation that has not ended may have taken effect at any time after its beginning, or never.
///
/// `step` returns the state of the object after an operation, or `None` if its answer is wrong in the state before it.
///
/// # Errors
/// There is no such order: the operations of the longest order that was found, by their numbers.
///
/// # Panics
/// There are more than [`OPERATIONS_MAX`] operations.
pub fn linearizable<S: Clone + Eq + Hash, O>(
    initial: &S,
    operations: &[Operation<O>],
    step: impl Fn(&S, &O) -> Option<S>,
) -> Result<(), Vec<usize>> {
    assert!(operations.len() <= OPERATIONS_MAX, "a history of {} operations is too long", operations.len());
    let ended = bits(operations, |operation| operation.returned.is_some());
    let mut seen: HashSet<(u128, S)> = HashSet::new();
    let mut longest = Vec::new();
    // Each entry: the state, what is done, and which operation comes next.
    let mut order: Vec<(S, u128, usize)> = vec![(initial.clone(), 0, 0)];
    while let Some((state, done, next)) = order.last_mut() {
        if *done & ended == ended {
            return Ok(());
        }
        let before = first_return(operations, *done);
        let found = (*next..operations.len()).find_map(|at| {
            let operation = &operations[at];
            let free = *done & (1 << at) == 0 && operation.invoked < before;
            let after = free.then(|| step(state, &operation.what)).flatten()?;
            seen.insert((*done | 1 << at, after.clone())).then_some((at, after))
        });
        match found {
            Some((at, after)) => {
                *next = at + 1;
                let done = *done | 1 << at;
                order.push((after, done, 0));
                if order.len() > longest.len() + 1 {
                    longest = order.iter().take(order.len() - 1).map(|(_, _, next)| next - 1).collect();
                }
            }
            None => drop(order.pop()),
        }
    }
    Err(longest)
}

/// When the first of the operations ends that are not done: none that begins later can come before it.
fn first_return<O>(operations: &[Operation<O>], done: u128) -> u64 {
    let open = operations.iter().enumerate().filter(|(at, _)| done & (1 << at) == 0);
    open.filter_map(|(_, operation)| operation.returned).min().unwrap_or(u64::MAX)
}

fn bits<O>(operations: &[Operation<O>], which: impl Fn(&Operation<O>) -> bool) -> u128 {
    let numbered = operations.iter().enumerate().filter(|(_, operation)| which(operation));
    numbered.fold(0, |bits, (at, _)| bits | 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: writes, and what reads saw.
    #[derive(Debug, Clone, Copy)]
    enum Did {
        Wrote(u8),
        Read(u8),
    }

    fn check(history: &[(u64, Option<u64>, Did)]) -> Result<(), Vec<usize>> {
        let operation = |(invoked, returned, what): &(u64, Option<u64>, Did)| Operation {
            invoked: *invoked,
            returned: *returned,
            what: *what,
        };
        let operations: Vec<_> = history.iter().map(operation).collect();
        linearizable(&0, &operations, |state, did| match did {
            Did::Wrote(value) => Some(*value),
            Did::Read(value) => (value == state).then_some(*state),
        })
    }

    #[test]
    fn a_read_sees_the_last_write() {
        let read = |value| [(1, Some(2), Did::Wrote(1)), (3, Some(4), Did::Read(value))];
        assert_eq!(check(&read(1)), Ok(()));
        assert_eq!(check(&read(0)), Err(vec![0]));
    }

    #[test]
    fn what_overlaps_may_have_either_order() {
        let read = |value| [(1, Some(4), Did::Wrote(1)), (2, Some(3), Did::Read(value))];
        assert!(check(&read(0)).is_ok() && check(&read(1)).is_ok() && check(&read(2)).is_err());
        // Once one reader has seen it, the next one does too.
        let both = [(1, Some(9), Did::Wrote(1)), (2, Some(3), Did::Read(1)), (4, Some(5), Did::Read(0))];
        assert!(check(&both).is_err());
    }

    #[test]
    fn what_never_ended_may_have_happened_late_or_not_at_all() {
        let seen =
            |value| [(1, None, Did::Wrote(1)), (2, Some(3), Did::Read(0)), (8, Some(9), Did::Read(value))];
        assert!(check(&seen(0)).is_ok() && check(&seen(1)).is_ok());
        let back = [(1, None, Did::Wrote(1)), (2, Some(3), Did::Read(1)), (4, Some(5), Did::Read(0))];
        assert!(check(&back).is_err(), "it happens once");
    }

    #[test]
    fn long_histories_with_much_at_once_are_checked() {
        let mut history = Vec::new();
        for round in 0..20_u64 {
            let value = u8::try_from(round).unwrap();
            for _ in 0..3 {
                history.push((round * 10, Some(round * 10 + 5), Did::Wrote(value)));
            }
            history.push((round * 10 + 6, Some(round * 10 + 7), Did::Read(value)));
        }
        assert_eq!(check(&history), Ok(()));
        history.push((300, Some(301), Did::Read(7)));
        assert!(check(&history).is_err());
    }
}
