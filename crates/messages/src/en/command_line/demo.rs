//! What `switchward demo` narrates: a heading for each act, then lines with an actor, an action and its outcome.
//!
//! A text of several strings is printed on that many lines.

/// The title of the demo.
pub const TITLE: &str = "Switchward demo: an agent at a deploy gate";
/// Below the title.
pub const INTRODUCTION: [&str; 2] = [
    "The server is this program, started as a separate process on an empty folder, with a manual clock.",
    "An agent and a person call its public API, each with their own key.",
];

/// The heading of the act in which a definition is deployed.
pub const ACT_DEPLOY: &str = "A person deploys the process";
/// What the person does with the definition.
pub const DEPLOYS: &str = "deploys deploy-gate.json";
/// At the end of the act in which a definition is deployed.
pub const WHY_VERSIONS: [&str; 1] =
    ["A process is one short file. A session keeps the version that it started with."];

/// The heading of the act in which a session starts.
pub const ACT_START: &str = "The agent starts a session and gets the first question";
/// What the agent does to begin.
pub const STARTS_SESSION: &str = "starts deploy-gate as release-42";

/// The heading of the act with a limit of calls.
pub const ACT_LIMIT: &str = "Each tool call is decided before it is made: bash, 50 times an hour";
/// The agent makes one call of bash.
pub const CALLS_BASH: &str = "calls bash";
/// The agent makes all calls of bash that are left.
pub const CALLS_BASH_MORE: &str = "calls bash 49 more times";
/// The agent makes the first call of bash that is denied.
pub const CALLS_BASH_TOO_OFTEN: &str = "calls bash for the 51st time";
/// What the person does so that the limit begins again.
pub const ADVANCES_CLOCK: &str = "advances the clock";
/// How far the person advances the clock.
pub const BY_ONE_HOUR: &str = "by one hour";
/// At the end of the act with a limit of calls.
pub const WHY_DENIED: [&str; 1] =
    ["A denial is an answer, not an error: the agent gets the reason, and the history records it."];

/// The heading of the act in which a call opens a gate.
pub const ACT_ASK: &str = "A call that needs approval waits for a person";
/// The agent makes a call that needs approval.
pub const ASKS_TO_DELETE: &str = "asks to delete a file";
/// The outcome of a call that needs approval.
pub const PERSON_IS_ASKED: &str = "a person is asked; the agent waits";
/// What the agent may not do.
pub const APPROVES_OWN_CALL: &str = "tries to approve its own call";
/// At the end of the act in which a call opens a gate.
pub const WHY_REFUSED: [&str; 1] =
    ["An agent's key can ask but never approve, whatever the agent's instructions are."];

/// The heading of the act in which the server is killed.
pub const ACT_KILL: &str = "The server is killed during a call";
/// What happens to the server.
pub const GETS_KILLED: &str = "gets SIGKILL during a bash call";
/// The server ended after the call had got its response.
pub const KILLED_AFTER_RESPONSE: &str = "killed right after its response";
/// The server ended before the call had got its response.
pub const KILLED_BEFORE_RESPONSE: &str = "killed before its response";
/// A server that was killed starts again.
pub const RESTARTS: &str = "restarts on the same folder";
/// The agent sends the call again that had no response, or might have had none.
pub const REPEATS_CALL: &str = "repeats that call";
/// The outcome of the call that was sent again.
pub const ALLOWED: &str = "allowed";
/// The person looks whether the gate has survived.
pub const CHECKS_GATE: &str = "checks the gate";
/// The gate has survived.
pub const STILL_OPEN: &str = "still open";
/// At the end of the act in which the server is killed.
pub const WHY_DURABLE: [&str; 2] = [
    "The server writes to disk before it responds. The repeated call has the request id of the first",
    "one, so that both count once, whether or not the first one was recorded.",
];

/// The heading of the act in which a person approves.
pub const ACT_APPROVE: &str = "A person approves exactly this call, once";
/// What the person does at the gate.
pub const APPROVES: &str = "reads the arguments and approves";
/// The outcome of the person's approval.
pub const APPROVED: &str = "the gate is decided: approved";
/// The agent makes the call that was approved.
pub const MAKES_SAME_CALL: &str = "makes the same call";
/// The outcome of the call that was approved.
pub const APPROVAL_USED: &str = "allowed; the approval is used";
/// The agent makes the call that was approved once more.
pub const MAKES_CALL_AGAIN: &str = "makes it again";
/// At the end of the act in which a person approves.
pub const WHY_EXACT: [&str; 1] =
    ["The approval is bound to the arguments: a call with one changed byte would need another approval."];

