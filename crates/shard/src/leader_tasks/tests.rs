use switchward_machine::{OpenId, TenantId};
use switchward_state::{Reason, Rejection};

use super::*;
use crate::limits::{RELAY_TARGET_IN_FLIGHT_MAX, RELAY_TARGET_REST};

/// More refused effects than a round looks at; after them comes one that is not refused.
const REFUSED: u64 = 2 * 64 + 44;

fn key(number: u64) -> Key {
    Key::item(TenantId(1), SessionId::from_key(TenantId(1), "s"), OpenId(number))
}

fn due(number: u64) -> Due {
    Due { at: Time(5), key: key(number) }
}

/// An effect for one of two shards.
fn effect(number: u64) -> DueEffect {
    DueEffect { due: due(number), target: 1 + number % 2 }
}

/// The entries that are begun next, of an index of these effects.
fn of_index(relay: &mut Relay, index: impl IntoIterator<Item = DueEffect>, at: Instant) -> Vec<DueEffect> {
    let mut picked = Picked::none(relay, Time(9), at);
    let _full =
        index.into_iter().try_for_each(|DueEffect { due, target }| picked.look(due, |_| Ok(Some(target))));
    let Picked { found, passed_over, .. } = picked;
    relay.targets.pass_over(passed_over);
    found
}

/// The same of an index of these numbers.
fn picked(relay: &mut Relay, numbers: impl IntoIterator<Item = u64>, at: Instant) -> Vec<DueEffect> {
    of_index(relay, numbers.into_iter().map(effect), at)
}

fn refused() -> NotCarried {
    NotCarried::Target(Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long")))
}

/// Runs one round on an index of these rows, of which all but the last are refused. Returns the relayed rows.
fn carried(relay: &mut Relay, at: Instant) -> Vec<Key> {
    let mut done = Vec::new();
    for effect in picked(relay, 0..=REFUSED, at) {
        let result = if effect.due.key == key(REFUSED) { Ok(()) } else { Err(refused()) };
        done.extend(result.is_ok().then(|| effect.due.key.clone()));
        relay.note(&effect, result);
    }
    done
}

#[test]
fn rows_that_are_refused_stop_no_others() {
    let (mut relay, at) = (Relay::default(), Instant::now());
    let rounds: Vec<usize> = (0..4).map(|_| carried(&mut relay, at).len()).collect();
    assert_eq!(rounds, [0, 0, 1, 1], "the third round reaches the row that can be done");
    let resting = (0..=REFUSED).filter(|number| relay.refused.rests(&key(*number), at)).count();
    assert_eq!(resting as u64, REFUSED, "refused rows rest");
}

#[test]
fn what_is_not_due_is_not_picked() {
    let relay = Relay::default();
    let mut picked = Picked::none(&relay, Time(4), Instant::now());
    assert!(picked.look(due(1), |_| Ok(Some(1))).is_break() && picked.found.is_empty());
}

#[test]
fn what_is_for_no_shard_is_not_picked_and_takes_no_capacity() {
    let relay = Relay::default();
    let mut picked = Picked::none(&relay, Time(9), Instant::now());
    assert!(picked.look(due(1), |_| Ok(None)).is_continue() && picked.found.is_empty());
    assert!(picked.look(due(2), |_| Ok(Some(1))).is_continue());
    assert_eq!(picked.found.len(), 1);
}

#[test]
fn only_a_failure_of_its_own_shard_stops_the_relay() {
    let mut relay = Relay::default();
    relay.note(&effect(1), Err(refused()));
    relay.note(&effect(2), Err(NotCarried::Target(Failure::Stopped)));
    for failure in [Failure::Electing, Failure::OutcomeUnknown, Failure::Overloaded, Failure::Draining] {
        relay.note(&effect(3), Err(NotCarried::Target(failure)));
    }
    assert_eq!(relay.rests_until, None);
    relay.note(&effect(4), Err(NotCarried::Own(Failure::Electing)));
    assert!(relay.rests_until.is_some(), "a shard without a leader relays nothing");
    let rests = [1, 2, 3, 4].map(|number| relay.refused.rests(&key(number), Instant::now()));
    assert_eq!(rests, [true, true, false, false]);
}

#[test]
fn a_target_without_a_leader_leaves_capacity_to_the_other_one() {
    const FIRST: u64 = 1_000;
    // Many effects for shard 1 are due before those for shard 2.
    let index = || (0..2 * FIRST).map(|number| DueEffect { due: due(number), target: 1 + number / FIRST });
    let count = |found: &[DueEffect]| [1, 2].map(|to| found.iter().filter(|one| one.target == to).count());
    let half = RELAY_TARGET_IN_FLIGHT_MAX;
    let (mut relay, at) = (Relay::default(), Instant::now());
    let found = of_index(&mut relay, index(), at);
    assert_eq!(count(&found), [half, RELAY_IN_FLIGHT_MAX - half]);
    for effect in found {
        let electing = effect.target == 1;
        relay.start(effect, async move {
            if electing { Err(NotCarried::Target(Failure::Electing)) } else { Ok(()) }
        });
    }
    assert_eq!(relay.capacity(), 0);
    relay.note_all();
    assert_eq!((relay.capacity(), relay.rests_until), (RELAY_IN_FLIGHT_MAX, None));
    let found = of_index(&mut relay, index(), at);
    assert_eq!(count(&found), [0, half], "the shard without a leader rests");
    // A pause later than any of the above.
    let later = Instant::now() + RELAY_TARGET_REST;
    let found = of_index(&mut relay, index(), later);
    assert_eq!(count(&found), [1, half], "it is asked with one effect");
    found.iter().for_each(|effect| relay.note(effect, Ok(())));
    assert_eq!(count(&of_index(&mut relay, index(), later))[0], half, "it has answered");
}

#[test]
fn the_targets_of_effects_that_are_passed_over_are_read_once() {
    let (mut relay, at) = (Relay::default(), Instant::now());
    relay.targets.rest(1, at);
    let mut reads = 0;
    for _ in 0..3 {
        let mut picked = Picked::none(&relay, Time(9), at);
        for number in 0..10 {
            let read = |_: &Key| {
                reads += 1;
                Ok(Some(1))
            };
            assert!(picked.look(due(number), read).is_continue());
        }
        let Picked { found, passed_over, .. } = picked;
        assert!(found.is_empty());
        relay.targets.pass_over(passed_over);
    }
    assert_eq!(reads, 10);
}

#[test]
fn an_effect_that_gets_no_answer_holds_only_its_own_capacity() {
    const ALL: u64 = RELAY_IN_FLIGHT_MAX as u64;
    let mut relay = Relay::default();
    relay.start(effect(0), std::future::pending());
    for number in 1..ALL {
        relay.start(effect(number), async { Ok(()) });
    }
    assert_eq!((relay.capacity(), picked(&mut relay, ALL..2 * ALL, Instant::now()).len()), (0, 0));
    relay.note_all();
    assert_eq!(relay.capacity(), RELAY_IN_FLIGHT_MAX - 1, "all others have arrived");
    let next = picked(&mut relay, [0].into_iter().chain(ALL..2 * ALL), Instant::now());
    assert_eq!(next.first().map(|one| one.due.key.clone()), Some(key(ALL)), "none is under way twice");
    assert_eq!(next.len(), RELAY_IN_FLIGHT_MAX - 1);
    relay.stop();
    assert_eq!(relay.capacity(), RELAY_IN_FLIGHT_MAX);
}
