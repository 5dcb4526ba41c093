//! A scenario as it was read. Everything that can be wrong with its text has been told by then.

use serde_json::{Map, Value};
use switchward_engine::{Quorum, Reminders, Settings};
use switchward_formats::document::Span;
use switchward_machine::{Decision, GateKind, Micros, Time};

/// A whole scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// As the caller named it.
    pub file: String,
    /// The definition that it is about.
    pub definition: Named,
    /// Further definitions in the same catalogue.
    pub also: Vec<Named>,
    /// Policy documents that are attached to its definitions.
    pub policies: Vec<Named>,
    /// Policy documents that hold for the tenant from the start.
    pub tenant_policies: Vec<Named>,
    /// The switches of the tenant that it is played in.
    pub settings: Settings,
    /// How it begins.
    pub start: Start,
    /// What happens then, in order.
    pub steps: Vec<Step>,
}

impl Scenario {
    /// All files that it names beside its steps.
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
    /// Where.
    pub span: Span,
}

/// How a scenario begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Where it is written.
    pub span: Span,
    /// The clock's first time.
    pub at: Time,
    /// The session.
    pub session: StartAgain,
    /// What must be seen then.
    pub expected: Expected,
}

/// A session that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAgain {
    /// Its role.
    pub role: String,
    /// JSON, or empty.
    pub input: Vec<u8>,
    /// Definitions of further runs, which wait for the ones before them.
    pub queue: Vec<String>,
    /// The address of whom the conversation is with.
    pub contact: Option<String>,
    /// The assistant that it is with, where it is with one; its first message tells which workflows begin.
    pub assistant: Option<Assistant>,
    /// What the user opens the conversation with.
    pub message: Option<String>,
    /// Who is told of gates that address nobody.
    pub audience: Vec<String>,
    /// How those who are asked are reminded.
    pub reminders: Option<Reminders>,
    /// How many of those whom a gate asks must approve.
    pub quorum: Option<Quorum>,
    /// Who is asked, too, where those who were asked do not decide.
    pub escalation: Vec<String>,
}

/// An assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// What it is told beside what a state says; may be empty.
    pub instructions: String,
    /// Its workflows; none: all of the catalogue.
    pub workflows: Vec<String>,
}

/// One thing that happens, and what must be seen then.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// From 1.
    pub index: usize,
    /// Where it is written.
    pub span: Span,
    /// What happens.
    pub verb: Verb,
    /// What must be seen then.
    pub expected: Expected,
}

/// The reply token of one entry of a node of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenOf {
    /// The run, from 1.
    pub run: u32,
    /// Which of the nodes that the run has entered, from 1.
    pub entry: u32,
    /// Whether somebody made it up who has no key for that.
    pub forged: bool,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// An answer to a checkpoint.
    Answer {
        /// The state that it is meant for.
        state: Option<String>,
        /// The answer.
        answer: String,
        /// Words beside it.
        note: String,
    },
    /// The user says something.
    Message(String),
    /// The agent's turn is over.
    Turn {
        /// What the agent said.
        text: String,
    },
    /// The agent records data.
    Record(Map<String, Value>),
    /// The agent says that its work here is done.
    Signal,
    /// The agent asks for another attempt.
    Retry,
    /// The conversation turns to another workflow.
    Switch(String),
    /// An event comes from outside.
    Event {
        /// Its key.
        key: String,
        /// What it brings.
        data: Map<String, Value>,
        /// The state that it is for.
        state: Option<String>,
        /// What it was sent with, where that is a reply token.
        token: Option<TokenOf>,
    },
    /// A reply comes by mail.
    Email {
        /// Who wrote it.
        from: String,
        /// What, as it came.
        text: String,
        /// Whether the sender is proved.
        authenticated: bool,
    },
    /// May the agent call this?
    Authorize(Authorize),
    /// The agent sends a mail.
    SendEmail(switchward_engine::Draft),
    /// A tool was called.
    Tool {
        /// Its capability.
        name: String,
        /// Whether it worked.
        success: bool,
        /// What it cost.
        cost: Micros,
        /// What it used.
        tokens: u64,
    },
    /// A usage report.
    Usage {
        /// Money.
        cost: Micros,
        /// Tokens.
        tokens: u64,
    },
    /// A worker finishes work.
    Work(Work),
    /// A person decides.
    Decide(Decide),
    /// A person fills in what was asked for.
    Form(Form),
    /// Another session starts; what follows is about it.
    Start(StartAgain),
    /// The clock moves.
    Wait(Until),
    /// A new version is published.
    Publish(Named),
    /// The newest message to this address that is on its way cannot be delivered.
    Undelivered(String),
    /// A cap is set anew.
    Raise {
        /// Money.
        cost: Option<Micros>,
        /// Tokens.
        tokens: Option<u64>,
    },
    /// Go on.
    Resume {
        /// Words beside it.
        reason: String,
    },
    /// Stop in place.
    Pause {
        /// Words beside it.
        reason: String,
    },
    /// Stop for good.
    Cancel {
        /// Words beside it.
        reason: String,
    },
    /// A move that only machines of formats take that this build does not run.
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
            Self::Decide(_) => "decide",
            Self::Form(_) => "form",
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

