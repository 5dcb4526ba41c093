//! A parsed scenario. All errors of its text have been reported by then.

use serde_json::{Map, Value};
use switchward_formats::document::Span;
use switchward_machine::{Micros, Time};
use switchward_state::approval::{Quorum, Reminders};
use switchward_state::catalogue::Settings;

use crate::play::gates::GateVerb;

/// A whole scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// As the caller named it.
    pub file: String,
    /// The definition under test.
    pub definition: Named,
    /// Further definitions in the same catalogue.
    pub also: Vec<Named>,
    /// Policy documents that are attached to its definitions.
    pub policies: Vec<Named>,
    /// Policy documents that hold for the tenant from the start.
    pub tenant_policies: Vec<Named>,
    /// The settings of its tenant.
    pub settings: Settings,
    /// How the first session begins, and what is expected then.
    pub start: Start,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

impl Scenario {
    /// All files that it names outside its steps.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Named> {
        let definitions = std::iter::once(&self.definition).chain(&self.also);
        definitions.chain(&self.policies).chain(&self.tenant_policies)
    }
}

/// A file that the scenario names, relative to its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// As written.
    pub path: String,
    /// Its position in the source.
    pub span: Span,
}

/// How a scenario begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Its position in the source.
    pub span: Span,
    /// The initial time of the clock.
    pub at: Time,
    /// What the first session is started with.
    pub session: StartAgain,
    /// What is expected then.
    pub expected: Expected,
}

/// A session that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAgain {
    /// The session's role, which the policy's must equal; may be empty.
    pub role: String,
    /// JSON, or empty.
    pub input: Vec<u8>,
    /// Definitions of further runs, which wait for the ones before them.
    pub queue: Vec<String>,
    /// The address of the conversation's contact.
    pub contact: Option<String>,
    /// The conversation's assistant, if it has one; its first message decides which workflows begin.
    pub assistant: Option<Assistant>,
    /// The message that the user opens the conversation with.
    pub message: Option<String>,
    /// The recipients of gates that name none.
    pub audience: Vec<String>,
    /// How the recipients of gates are reminded.
    pub reminders: Option<Reminders>,
    /// How many of a gate's recipients must approve.
    pub quorum: Option<Quorum>,
    /// The additional recipients if the first ones do not decide.
    pub escalation: Vec<String>,
}

/// An assistant that a scenario's conversations are held with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// Its instructions besides those of a state; may be empty.
    pub instructions: String,
    /// Its workflows; empty means all of the catalogue.
    pub workflows: Vec<String>,
}

/// A step, and what is expected after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// From 1.
    pub index: usize,
    /// Its position in the source.
    pub span: Span,
    /// The step's action.
    pub verb: Verb,
    /// What is expected then.
    pub expected: Expected,
}

/// The reply token of one entry of a node of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenOf {
    /// The run, from 1.
    pub run: u32,
    /// The number of the node entry in the run, from 1.
    pub entry: u32,
    /// True if the token is made with a wrong key.
    pub forged: bool,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// An answer to a checkpoint.
    Answer {
        /// The state that it is meant for.
        state: Option<String>,
        /// One of the answers that the checkpoint's definition lists.
        answer: String,
        /// A note beside it.
        note: String,
    },
    /// The user posts a message.
    Message(String),
    /// The agent's turn ends.
    Turn {
        /// What the agent said.
        text: String,
        /// The node of the run that it is about; `None`: of the only active one.
        node: Option<String>,
    },
    /// The agent records data.
    Record(Map<String, Value>),
    /// The agent signals completion.
    Signal,
    /// The agent asks for another attempt.
    Retry,
    /// The conversation switches to another workflow.
    Switch(String),
    /// An event comes from outside.
    Event {
        /// The key by which states listen to it.
        key: String,
        /// The JSON object that comes with it; may be empty.
        data: Map<String, Value>,
        /// The name of the only state that may take it; `None`: whichever listens.
        state: Option<String>,
        /// The reply token that it was sent with, if any.
        token: Option<TokenOf>,
    },
    /// A reply arrives by mail.
    Email {
        /// The sender.
        from: String,
        /// The text as it arrived.
        text: String,
        /// True if the sender is authenticated.
        authenticated: bool,
    },
    /// Authorizes a call of the agent.
    Authorize(Authorize),
    /// The agent sends a mail.
    SendEmail(switchward_state::delivery::Draft),
    /// A tool was called.
    Tool {
        /// Its capability.
        name: String,
        /// True if it succeeded.
        success: bool,
        /// What the call is reported to have cost, millionths of a US dollar.
        cost: Micros,
        /// The tokens used.
        tokens: u64,
        /// The node of the run that has called it; `None`: of the only active one.
        node: Option<String>,
    },
    /// A usage report.
    Usage {
        /// Money.
        cost: Micros,
        /// Tokens that models have used, as the call reports them.
        tokens: u64,
    },
    /// A worker finishes work.
    Work(Work),
    /// Somebody does something at a gate.
    Gate(GateVerb),
    /// Another session starts; what follows is about it.
    Start(StartAgain),
    /// The clock moves.
    Wait(Until),
    /// A new version is published.
    Publish(Named),
    /// The newest message to this address that is under way cannot be delivered.
    Undelivered(String),
    /// A cap is raised.
    Raise {
        /// Money.
        cost: Option<Micros>,
        /// The new cap on tokens, if it is raised.
        tokens: Option<u64>,
    },
    /// The session resumes.
    Resume {
        /// A comment.
        reason: String,
    },
    /// The session pauses.
    Pause {
        /// A comment.
        reason: String,
    },
    /// The session is cancelled.
    Cancel {
        /// A comment.
        reason: String,
    },
    /// A verb that only machines of other formats accept.
    Elsewhere(&'static str),
}

