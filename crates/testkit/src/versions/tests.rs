use super::*;
use crate::{OPERATIONS_MAX, Rng, linearizable};

const FIRST: Versioned<u8> = Versioned { version: 10, value: 0, step: 3 };

fn check(history: &[(u64, Option<u64>, Seen<u8>)]) -> Result<(), String> {
    let operation = |(invoked, returned, what): &(u64, Option<u64>, Seen<u8>)| Operation {
        invoked: *invoked,
        returned: *returned,
        what: *what,
    };
    let operations: Vec<_> = history.iter().map(operation).collect();
    ordered_by_version(&FIRST, &operations)
}

const fn made(version: u64, value: u8) -> Seen<u8> {
    Seen::Made { version, value }
}

const fn read(version: u64, value: u8) -> Seen<u8> {
    Seen::Read { version, value }
}

#[test]
fn a_read_sees_the_last_change() {
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&[(1, Some(2), read(10, 0))]), Ok(()));
    assert_eq!(check(&[(1, Some(2), made(13, 1)), (3, Some(4), read(13, 1))]), Ok(()));
    let stale = check(&[(1, Some(2), made(13, 1)), (3, Some(4), read(10, 0))]);
    assert!(stale.unwrap_err().contains("version 13 was seen before 2"));
    assert!(check(&[(1, Some(2), read(13, 1)), (3, Some(4), made(13, 1))]).is_err(), "it is seen too early");
}

#[test]
fn what_overlaps_may_have_either_order() {
    for seen in [read(10, 0), read(13, 1)] {
        assert_eq!(check(&[(1, Some(4), made(13, 1)), (2, Some(3), seen)]), Ok(()));
    }
    // Once one reader has seen it, the next one does too.
    let back = [(1, Some(9), made(13, 1)), (2, Some(3), read(13, 1)), (4, Some(5), read(10, 0))];
    assert!(check(&back).is_err());
    let late = [(1, Some(3), made(16, 2)), (4, Some(6), made(13, 1))];
    assert!(check(&late).is_err(), "the second version comes before the first");
}

#[test]
fn each_version_is_made_once_and_holds_one_value() {
    let twice = check(&[(1, Some(3), made(13, 1)), (2, Some(4), made(13, 1))]);
    assert!(twice.unwrap_err().contains("made twice"));
    let two = check(&[(1, Some(2), made(13, 1)), (3, Some(4), read(13, 2))]);
    assert!(two.unwrap_err().contains("holds 1 and 2"));
    let never = check(&[(1, Some(2), made(13, 1)), (3, Some(4), read(16, 1))]);
    assert!(never.unwrap_err().contains("2 changes were seen, 1 were made"));
    for odd in [made(14, 1), made(10, 1), read(9, 0)] {
        assert!(check(&[(1, Some(2), odd)]).unwrap_err().contains("is no version"));
    }
}

#[test]
fn what_never_ended_may_have_happened_late_or_not_at_all() {
    let perhaps = |version| (1, None, Seen::Perhaps { version, value: 1 });
    for seen in [read(10, 0), read(13, 1)] {
        assert_eq!(check(&[perhaps(None), (2, Some(3), read(10, 0)), (8, Some(9), seen)]), Ok(()));
    }
    let back = [perhaps(None), (2, Some(3), read(13, 1)), (4, Some(5), read(10, 0))];
    assert!(check(&back).is_err(), "it happens once");
    assert!(check(&[perhaps(None), (2, Some(3), read(13, 2))]).is_err(), "it makes another value");
    assert!(check(&[perhaps(Some(16)), (2, Some(3), read(13, 1))]).is_err(), "it makes another version");
    let twice = [perhaps(None), (2, Some(3), read(13, 1)), (4, Some(5), read(16, 1))];
    assert!(check(&twice).is_err(), "one request makes one change");
    let other = [perhaps(None), (2, None, Seen::Perhaps { version: None, value: 2 })];
    let two = [(4, Some(5), read(13, 1)), (6, Some(7), read(16, 1))];
    assert!(check(&[other, two].concat()).is_err(), "each value has a maker of its own");
}

#[test]
fn who_was_refused_was_refused_by_a_later_version() {
    let past = |invoked, returned| (invoked, Some(returned), Seen::Past { version: 10 });
    assert_eq!(check(&[(1, Some(2), made(13, 1)), past(3, 4)]), Ok(()));
    assert_eq!(check(&[(3, Some(9), made(13, 1)), past(2, 4)]), Ok(()));
    assert!(check(&[past(1, 2)]).is_err(), "no version came later");
    assert!(check(&[past(1, 2), (3, Some(4), made(13, 1))]).is_err(), "it came after the refusal");
    let still = [(1, Some(9), made(13, 1)), past(2, 3), (4, Some(5), read(10, 0))];
    assert!(check(&still).is_err(), "it was the newest one after the refusal");
    assert_eq!(check(&[(1, None, Seen::Perhaps { version: None, value: 1 }), past(2, 3)]), Ok(()));
}

