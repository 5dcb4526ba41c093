//! Faults of servers: leaders change, clocks jump, replicas start again.

use crate::clocks::Jump;
use crate::message::{Failure, ShardIx};
use crate::shard::{Answered, Outcome};
use crate::simulation::{Checked, Event, Simulation};

impl Simulation {
    /// The next fault occurs, and the one after it is planned.
    pub(crate) fn fault(&mut self) -> Checked {
        let pause = self.plan.pause_ms;
        if pause == u64::MAX {
            return Ok(());
        }
        let pause = self.rng.between(pause / 2, pause * 2);
        self.after(pause, Event::Fault);
        let (at, server) = (self.rng.below(self.shards.len()), self.rng.below(self.servers));
        match self.rng.below(8) {
            0..=3 => {
                self.depose(at);
                Ok(())
            }
            4 => {
                let jump = self.clocks.jump(&mut self.rng, server);
                self.saw(match jump {
                    Jump::Ahead => "clock jumped ahead",
                    Jump::Back => "clock jumped back",
                });
                Ok(())
            }
            5 => self.restart(at, server),
            6 => self.copy(at, server),
            _ => self.kill(server),
        }
    }

    /// The leader of a shard leads no longer, and an election begins.
    fn depose(&mut self, at: ShardIx) {
        let outcome = *self.rng.pick(&[Outcome::Lost, Outcome::Committed]);
        let Some(leader) = self.shards[at].depose(outcome) else { return };
        self.saw("leader changed");
        if let Some(proposal) = leader.proposal {
            self.saw(match outcome {
                Outcome::Lost => "proposal lost",
                Outcome::Committed => "proposal committed after its leader",
            });
            for Answered { message, .. } in proposal.answers {
                if self.rng.once_in(2) {
                    self.answer(Answered { message, answer: Err(Failure::Unknown) });
                }
            }
        }
        for message in leader.queue {
            if self.rng.once_in(2) {
                self.saw("queue lost");
            } else {
                self.answer(Answered { message, answer: Err(Failure::NoLeader) });
            }
        }
        let (term, wait) = (self.shards[at].term, self.rng.between(20, 600));
        self.after(wait, Event::Elected { shard: at, term });
        if self.rng.once_in(4) {
            self.saw("leader elected again");
            self.shards[at].next_leader = Some(leader.server);
        }
    }

    fn leads(&self, at: ShardIx, server: usize) -> bool {
        self.shards[at].leader.as_ref().is_some_and(|leader| leader.server == server)
    }

    /// A replica starts again with what its disk holds.
    fn restart(&mut self, at: ShardIx, server: usize) -> Checked {
        if self.leads(at, server) {
            self.depose(at);
        }
        if self.shards[at].restart(server)? > 0 {
            self.saw("replica restarted from older rows");
        }
        Ok(())
    }

    /// A replica that is not the leader starts again with the rows of another one.
    fn copy(&mut self, at: ShardIx, to: usize) -> Checked {
        let from = self.rng.below(self.servers);
        if from == to || self.leads(at, to) || self.shards[at].lags(from) > self.shards[at].lags(to) {
            return Ok(());
        }
        self.saw("replica restarted from a snapshot");
        self.shards[at].snapshot(from, to)
    }

    /// All replicas of a server start again.
    fn kill(&mut self, server: usize) -> Checked {
        (0..self.shards.len()).try_for_each(|at| self.restart(at, server))
    }
}
