//! What `switchward demo cluster` narrates, as far as `switchward demo` has no text for it.

/// The title of the demo.
pub const TITLE: &str = "Switchward demo: an approval by mail while leaders are killed";
/// Below the title.
pub const INTRODUCTION: [&str; 2] = [
    "The servers are three processes of this program, each with an empty folder, and without Redis.",
    "An agent and a person call any of them. A step is acknowledged when two of them have it on disk.",
];

/// The heading of the act in which the servers start.
pub const ACT_FORM: &str = "Three servers form a cluster";
/// The first server is a cluster by itself.
pub const STARTS: &str = "starts";
/// Any other server becomes a member of the cluster.
pub const STARTS_AND_JOINS: &str = "starts and joins";
/// What the cluster does from then on.
pub const NEEDS_TWO_SERVERS: &str = "needs two servers for each step";
/// The outcome of the start.
pub const ALL_VOTE: &str = "all three vote";

/// The heading of the act in which a session starts.
pub const ACT_START: &str = "A session starts at one server, and another one leads it";
/// What the person does with the definition.
pub const DEPLOYS: &str = "deploys deploy-gate.json, server 1";
/// The server that decides what the session's steps are.
pub const LEADS_SESSION: &str = "leads the session";
/// What the servers do that do not lead.
pub const OTHERS_FOLLOW: &str = "the two others follow";
/// At the end of the act in which a session starts.
pub const WHY_ANY_SERVER: [&str; 1] =
    ["Any server answers any call, and passes it on to the leader if it must."];

/// The heading of the act in which a mail asks for an approval.
pub const ACT_ASK: &str = "A call waits for an approval by mail";
/// What the server does that has sent the mail.
pub const RECORDS_DELIVERY: &str = "records the delivery";
/// Where the delivery of the mail is recorded.
pub const ON_TWO_SERVERS: &str = "on two servers or more";

/// The heading of the act in which the first server is killed.
pub const ACT_KILL: &str = "The leader is killed";
/// What happens to the leader.
pub const GETS_KILLED: &str = "gets SIGKILL";
/// When the leader was killed.
pub const KILLED_AS_LEADER: &str = "killed while it leads";
/// A follower becomes the leader.
pub const LEADS_NOW: &str = "leads now";
/// How a follower became the leader.
pub const ELECTED: &str = "elected by the servers that are left";
/// The person reads the gate at a server that is left.
pub const LOOKS_AT_REQUEST: &str = "looks at the request";
/// The person searches the mailboxes of the servers that are left.
pub const LOOKS_FOR_MAIL: &str = "looks for the mail";
/// No mailbox has the mail a second time.
pub const SENT_ONCE: &str = "sent once; no other server sent it again";
/// At the end of the act in which the first server is killed.
pub const WHY_NO_LOSS: [&str; 2] = [
    "The followers have every acknowledged step, also that the mail was delivered. They elect one of",
    "them, which goes on from there. The agent repeats a call under its request id, so it counts once.",
];

/// The heading of the act in which the second server is killed.
pub const ACT_SECOND_KILL: &str = "It comes back, and the next leader is killed";

/// The heading of the act in which the person replies.
pub const ACT_REPLY: &str = "The person replies to the mail at the server that came back";

/// The heading of the act with the answers.
pub const ACT_FINISH: &str = "The session ends, with an answer at each server";

/// The heading of the act in which the histories are compared.
pub const ACT_COMPARE: &str = "Every server has the same history";
/// A server shows its history.
pub const SHOWS_HISTORY: &str = "is asked for the history";
/// The person searches the mailboxes of all servers.
pub const COUNTS_MAILS: &str = "counts the mails of all servers";
/// The agent searches the history for what servers have acknowledged.
pub const LOOKS_FOR_STEPS: &str = "looks for its acknowledged steps";

/// Before the last line.
pub const ALL_STOPPED: &str = "All servers have stopped, and their folder is deleted.";

/// A server, as the actor of a line.
#[must_use]
pub fn server(number: u64) -> String {
    format!("server {number}")
}

/// The outcome of the deployment.
#[must_use]
pub fn version_active(version: u32) -> String {
    format!("version {version} is active on all servers")
}

/// The agent starts a session.
#[must_use]
pub fn starts_session(server: u64) -> String {
    format!("starts a session at server {server}")
}

/// The agent makes a call that needs approval.
#[must_use]
pub fn asks_to_write(server: u64) -> String {
    format!("asks to write a file at server {server}")
}

/// A mail of a server arrives.
#[must_use]
pub fn gets_mail(server: u64) -> String {
    format!("gets a mail from server {server}")
}

/// The agent makes calls until one is allowed.
#[must_use]
pub fn calls_bash(server: u64) -> String {
    format!("calls bash at server {server}")
}

/// The outcome of calls after the leader was killed: how many seconds passed until one was allowed.
#[must_use]
pub fn allowed_after(seconds: f64) -> String {
    format!("allowed; no write was accepted for {seconds:.1} s")
}

/// The person replies to the mail in the mailbox of a server.
#[must_use]
pub fn replies(server: u64) -> String {
    format!("replies at server {server}")
}

/// The outcome of the reply, with its words.
#[must_use]
pub fn reply_decides(words: &str) -> String {
    format!("\"{words}\" decides the gate")
}

/// The agent makes the call that was approved.
#[must_use]
pub fn makes_call(server: u64) -> String {
    format!("makes the call at server {server}")
}

/// The agent answers a question.
#[must_use]
pub fn answers(answer: &str, server: u64) -> String {
    format!("answers \"{answer}\" at server {server}")
}

/// A server has the history of the others: the count of its events with a noun.
#[must_use]
pub fn same_history(events: &str) -> String {
    format!("{events}, the same")
}

/// The mailboxes have no mail twice: the count of all mails with a noun.
#[must_use]
pub fn mails_sent_once(mails: &str) -> String {
    format!("{mails}, each sent once")
}

/// The history has every step that was acknowledged.
#[must_use]
pub fn steps_recorded_once(steps: usize) -> String {
    format!("{steps} of {steps}, each recorded once")
}
