//! Counts of what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Each of these must occur at least this often.
const OFTEN: u64 = 100;
const WANTED: &[&str] = &[
    "state conversation",
    "state action",
    "state logic",
    "state output",
    "state wait",
    "state deterministic",
    "state parse",
    "guard always",
    "guard all_required_answered",
    "guard tool_called",
    "guard data_contains",
    "guard data_equals",
    "guard data_greater_than",
    "guard data_less_than",
    "guard data_in_list",
    "guard user_confirmed",
    "guard composite",
    "guard external_event",
    "guard llm_judge",
    "operation set_data",
    "operation transform",
    "operation send_notification",
    "operation conditional_branch",
    "operation wait",
    "operation loop",
    "operation http_request",
    "reducer overwrite",
    "reducer append",
    "reducer unique_append",
    "reducer merge_dict",
    "reducer increment",
    "port done",
    "port received",
    "port timeout of wait",
    "port timeout of approval",
    "port complete",
    "port incomplete",
    "port error",
    "port branch",
    "event pass.failed",
    "event state.retried",
    "event effect.queued",
    "event session.completed",
    "event session.failed",
    "event timer.set",
    "event wait.opened",
    "event work.opened",
    "event data.recorded",
    "event event.recorded",
    "event work.leased",
    "event work.released",
    "event work.done",
    "event guard.judged",
    "state approval",
    "state reply",
    "state intent",
    "event run.activated",
    "port approved",
    "port rejected",
    "port discussion",
    "port keen",
    "port gone",
    "exit held",
    "exit whose guards were looked at again",
    "event approval.requested",
    "event approval.decided",
    "event approval.discussed",
    "event approval.escalated",
    "event approval.timed_out",
    "event reply.recorded",
    "event reply.answered",
    "state task",
    "state delegate",
    "guard all_tasks_complete",
    "event task.created",
    "event task.completed",
    "state subworkflow",
    "event run.started",
    "event run.ended",
    "event run.activated",
    "child completed",
    "child failed",
    "child abandoned",
    "grandchild",
];

/// See the module.
#[derive(Default)]
pub(crate) struct Tally {
    counts: BTreeMap<String, u64>,
    kinds: BTreeSet<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Adds the kinds of the events of a run.
    pub(crate) fn add_kinds(&mut self, kinds: BTreeSet<String>) {
        self.kinds.extend(kinds);
    }

    /// The kinds of all events.
    pub(crate) fn kinds(&self) -> &BTreeSet<String> {
        &self.kinds
    }

    /// What must occur often and did not.
    pub(crate) fn rare(&self) -> Vec<String> {
        let count = |what: &&str| self.counts.get(*what).copied().unwrap_or(0);
        let rare = WANTED.iter().filter(|what| count(what) < OFTEN);
        rare.map(|what| format!("{what}: {}", count(what))).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(what, count)| writeln!(f, "{count:>8}  {what}"))
    }
}
