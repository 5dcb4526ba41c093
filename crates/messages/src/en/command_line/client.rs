//! What the commands that call a server say of its answers, in cards, tables and notes.

use std::fmt::Display;

/// Replaces a secret that an earlier response has shown.
pub const SECRET_SHOWN_BEFORE: &str = "was shown at the creation, and is not stored";
/// Below a secret.
pub const SECRET_SHOWN_ONCE: &str = "shown only once: store it now";

/// The status of a version of a policy.
pub const POLICY_ACTIVE: &str = "active: applies from now on to what it is attached to";
/// The status of a version of a definition.
pub const VERSION_ACTIVE: &str = "active: new sessions start with it";
/// The status of a version that was retired.
pub const VERSION_RETIRED: &str = "retired: no session starts with it";
/// The status of a version that is neither active nor retired.
pub const VERSION_INACTIVE: &str = "not active";

/// What an agent does with a call once it is approved.
pub const REPEAT_CALL: &str = "repeat the same call after the approval";
/// What an agent does with a mail once it is approved.
pub const REPEAT_MAIL: &str = "send the same mail again after the approval";
/// An explanation of a call: a person has approved it, and it was not made yet.
pub const UNUSED_APPROVAL: &str = "yes: an unused approval of this call";

/// The status of an effect that has arrived before it was sent again.
pub const NOTHING_TO_SEND: &str = "nothing left to send";
/// A policy does not apply to the tenant any more.
pub const DETACHED: &str = "detached from the tenant";
/// A mail in quarantine that belongs to no tenant.
pub const MAIL_WITHOUT_TENANT: &str = "true: the mail names no tenant";

/// Instead of an empty table of messages that an endpoint has missed.
pub const NO_MISSED_MESSAGES: &str = "no missed messages";
/// Instead of an empty table of gates.
pub const NO_OPEN_GATES: &str = "no open gates";
/// Instead of an empty table of effects.
pub const NO_UNDELIVERED_EFFECTS: &str = "no undelivered effects";
/// Instead of an empty table of quarantined mail.
pub const NO_QUARANTINED_MAIL: &str = "no quarantined mail";
/// Instead of an empty table of retention rules.
pub const NO_RETENTION_RULES: &str = "no rules: everything is kept";

/// The rule of a decision by default.
pub const NO_RULE: &str = "no rule matches";
/// Who has set a default effect: the definition's format.
pub const SET_BY_FORMAT: &str = "set by the format";
/// Where a default effect is set: in the configuration file of the server.
pub const SET_IN_CONFIGURATION: &str = "set in the server's configuration";
/// Where a default effect is set: in the tenant's settings.
pub const SET_IN_TENANT: &str = "set in the tenant";
/// Where a default effect is set: in a policy.
pub const SET_IN_POLICY: &str = "set in the policy";
/// The default effect of a tenant that has set none.
pub const NO_DEFAULT_EFFECT: &str = "not set (from the server's configuration, else allow)";

/// A session whose agent has another role than its policy is for.
pub const WITHOUT_POLICY: &str = "without its policy: the role differs";
/// The definition of a conversation that has not chosen one.
pub const NO_DEFINITION_YET: &str = "not determined yet";

/// What an answer to a checkpoint does: it ends the session as completed.
pub const COMPLETES_SESSION: &str = "completes the session";
/// What an answer to a checkpoint does: it ends the session as blocked.
pub const BLOCKS_SESSION: &str = "blocks the session";
/// What an answer to a checkpoint does: the history gets a warning.
pub const CONTINUES_WITH_WARNING: &str = "continues with a warning";
/// What an answer to a checkpoint does: it opens a gate.
pub const WAITS_FOR_PERSON: &str = "waits for a person";

/// Where a setting of approvals comes from: the directory's entry of the definition.
pub const FROM_DEFINITION_ENTRY: &str = "directory, definition entry";
/// Where a setting of approvals comes from: the directory's entry of the definition's owner.
pub const FROM_OWNER_ENTRY: &str = "directory, owner entry";
/// Where a setting of approvals comes from: the directory itself.
pub const FROM_DEFAULT_AUDIENCE: &str = "directory, default audience";

/// The warning after an error in the middle of a deployment: the definitions that were deployed, and the rest.
#[must_use]
pub fn deployed_partly(done: &[String], left: &[String]) -> String {
    let done = if done.is_empty() { "nothing".to_owned() } else { done.join(", ") };
    format!("deployed before the error: {done}; not deployed: {}", left.join(", "))
}

/// How many differences two versions have, and how many of them weaken a control.
#[must_use]
pub fn differences(all: u32, weaker: u32) -> String {
    match (all, weaker) {
        (0, _) => "no differences".to_owned(),
        (1, 0) => "1 difference; no control is weaker".to_owned(),
        (1, _) => "1 difference, which weakens a control".to_owned(),
        (all, 0) => format!("{all} differences; no control is weaker"),
        (all, 1) => format!("{all} differences, 1 of which weakens a control"),
        (all, weaker) => format!("{all} differences, {weaker} of which weaken a control"),
    }
}

/// The warning that the clocks of a development cluster differ, because that of one server was advanced.
#[must_use]
pub fn one_clock_advanced(server: u64) -> String {
    format!(
        "only the clock of server {server} was advanced; `switchward dev advance 1s` moves those of all servers to a \
         second after it"
    )
}

/// A group of a cluster is choosing its leader.
#[must_use]
pub fn group_without_leader(group: u64) -> String {
    format!("group {group} has no leader now")
}

/// A server that is drained leads groups, which are given by their numbers.
#[must_use]
pub fn server_leads(server: u64, groups: &[String]) -> String {
    format!("server {server} still leads: {}", groups.join(", "))
}

/// A server that is removed votes in groups, which are given by their numbers.
#[must_use]
pub fn server_votes(server: u64, groups: &[String]) -> String {
    if groups.is_empty() {
        format!("server {server} votes nowhere and will be removed")
    } else {
        format!("server {server} still votes in: {}", groups.join(", "))
    }
}

/// How an export begins again: the file and its resume file are deleted.
#[must_use]
pub fn to_start_again(file: &impl Display, resume: &impl Display) -> String {
    format!("to start again, delete {file} and {resume}")
}

/// After the name of an endpoint that exists as long as its command: where it listens.
#[must_use]
pub fn receives_events(url: &str) -> String {
    format!("receives events at {url}; ctrl-c stops it")
}
