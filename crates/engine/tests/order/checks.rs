//! What must hold when everything has come to rest.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use switchward_engine::session_view;
use switchward_machine::{Micros, Period, Status, Time};
use switchward_state::policy::LedgerRow;
use switchward_state::{IndexKey, Key, Kind, Row, Scope, View as _};

use crate::commands::{
    APPROVED_MAX, BUDGET, CALLS_MAX, COUNTERS, READ_WINDOW_MS, READS_MAX, SHIP_WINDOW_MS, SHIPS_MAX, TENANT,
    price,
};
use crate::ledger_calls::Counter;
use crate::simulation::{Checked, Simulation};

const HOUR_MS: u64 = 3_600_000;
/// Entries of an index that are looked at.
const LOOK_MAX: usize = 1_000;

impl Simulation {
    /// What is still to be done; `None` if nothing is.
    pub(crate) fn pending(&self) -> Option<String> {
        if let Some(caller) = self.callers.iter().position(|caller| !caller.is_idle()) {
            return Some(format!("caller {caller} works"));
        }
        for (at, shard) in self.shards.iter().enumerate() {
            let (Some(rows), Some(time)) = (shard.read(), self.time(at)) else {
                return Some(format!("shard {at} has no leader"));
            };
            for index in [IndexKey::relay(), IndexKey::deliveries()] {
                let mut first = None;
                let look = &mut |entry: &Key, _: &_| {
                    first = Some(entry.clone());
                    ControlFlow::Break(())
                };
                rows.scan(&index, None, look).unwrap();
                if let Some(entry) = first {
                    return Some(format!("an effect of shard {at} waits: {entry:?}"));
                }
            }
            let due = shard.due(&IndexKey::due(), Time(u64::MAX), LOOK_MAX);
            if let Some(due) = due.iter().find(|due| due.at <= time || due.key.is(Kind::OpenItem)) {
                return Some(format!("a timer of shard {at} waits at {time:?}: {due:?}"));
            }
        }
        if !self.is_quiet() {
            return Some("messages are on their way".into());
        }
        let waiting = self.oracle.effects.waiting();
        (!waiting.is_empty()).then(|| format!("effects are neither gone nor dead letters: {waiting:?}"))
    }

    fn ledger(&self, counter: &Counter) -> LedgerRow {
        let Counter { process, capability } = counter;
        let bucket = Scope::Ledger(process.clone()).bucket(TENANT).unwrap();
        let shard = &self.shards[usize::from(bucket.number()) % self.shards.len()];
        let row = shard
            .read()
            .and_then(|rows| rows.row(&Key::ledger(TENANT, process, "agent", capability)).unwrap());
        match row.as_deref() {
            Some(Row::Ledger(row)) => row.clone(),
            _ => LedgerRow::default(),
        }
    }

    /// Each ledger holds what the sessions say, and no limit was exceeded at any time.
    pub(crate) fn ledgers_are_exact(&self) -> Checked {
        for counter in self.oracle.calls.counters() {
            let (row, counted) = (self.ledger(&counter), self.oracle.calls.counted(&counter));
            let (max, window) = match counter.capability.as_str() {
                "bash" => (CALLS_MAX, HOUR_MS),
                "deploy" => (APPROVED_MAX, HOUR_MS),
                "read" => (READS_MAX, READ_WINDOW_MS),
                "ship" => (SHIPS_MAX, SHIP_WINDOW_MS),
                _ => (usize::MAX, 0),
            };
            for (at, last) in counted.iter().enumerate() {
                let inside = counted[..=at].iter().filter(|time| last.since_ms(**time) < window).count();
                if inside > max {
                    return Err(format!("{inside} calls of {counter:?} in {window} ms: {counted:?}"));
                }
            }
            if window == HOUR_MS && row.calls != counted {
                return Err(format!("{counter:?} counts {:?}, sessions {counted:?}", row.calls));
            }
            self.money_is_exact(&counter, &row)?;
        }
        Ok(())
    }

