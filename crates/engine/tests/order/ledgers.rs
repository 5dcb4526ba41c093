//! What a caller's server does for a limited call: it plans on the session's shard, reserves in the ledgers, and takes
//! their answer along. As `limited` of `crates/shard/src/cluster.rs`.

use std::collections::VecDeque;
use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::Micros;
use switchward_state::policy::{
    LedgerRule, LimitCheck, LimitOutcome, PolicyCommand, Reserve, Settle, by_ledger, check_limits,
};
use switchward_state::{Body, Command, Reply, Scope};

use crate::commands::TENANT;
use crate::message::Origin;
use crate::simulation::{Checked, Simulation};

/// Ledgers that are being asked.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    began: u64,
    ledgers: Ledgers,
    left: VecDeque<Part>,
    asked: Option<Part>,
    held: Vec<Part>,
    parts: Vec<LimitCheck>,
}

/// The rules of one ledger.
#[derive(Debug, Clone)]
struct Part {
    process: String,
    rules: Vec<LedgerRule>,
}

/// What comes next.
pub(crate) enum Next {
    /// The command is sent as it is.
    Send,
    /// Ledgers are asked first.
    Ask(Box<Asking>),
    /// A shard cannot be read now.
    Wait,
}

impl Simulation {
    /// Plans a command on its shard. What is only looked at in a ledger is taken along.
    pub(crate) fn plan_of(&self, command: &mut Command) -> Result<Next, String> {
        let home = self.home(command);
        let (Some(rows), Some(now)) = (self.shards[home].read(), self.time(home)) else {
            return Ok(Next::Wait);
        };
        match plan(rows, command, now).map_err(|error| error.to_string())? {
            Plan::Direct => {
                command.take_along(None);
                Ok(Next::Send)
            }
            Plan::Look(ledgers) => {
                let check = self.look(&ledgers)?;
                let found = check.is_some();
                command.take_along(check);
                Ok(if found { Next::Send } else { Next::Wait })
            }
            Plan::Reserve(ledgers) => {
                let parts = by_ledger(&ledgers.rules).into_iter();
                let left = parts.map(|(process, rules)| Part { process, rules }).collect();
                let (held, parts) = (Vec::new(), Vec::new());
                let asking = Asking { began: self.now, ledgers, left, asked: None, held, parts };
                Ok(Next::Ask(Box::new(asking)))
            }
        }
    }

    /// What the ledgers have left; `None` if one of them cannot be read now.
    fn look(&self, ledgers: &Ledgers) -> Result<Option<LimitCheck>, String> {
        let mut parts = Vec::new();
        for (process, rules) in by_ledger(&ledgers.rules) {
            let at = self.shard_of_ledger(&process);
            let (Some(rows), Some(now)) = (self.shards[at].read(), self.time(at)) else { return Ok(None) };
            let check = check_limits(rows, TENANT, &rules, ledgers.estimate, now);
            parts.push(check.map_err(|error| error.to_string())?);
        }
        Ok(Some(LimitCheck::joined(&ledgers.rules, ledgers.estimate, &parts)))
    }

    fn shard_of_ledger(&self, process: &str) -> usize {
        let bucket = Scope::Ledger(process.to_owned()).bucket(TENANT);
        bucket.map_or(0, |bucket| usize::from(bucket.number())) % self.shards.len()
    }

    /// Asks the next ledger. Returns what all of them said together, if none is left.
    pub(crate) fn ask(&mut self, asking: &mut Asking, origin: Origin) -> Option<LimitCheck> {
        let Ledgers { call, rules, estimate } = &asking.ledgers;
        let Some(part) = asking.left.pop_front() else {
            let joined = LimitCheck::joined(rules, *estimate, &asking.parts);
            return Some(joined.aged(self.now - asking.began));
        };
        let body = Reserve { call: *call, rules: part.rules.clone(), estimate: *estimate };
        self.send(origin, of_ledger(&part.process, PolicyCommand::Reserve(body)));
        asking.asked = Some(part);
        None
    }

    /// Notes what a ledger has said. If it has no capacity, what the others hold is given back.
    pub(crate) fn ledger_said(&mut self, asking: &mut Asking, reply: &Reply) -> Checked {
        let Reply::Limits(check) = reply else { return Err(format!("a ledger answers {reply:?}")) };
        asking.parts.push(check.clone());
        let part = asking.asked.take();
        if !matches!(check.outcome, LimitOutcome::Full { .. }) {
            asking.held.extend(part);
            return Ok(());
        }
        asking.left.clear();
        for Part { process, rules } in asking.held.drain(..) {
            let at = self.clocks.read(0, self.now);
            let settle =
                Settle { call: Some(asking.ledgers.call), rules, cost: Micros(0), at, release: true };
            self.send(Origin::Nobody, of_ledger(&process, PolicyCommand::Settle(settle)));
        }
        Ok(())
    }
}

fn of_ledger(process: &str, body: PolicyCommand) -> Command {
    Command::of_server(TENANT, Scope::Ledger(process.to_owned()), Body::Policy(body))
}
