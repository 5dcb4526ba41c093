//! What the command line proposes after a server has refused a call.

/// What to do after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Look at its findings.
    CheckDefinition,
    /// Give the request another id.
    OtherRequestId,
    /// Give the agent's call another id.
    OtherCallId,
    /// Use another API key.
    SetKey,
    /// Another role is needed.
    AskOtherRole,
    /// Another person is needed.
    AskOtherPerson,
    /// The gate has approvers.
    AskApprovers,
    /// The session is in another state.
    LookAtSession,
    /// The server has no key ring.
    CreateKeyRing,
    /// The cluster is in another state.
    LookAtCluster,
    /// Somebody else has the work.
    DiscardResult,
    /// The server cannot do it now.
    TryAgain,
    /// The disk is full.
    FreeSpace,
    /// It is not known whether the call was carried out.
    Repeat,
    /// No server has answered.
    CheckConnection,
    /// The server does not know the call.
    CheckVersion,
    /// A resource of this kind does not exist.
    List(Listed),
}

/// The kind of a resource that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// One execution of a definition.
    Session,
    /// A point where people decide.
    Gate,
    /// A definition, or a version of one.
    Definition,
    /// An outgoing message.
    Effect,
    /// A receiver of webhooks.
    Endpoint,
    /// A sender of webhooks.
    Source,
    /// A list of workflows for conversations.
    Assistant,
    /// A work item.
    Work,
    /// A server of a cluster, or a group.
    Server,
    /// A mail that was not accepted.
    QuarantinedMail,
    /// Anything else.
    Other,
}

/// The lines that propose it: each is a sentence, or a command with what it does.
#[must_use]
pub fn next_step(step: NextStep) -> &'static [&'static str] {
    match step {
        NextStep::CheckDefinition => {
            &["switchward check FILE    shows each finding with its line and the allowed values"]
        }
        NextStep::OtherRequestId => &["use another --request-id, or omit it"],
        NextStep::OtherCallId => &["use another --call-id, or omit it: an id identifies one call"],
        NextStep::SetKey => &[
            "set SWITCHWARD_API_KEY or --api-key KEY",
            "switchward dev           starts a server and writes contexts with its keys",
        ],
        // The hint does not say how to use another identity.
        NextStep::AskOtherRole => &["ask a person with one of the allowed roles"],
        NextStep::AskOtherPerson => &["another person with the role approver, operator or admin must decide"],
        NextStep::AskApprovers => &[
            "switchward get GATE      shows who is asked",
            "they decide by replying to their mail or on its decision page",
        ],
        NextStep::LookAtSession => &["switchward get SESSION   shows the current state"],
        NextStep::CreateKeyRing => &[
            "switchward secrets create FILE    creates a key ring; name it as keys_file in the server's configuration",
        ],
        NextStep::LookAtCluster => &["switchward cluster status    shows the servers and the groups"],
        NextStep::DiscardResult => &["discard the result; switchward work poll takes other work"],
        NextStep::TryAgain => &["try again in a moment"],
        NextStep::FreeSpace => &["free space on the server's disk, then try again"],
        NextStep::Repeat => &[
            "repeat the command with the same --request-id, or check whether it was done; --timeout sets the limit",
        ],
        NextStep::CheckConnection => &[
            "try again, or set a longer --timeout",
            "check the address: is it a Switchward server, and is it http:// or https://?",
        ],
        NextStep::CheckVersion => {
            &["check the address: is it a Switchward server, and not older than this program?"]
        }
        NextStep::List(kind) => listed(kind),
    }
}

/// The command that lists the resources of a kind.
fn listed(kind: Listed) -> &'static [&'static str] {
    match kind {
        Listed::Session => &["switchward list sessions    lists the sessions"],
        Listed::Gate => &["switchward list gates    lists the open gates"],
        Listed::Definition => &["switchward list definitions    lists the definitions"],
        Listed::Effect => &["switchward list effects    lists the undelivered effects"],
        Listed::Endpoint => &["switchward endpoint list    lists the endpoints"],
        Listed::Source => &["switchward source list    lists the sources"],
        Listed::Assistant => &["switchward assistant list    lists the assistants"],
        Listed::Work => &["switchward work poll    takes ready work"],
        Listed::Server => &["switchward cluster status    lists the servers and the groups"],
        Listed::QuarantinedMail => &["switchward mail quarantine list    lists the quarantined mail"],
        Listed::Other => &["switchward list sessions, list gates and list definitions list what exists"],
    }
}