/// The heading of the act with the mail.
pub const ACT_MAIL: &str = "The person can also reply to a mail";
/// The agent makes the call that a mail is about.
pub const ASKS_TO_WRITE: &str = "asks to write a file";
/// The mail arrives.
pub const GETS_MAIL: &str = "gets a mail";
/// A program in front of the mailbox reads the mail first.
pub const OPENS_LINK: &str = "opens the link in it";
/// The outcome of a link that was opened.
pub const NO_CHANGE: &str = "nothing changes";
/// A reply that the person's mail program writes by itself.
pub const AUTOMATIC_REPLY: &str = "I am out of office until Monday. Approved requests wait.";
/// The person's mail program replies.
pub const REPLIES_AUTOMATICALLY: &str = "has an out-of-office reply";
/// The outcome of the reply of a program.
pub const AUTOMATIC_IGNORED: &str = "ignored: it is automatic";
/// A reply of the person that decides nothing.
pub const DOUBT: &str = "looks risky?";
/// The outcome of a reply that decides nothing.
pub const COMMENT_RECORDED: &str = "recorded as a comment; still open";
/// The reply of the person that decides.
pub const APPROVAL: &str = "Approved, thanks!";
/// In the mail that acknowledges the reply.
pub const DECISION_RECORDED: &str = "Your decision is recorded: approve.";
/// The mail that acknowledges the reply arrives.
pub const GETS_ACKNOWLEDGEMENT: &str = "gets an acknowledgement";
/// What the mail is that acknowledges the reply.
pub const CONFIRMATION: &str = "a confirmation in the same thread";
/// The agent makes the call that was approved by mail.
pub const MAKES_CALL: &str = "makes the call";
/// At the end of the act with the mail.
pub const WHY_SAFE: [&str; 2] = [
    "The reply address is valid only for this gate, this round and this person, and the sender must be",
    "verified. Links only open a page, and automatic mail is recognised and ignored.",
];

/// The heading of the act in which an endpoint is created.
pub const ACT_ENDPOINT: &str = "A pipeline registers an endpoint for events";
/// What the pipeline does to get events.
pub const SUBSCRIBES: &str = "subscribes to session.*";
/// The outcome of a new endpoint.
pub const GETS_SECRET: &str = "gets a secret, shown once";
/// The first message arrives.
pub const RECEIVES_PING: &str = "receives a ping";
/// The pipeline has verified a message with its secret.
pub const SIGNATURE_VALID: &str = "the signature is valid";

/// The heading of the act with the answers.
pub const ACT_ANSWER: &str = "A question accepts only its answers";

/// The heading of the act in which events arrive.
pub const ACT_WEBHOOKS: &str = "The pipeline receives the events as signed webhooks";
/// At the end of the act in which events arrive.
pub const WHY_RELIABLE: [&str; 2] = [
    "Each message is queued in the same log entry as its event, signed according to Standard Webhooks,",
    "and sent until it is accepted, with one id for all attempts.",
];

/// The heading above the history.
pub const ACT_HISTORY: &str = "The history that the server recorded";

/// The first word of the last line.
pub const DONE: &str = "Done.";
/// In the last line, before the command that a person may run next.
pub const TRY: &str = "Try it yourself with";

/// The outcome of the deployment; the size is given with its noun.
#[must_use]
pub fn version_stored(version: u32, size: &str) -> String {
    format!("version {version} is active; {size}, stored unchanged")
}

/// The outcome of a call of bash: the calls left in this hour.
#[must_use]
pub fn calls_left(left: u64) -> String {
    format!("allowed, {left} left")
}

/// The outcome of a call beyond the limit.
#[must_use]
pub fn denied(reason: &str, wait: &str) -> String {
    format!("denied: {reason}, retry in {wait}")
}

/// The outcome of what the agent may not do.
#[must_use]
pub fn refused(reason: &str) -> String {
    format!("refused: {reason}")
}

/// The outcome of an answer that the question does not have.
#[must_use]
pub fn answer_refused(reason: &str, allowed: &[String]) -> String {
    format!("refused: {reason}; allowed: {}", allowed.join(", "))
}

/// The agent answers a question.
#[must_use]
pub fn answers(answer: &str) -> String {
    format!("answers \"{answer}\"")
}

/// The person replies to the mail with these words.
#[must_use]
pub fn replies(words: &str) -> String {
    format!("replies \"{words}\"")
}

/// A server has started again, after this number of seconds.
#[must_use]
pub fn ready_after(seconds: f64) -> String {
    format!("ready after {seconds:.1} s")
}

/// Where a session is that has not ended.
#[must_use]
pub fn at_states(states: &[String]) -> String {
    format!("at {}", states.join(", "))
}

/// Events of a type have arrived more than once.
#[must_use]
pub fn several_times(kind: &str, count: u64) -> String {
    format!("{kind}, {count} times")
}

/// After a line of the history that stands for several events.
#[must_use]
pub fn times(count: usize) -> String {
    format!("({count} times)")
}
