//! The timers of a leader: what is due is fired by commands, which may be lost, repeated, late or early.

use switchward_machine::Time;
use switchward_state::IndexKey;

use crate::commands::sweep;
use crate::message::{Origin, ShardIx, Task};
use crate::simulation::{Checked, Simulation};

/// How long a timer is being fired until it is fired again, milliseconds.
const AGAIN_MS: u64 = 600;
/// Timers that a look fires at most.
const LOOK_MAX: usize = 24;

impl Simulation {
    /// Fires what is due, and by a fault what is not.
    pub(crate) fn fire(&mut self, at: ShardIx) {
        let Some(time) = self.time(at) else { return };
        for due in self.shards[at].due(&IndexKey::due(), time, LOOK_MAX) {
            let (now, term) = (self.now, self.shards[at].term);
            let Some(leader) = &mut self.shards[at].leader else { return };
            if leader.firing.get(&due.key).is_some_and(|until| now < *until) {
                continue;
            }
            if leader.firing.insert(due.key.clone(), now + AGAIN_MS).is_some() {
                self.saw("timer fired again");
            }
            let task = Task { shard: at, term, key: due.key.clone() };
            self.send_to(at, Origin::Timer(task), sweep(&due));
        }
        if self.rng.once_in(6) && self.draws(self.plan.early) {
            let all = self.shards[at].due(&IndexKey::due(), Time(u64::MAX), LOOK_MAX);
            let early: Vec<_> = all.into_iter().filter(|due| due.at > time).collect();
            if !early.is_empty() {
                self.saw("timer fired before its time");
                let due = self.rng.pick(&early).clone();
                self.send_to(at, Origin::Nobody, sweep(&due));
            }
        }
    }

    /// The leader of a shard does what it has to do, and its followers apply entries.
    pub(crate) fn tick(&mut self, at: ShardIx) -> Checked {
        self.relay(at);
        self.publish(at)?;
        self.fire(at);
        for server in 0..self.servers {
            let most = if self.rng.once_in(3) { usize::MAX } else { self.rng.below(2) };
            if self.shards[at].lags(server) > 5 {
                self.saw("follower lagged");
            }
            self.shards[at].follow(server, most, &mut self.oracle)?;
            if self.rng.once_in(40) {
                self.shards[at].flush(server);
            }
        }
        Ok(())
    }
}