/// May the agent call this?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorize {
    /// A path such as `mcp:filesystem:write_file`.
    pub capability: String,
    /// JSON, or empty.
    pub args: Vec<u8>,
    /// What it is believed to cost.
    pub estimate: Option<Micros>,
}

/// A worker finishes the oldest open work that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The node of the work.
    pub node: Option<String>,
    /// Its kind.
    pub kind: Option<&'static str>,
    /// How many workers take it first, one after the other, of whom none comes back: their leases lapse.
    pub lost: u64,
    /// Whether anybody takes it then. Nobody does where only `lost` is said.
    pub ends: bool,
    /// The result, or why there is none.
    pub came: Result<Value, String>,
    /// What it cost.
    pub cost: Micros,
    /// What it used.
    pub tokens: u64,
}

/// A person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decide {
    /// The node of the gate.
    pub node: Option<String>,
    /// The kind of the gate.
    pub kind: Option<Kind>,
    /// What is decided.
    pub decision: Said,
    /// By whom.
    pub by: String,
    /// Words beside it.
    pub comment: String,
}

/// A person fills in what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The node of the gate.
    pub node: Option<String>,
    /// What is filled in.
    pub values: Value,
    /// By whom.
    pub by: String,
}

/// The kinds of gate that a scenario can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A kind that this build opens.
    Known(GateKind),
    /// A kind of another format; no gate here is of it.
    Elsewhere,
}

/// What a person says at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// One of the two decisions.
    Decided(Decision),
    /// Neither: it is talked about, and the gate stays open.
    Discuss,
}

/// How far the clock moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// By this many milliseconds.
    Later(u64),
    /// To this time.
    At(Time),
}

/// What must be seen after a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expected {
    /// The reason code of the refusal, or `any`.
    pub refusal: Option<(String, Span)>,
    /// In the author's order.
    pub expectations: Vec<Expectation>,
}

/// One thing that must be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// What is looked at.
    pub wanted: Wanted,
    /// What must be there.
    pub value: Value,
    /// Where it is written.
    pub span: Span,
}

macro_rules! wanted {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What an expectation looks at.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Wanted { $($(#[$doc])* $name,)* }

        impl Wanted {
            /// All of them.
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
    /// What was decided of the last call.
    Decision = "decision",
    /// Why, or why the status is what it is.
    Reason = "reason",
    /// The rule that decided the last call.
    Rule = "rule",
    /// What is left after the last call.
    Left = "left",
    /// When a call that was denied, or an approval that was refused, may have room again.
    RetryAfter = "retry_after_seconds",
    /// What is open.
    Open = "open",
    /// What this step sent.
    Effects = "effects",
    /// What this step recorded.
    Events = "events",
    /// What this step did not record.
    Without = "without",
    /// What this step warned of.
    Log = "log",
    /// The session's runs.
    Runs = "runs",
    /// The version that the run is pinned to.
    Version = "version",
    /// What the agent is shown.
    Shows = "shows",
}