#[test]
fn histories_of_any_length_are_checked() {
    let mut history = Vec::new();
    for change in 1..=1_000 {
        history.push((change * 10, Some(change * 10 + 3), made(10 + change * 3, 1)));
        history.push((change * 10 + 1, Some(change * 10 + 5), read(10 + change * 3, 1)));
    }
    assert!(history.len() > OPERATIONS_MAX);
    assert_eq!(check(&history), Ok(()));
    history.push((20_000, Some(20_001), read(13, 1)));
    assert!(check(&history).is_err());
}

/// A register of the other checker: its version, and what it holds.
type Register = (u64, u8);

fn step(register: &Register, seen: &Seen<u8>) -> Option<Register> {
    let (version, held) = *register;
    match *seen {
        Seen::Made { version: made, value } => (made == version + FIRST.step).then_some((made, value)),
        Seen::Read { version: read, value } => ((read, value) == (version, held)).then_some(*register),
        Seen::Past { version: past } => (past < version).then_some(*register),
        Seen::Perhaps { version: only, value } => {
            let next = version + FIRST.step;
            only.is_none_or(|only| only == next).then_some((next, value))
        }
    }
}

/// A history of some clients, each of whose operations takes effect at a moment between its beginning and its end.
fn drawn(rng: &mut Rng) -> Vec<Operation<Seen<u8>>> {
    let count = 4 + rng.below(8);
    let mut taken: Vec<(u64, u64, u64)> = (0..count)
        .map(|_| {
            let at = rng.between(100, 200) * 1_000;
            (at, at - rng.between(1, 30_000), at + rng.between(1, 30_000))
        })
        .collect();
    taken.sort_unstable();
    let mut register = (FIRST.version, FIRST.value);
    let mut history = Vec::new();
    for (nth, (_, invoked, returned)) in taken.into_iter().enumerate() {
        let what = match rng.below(4) {
            0 | 1 => {
                register = (register.0 + FIRST.step, u8::try_from(rng.below(3)).unwrap());
                Seen::Made { version: register.0, value: register.1 }
            }
            2 if register.0 > FIRST.version => Seen::Past { version: register.0 - FIRST.step },
            _ => Seen::Read { version: register.0, value: register.1 },
        };
        // No two moments are the same.
        let nth = nth as u64;
        history.push(Operation {
            invoked: invoked * 64 + nth * 2,
            returned: Some(returned * 64 + nth * 2 + 1),
            what,
        });
    }
    history
}

/// Changes one history so that it may be wrong.
fn spoil(rng: &mut Rng, history: &mut [Operation<Seen<u8>>]) {
    let at = rng.below(history.len());
    match rng.below(3) {
        0 => {
            let other = rng.below(history.len());
            let what = history[at].what;
            history[at].what = history[other].what;
            history[other].what = what;
        }
        1 => {
            let by = rng.between(1, 40_000) * 64;
            let operation = &mut history[at];
            (operation.invoked, operation.returned) =
                (operation.invoked + by, operation.returned.map(|returned| returned + by));
        }
        _ => {
            let by = rng.between(1, 40_000) * 64;
            let operation = &mut history[at];
            (operation.invoked, operation.returned) =
                (operation.invoked - by, operation.returned.map(|returned| returned - by));
        }
    }
}

#[test]
fn both_checkers_say_the_same_of_random_histories() {
    let mut rng = Rng::new(7);
    let (mut good, mut bad) = (0, 0);
    for round in 0..4_000 {
        let mut history = drawn(&mut rng);
        let spoilt = rng.once_in(2);
        if spoilt {
            (0..3).for_each(|_| spoil(&mut rng, &mut history));
        }
        let searched = linearizable(&(FIRST.version, FIRST.value), &history, step);
        let ordered = ordered_by_version(&FIRST, &history);
        assert_eq!(searched.is_ok(), ordered.is_ok(), "round {round}: {ordered:?} of {history:?}");
        assert!(spoilt || searched.is_ok(), "round {round}: {history:?}");
        if searched.is_ok() { good += 1 } else { bad += 1 }
    }
    assert!(good > 500 && bad > 500, "{good} are linearizable and {bad} are not");
}

#[test]
fn what_the_search_accepts_is_accepted_with_unknown_outcomes_too() {
    let mut rng = Rng::new(8);
    for round in 0..2_000 {
        let mut history = drawn(&mut rng);
        for operation in &mut history {
            let Seen::Made { version, value } = operation.what else { continue };
            if rng.once_in(3) {
                let only = rng.once_in(2).then_some(version);
                (operation.what, operation.returned) = (Seen::Perhaps { version: only, value }, None);
            }
        }
        if rng.once_in(2) {
            let at = rng.below(history.len());
            if let Seen::Read { version, value } = history[at].what {
                history[at].what = Seen::Read { version, value: value ^ 1 };
            }
        }
        let searched = linearizable(&(FIRST.version, FIRST.value), &history, step);
        let ordered = ordered_by_version(&FIRST, &history);
        assert!(ordered.is_ok() || searched.is_err(), "round {round}: {ordered:?} of {history:?}");
    }
}
