//! The line of each tenant, and whose turn it is.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use switchward_machine::TenantId;
use switchward_state::limits::WEIGHT_DEFAULT;
use switchward_state::{AdmissionClass, Command};

use super::cost::cost;
use super::late::Quick;
use super::{Job, Refused};
use crate::limits::{DEBT_MAX, DEBTORS_MAX, QUEUE_COMMANDS_MAX, QUEUE_ESSENTIAL_MAX, TURN_COST};
use crate::throttle::Throttle;

#[derive(Default)]
pub(super) struct Lines {
    /// Those of tenants that have something waiting, or owe something.
    of: HashMap<TenantId, Line>,
    /// Tenants that have something waiting; the next one to be served stands first.
    turns: VecDeque<TenantId>,
    waiting: usize,
    pub(super) closed: bool,
    throttle: Throttle,
    quick: Quick,
}

struct Line {
    jobs: VecDeque<Job>,
    /// What is left of the tenant's turn; below zero: what it owes.
    credit: i64,
    /// Whether its turn goes on: it was broken off while it had credit.
    in_turn: bool,
    /// How many times the turn of another tenant its turn is.
    weight: i64,
}

impl Default for Line {
    fn default() -> Self {
        Self { jobs: VecDeque::new(), credit: 0, in_turn: false, weight: i64::from(WEIGHT_DEFAULT) }
    }
}

fn signed(cost: usize) -> i64 {
    i64::try_from(cost).unwrap_or(i64::MAX)
}

impl Lines {
    /// Without anything in them, and nothing more gets in.
    pub(super) fn over() -> Self {
        Self { closed: true, ..Self::default() }
    }

    pub(super) fn put(&mut self, job: Job, now: Instant) -> Result<Option<Job>, Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        let tenant = job.command.tenant;
        let pushed_out = match self.waiting {
            waiting if waiting < QUEUE_COMMANDS_MAX => None,
            waiting if job.command.body.admission() == AdmissionClass::Ends => {
                if waiting >= QUEUE_COMMANDS_MAX + QUEUE_ESSENTIAL_MAX {
                    return Err(Refused::Full);
                }
                None
            }
            _ => Some(self.push_out(tenant).ok_or(Refused::Full)?),
        };
        self.throttle.asked(tenant, now);
        let line = self.of.entry(tenant).or_default();
        line.weight = i64::from(job.command.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT));
        if line.jobs.is_empty() {
            self.turns.push_back(tenant);
        }
        line.jobs.push_back(job);
        self.waiting += 1;
        Ok(pushed_out)
    }

    /// Takes a command out, so that one of this tenant can be added: the newest user's command of the longest line, if
    /// that line is still the longer one afterwards.
    fn push_out(&mut self, tenant: TenantId) -> Option<Job> {
        let own = self.of.get(&tenant).map_or(0, |line| line.jobs.len());
        let longest = self.of.values_mut().max_by_key(|line| line.jobs.len())?;
        if longest.jobs.len() <= own + 1 {
            return None;
        }
        let newest =
            longest.jobs.iter().rposition(|job| job.command.body.admission() != AdmissionClass::Ends)?;
        self.waiting -= 1;
        longest.jobs.remove(newest)
    }

    /// Takes at most `max` commands, every tenant in turn. Returns until when a tenant rests that has something waiting.
    pub(super) fn serve(&mut self, max: usize, taken: &mut Vec<Job>, now: Instant) -> Option<Instant> {
        let (mut resting, rests) = (None, !self.closed && self.shared(now));
        while taken.len() < max
            && let Some(tenant) = self.turns.pop_front()
        {
            let Some(line) = self.of.get_mut(&tenant) else { continue };
            if let Some(until) = self.throttle.rests(tenant, now).filter(|_| rests) {
                resting = Some((tenant, until));
                continue;
            }
            if !std::mem::take(&mut line.in_turn) {
                line.credit += signed(TURN_COST) * line.weight;
            }
            while taken.len() < max
                && let Some(next) = line.jobs.front().map(|job| signed(cost(&job.command.body)))
                && next <= line.credit
                && let Some(job) = line.jobs.pop_front()
            {
                line.credit -= next;
                self.waiting -= 1;
                taken.push(job);
            }
            if line.jobs.is_empty() {
                if line.credit >= 0 {
                    // Who has nothing waiting saves nothing up.
                    self.of.remove(&tenant);
                }
            } else if taken.len() == max {
                line.in_turn = true;
                self.turns.push_front(tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
        let (tenant, until) = resting?;
        self.turns.push_front(tenant);
        Some(until)
    }

    /// Returns true if the tenant has used most lately.
    pub(super) fn is_heaviest(&self, tenant: TenantId) -> bool {
        self.throttle.is_heaviest(tenant)
    }

    /// A command of another tenant than the heaviest was answered so long after it had come.
    pub(super) fn other_answered(&mut self, after: Duration) {
        if self.quick.is_late(after) {
            self.throttle.others_waited_too_long();
        } else {
            self.throttle.others_did_not_wait();
        }
    }

    /// Says how long it took to write a decision.
    pub(super) fn wrote(&mut self, took: Duration) {
        self.quick.wrote(took);
    }

    /// Who has used most rests from now on, where others wait too long.
    pub(super) fn begin_rest(&mut self, now: Instant) {
        self.throttle.begin_rest(now);
    }

    pub(super) fn give_back(&mut self, job: Job) {
        let tenant = job.command.tenant;
        let line = self.of.entry(tenant).or_default();
        line.weight = i64::from(job.command.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT));
        line.credit += signed(cost(&job.command.body));
        line.in_turn = true;
        if line.jobs.is_empty() {
            self.turns.push_front(tenant);
        }
        line.jobs.push_front(job);
        self.waiting += 1;
    }

    /// Counts the time that a command took for its tenant; of a tenant of weight 2 half of it counts, and so on.
    pub(super) fn used(&mut self, command: &Command, took: Duration, now: Instant) {
        let weight = command.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT).max(1);
        self.throttle.used(command.tenant, took / weight, now);
    }

    /// Charges a tenant for this much more than its command was served for.
    pub(super) fn charge(&mut self, tenant: TenantId, more: usize) {
        if self.of.len() >= DEBTORS_MAX && !self.of.contains_key(&tenant) {
            self.of.retain(|_, line| !line.jobs.is_empty());
        }
        let line = self.of.entry(tenant).or_default();
        line.credit = line.credit.saturating_sub(signed(more)).max(-signed(DEBT_MAX));
        if line.jobs.is_empty() && line.credit >= 0 {
            self.of.remove(&tenant);
        }
    }

    /// Returns true if several tenants have put something in lately.
    pub(super) fn shared(&self, now: Instant) -> bool {
        self.throttle.shared(now)
    }
}