    fn money_is_exact(&self, counter: &Counter, row: &LedgerRow) -> Checked {
        let charges = self.oracle.calls.charges(counter).iter();
        let charged: u64 = charges.map(|cost| cost.0).sum();
        let spent = row.spent.iter().find(|spent| spent.period == Period::Hour);
        let spent = spent.map_or(0, |spent| spent.micros.0);
        if spent != charged {
            return Err(format!("{counter:?} has spent {spent} micros, and {charged} were reported"));
        }
        let open = self.oracle.calls.open(counter);
        let held: BTreeSet<_> =
            row.reservations.iter().filter(|held| held.confirmed).map(|held| held.call).collect();
        if held != open {
            return Err(format!("{counter:?} holds money for {held:?}, and these calls are open: {open:?}"));
        }
        let used = used(row);
        if counter.capability == "pay" && used > BUDGET {
            return Err(format!("{counter:?} has used {used:?} of {BUDGET:?}"));
        }
        Ok(())
    }

    /// Sessions that wait have ended, and not before their time.
    pub(crate) fn naps_are_over(&self) -> Checked {
        if self.oracle.timers() > 0 {
            return Err(format!("{} timers have not fired", self.oracle.timers()));
        }
        for known in &self.sessions {
            let Some(ms) = known.definition.strip_prefix("nap-") else { continue };
            let ms: u64 = ms.parse().unwrap();
            let at = usize::from(known.id.bucket().number()) % self.shards.len();
            let Some(rows) = self.shards[at].read() else { continue };
            let view = session_view(rows, TENANT, known.id).map_err(|error| error.to_string())?;
            let Some(view) = view else { return Err(format!("{known:?} is gone")) };
            let took = view.session.ended.map(|ended| ended.since_ms(view.session.created));
            if view.session.status != Status::Completed || took.is_none_or(|took| took < ms) {
                return Err(format!("{known:?} is {:?} after {took:?} ms", view.session.status));
            }
        }
        Ok(())
    }

    /// No reservation is left whose call was never permitted.
    pub(crate) fn no_reservation_is_left(&self) -> Checked {
        for counter in self.oracle.calls.counters() {
            let row = self.ledger(&counter);
            if row.reservations.iter().any(|held| !held.confirmed) {
                return Err(format!("{counter:?} keeps reservations for ever: {:?}", row.reservations));
            }
        }
        self.ledgers_are_exact()
    }

    /// As many calls are permitted as the limits allow.
    pub(crate) fn limits_are_used_up(&self) -> Checked {
        for process in COUNTERS {
            let counter =
                |capability: &str| Counter { process: process.to_owned(), capability: capability.to_owned() };
            let calls = self.oracle.calls.counted(&counter("bash")).len();
            if calls != CALLS_MAX {
                return Err(format!("{calls} calls of {process} were permitted, the limit is {CALLS_MAX}"));
            }
            let used = used(&self.ledger(&counter("pay")));
            let next = price("pay").map_or(Micros(0), |price| price.estimate);
            if used.plus(next) <= BUDGET {
                return Err(format!("{process} refuses calls, and {used:?} of {BUDGET:?} are used"));
            }
        }
        Ok(())
    }

    /// Calls that nobody reports hold nothing after a day.
    pub(crate) fn nothing_is_held(&self) -> Checked {
        for counter in self.oracle.calls.counters() {
            let row = self.ledger(&counter);
            if !row.reservations.is_empty() {
                return Err(format!("{counter:?} holds {:?} after a day", row.reservations));
            }
        }
        Ok(())
    }
}

/// What a ledger has spent and holds.
fn used(row: &LedgerRow) -> Micros {
    let spent = row.spent.iter().find(|spent| spent.period == Period::Hour);
    let spent = spent.map_or(Micros(0), |spent| spent.micros);
    row.reservations.iter().fold(spent, |sum, held| sum.plus(held.estimate))
}
