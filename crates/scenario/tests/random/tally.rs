//! Counts of the workflows in which each case was seen. A workflow counts once, however often the case occurs in it: one
//! that runs in a cycle to its limit has a thousand of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Each of these must occur in at least this many workflows.
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

/// The cases that were seen in one workflow.
#[derive(Default)]
pub(crate) struct Seen {
    cases: BTreeMap<String, u64>,
    kinds: BTreeSet<String>,
}

impl Seen {
    pub(crate) fn add(&mut self, what: String) {
        *self.cases.entry(what).or_default() += 1;
    }

    /// Adds kinds of events.
    pub(crate) fn add_kinds(&mut self, kinds: BTreeSet<String>) {
        self.kinds.extend(kinds);
    }
}

/// How often a case was seen.
#[derive(Default)]
struct Count {
    workflows: u64,
    times: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Tally {
    counts: BTreeMap<String, Count>,
    kinds: BTreeSet<String>,
}

impl Tally {
    /// Adds one workflow.
    pub(crate) fn add(&mut self, seen: Seen) {
        for (what, times) in seen.cases {
            let count = self.counts.entry(what).or_default();
            count.workflows += 1;
            count.times += times;
        }
        self.kinds.extend(seen.kinds);
    }

    /// The kinds of all events.
    pub(crate) fn kinds(&self) -> &BTreeSet<String> {
        &self.kinds
    }

    /// What must occur often and did not.
    pub(crate) fn rare(&self) -> Vec<String> {
        let count = |what: &&str| self.counts.get(*what).map_or(0, |count| count.workflows);
        let rare = WANTED.iter().filter(|what| count(what) < OFTEN);
        rare.map(|what| format!("{what}: {}", count(what))).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |(what, Count { workflows, times }): (&String, &Count)| {
            writeln!(f, "{workflows:>8}  {what} ({times} times)")
        };
        self.counts.iter().try_for_each(&mut line)
    }
}