impl Verb {
    /// The verb's word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answer { .. } => "answer",
            Self::Message(_) => "message",
            Self::Turn { .. } => "turn",
            Self::Record(_) => "record",
            Self::Signal => "signal",
            Self::Retry => "retry",
            Self::Switch(_) => "switch",
            Self::Event { .. } => "event",
            Self::Email { .. } => "email",
            Self::Authorize(_) => "authorize",
            Self::SendEmail(_) => "send_email",
            Self::Tool { .. } => "tool",
            Self::Usage { .. } => "usage",
            Self::Work(_) => "work",
            Self::Gate(verb) => verb.word(),
            Self::Start(_) => "start",
            Self::Wait(_) => "wait",
            Self::Publish(_) => "publish",
            Self::Undelivered(_) => "undelivered",
            Self::Raise { .. } => "raise",
            Self::Resume { .. } => "resume",
            Self::Pause { .. } => "pause",
            Self::Cancel { .. } => "cancel",
            Self::Elsewhere(word) => word,
        }
    }
}

/// A call to be authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorize {
    /// A path such as `mcp:filesystem:write_file`.
    pub capability: String,
    /// JSON, or empty.
    pub args: Vec<u8>,
    /// The estimated cost.
    pub estimate: Option<Micros>,
    /// The node of the run that calls; `None`: of the only active one.
    pub node: Option<String>,
}

/// A worker finishes the oldest open work that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The node of the work.
    pub node: Option<String>,
    /// The word of the kind of work; `None`: any.
    pub kind: Option<&'static str>,
    /// How many workers take it first, one after the other, and do not come back: their leases lapse.
    pub lost: u64,
    /// True if a worker takes it then. False if only `lost` is given.
    pub ends: bool,
    /// The result, or the error.
    pub came: Result<Value, String>,
    /// The transition that the worker names beside the result.
    pub next: Option<String>,
    /// What the work is reported to have cost, millionths of a US dollar.
    pub cost: Micros,
    /// The tokens used.
    pub tokens: u64,
}

/// How far the clock moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// By this many milliseconds.
    Later(u64),
    /// To this time, which must not be in the past.
    At(Time),
}

/// What is expected after a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expected {
    /// The reason code of the refusal, or `any`.
    pub refusal: Option<(String, Span)>,
    /// In the author's order.
    pub expectations: Vec<Expectation>,
}

/// A comparison of one value that the scenario observes.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The value that it is about.
    pub wanted: Wanted,
    /// The expected value.
    pub value: Value,
    /// Its position in the source.
    pub span: Span,
}

macro_rules! wanted {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The kinds of value that an expectation can be about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Wanted { $($(#[$doc])* $name,)* }

        impl Wanted {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            /// Their keys, in the same order.
            pub(crate) const WORDS: &[&'static str] = &[$($word,)*];

            /// Its key in `expect`.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

wanted! {
    /// The session's status.
    Status = "status",
    /// The active nodes of the root run.
    At = "at",
    /// The run's data.
    Context = "context",
    /// The decision about the last call.
    Decision = "decision",
    /// The reason of that decision, or of the status.
    Reason = "reason",
    /// The rule that decided the last call.
    Rule = "rule",
    /// What is left after the last call.
    Left = "left",
    /// When a denied call or a refused approval may have capacity again.
    RetryAfter = "retry_after_seconds",
    /// The open items.
    Open = "open",
    /// The effects of this step.
    Effects = "effects",
    /// The events of this step.
    Events = "events",
    /// Events that this step did not record.
    Without = "without",
    /// The warnings of this step.
    Log = "log",
    /// The session's runs.
    Runs = "runs",
    /// The version that the run is pinned to.
    Version = "version",
    /// The text that the agent is shown.
    Shows = "shows",
}
