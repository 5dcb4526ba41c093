//! The keys under which the engine writes what happened, if a machine reserves them: see
//! [`Machine::reserved_keys`](crate::Machine::reserved_keys). No agent, worker, event, start or definition can write to a
//! reserved key, so that no approval and no answer can be made up.

pub use switchward_schema::NEXT_NODE;

/// `approval.<state>`: what the people of an approval were shown; once somebody has refused, also who did, and why.
pub const APPROVAL: &str = "approval";
/// `approval.<state>.shown`: the values that the request showed, as they were when it was opened, each at the path at
/// which the data have it: `approval.<state>.shown.KEY`.
pub const SHOWN: &str = "shown";
/// `approval.<state>.digest`: the digest of the request and its values, to which a decision is bound.
pub const DIGEST: &str = "digest";
/// The key of the last event that came.
pub const EVENT_KEY: &str = "event_key";
/// What lets somebody outside send events to the state; it is read like data, and stored nowhere.
pub const REPLY_TOKEN: &str = "reply_token";
/// `tasks.<state>`: who took part, and what each of them answered.
pub const TASKS: &str = "tasks";
/// `wait.<state>`: what ended the wait.
pub const WAIT: &str = "wait";
/// With what names begin that are the engine's in every machine whose nodes list what they write: no data have such a key.
pub const HIDDEN_PREFIX: char = '_';
