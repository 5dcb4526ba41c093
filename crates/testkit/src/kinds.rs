//! The kinds of events, from the enums themselves: the compiler refuses a list that lacks a variant.

use std::collections::BTreeSet;
use switchward_state::Event;
use switchward_state::approval::{ApprovalEvent, PageCodeStep, VoteFact};
use switchward_state::catalogue::{AssistantFact, CatalogueEvent, TenantFact, VersionFact};
use switchward_state::delivery::{
    AddressProblem, DeliveryDetail, DeliveryEvent, EffectBody, EventProblem, ExchangeProblem, FailureCode,
    HeaderProblem, JobProblem, MailProblem, ModelProblem, PingProblem, RequestProblem, SizedPart,
    WebhookSourceFact,
};
use switchward_state::policy::{CallGrounds, CallProblem, PolicyEvent, PolicyFact, Shortage};
use switchward_state::run::{
    Deferral, FaultCause, OutboxExcess, PendingFact, RecipientsProblem, ResultProblem, RunEvent, WriteProblem,
};
use switchward_state::session::{GateTrouble, NoAudience, RemovalFact, SessionEvent, SessionWarning};
use switchward_state::work::{OpenItemBody, WorkEvent, WorkFailure};

/// An enum of events or of facts.
pub trait Kinds {
    /// Every kind that there is.
    fn kinds() -> Vec<String>;
    /// The kind of this one.
    fn kind(&self) -> String;
}

/// Lists the variants of an enum, and after the first semicolon those that hold another enum with kinds.
macro_rules! kinds {
    ($enum:ty: $($leaf:ident)*; $($name:ident($pattern:pat) => $inner:expr, $nested:ty;)*) => {
        impl Kinds for $enum {
            fn kinds() -> Vec<String> {
                let nested: Vec<Vec<String>> = vec![$({
                    let kinds = <$nested as Kinds>::kinds().into_iter();
                    kinds.map(|kind| format!(concat!(stringify!($name), ".{}"), kind)).collect()
                }),*];
                let leaves = [$(stringify!($leaf)),*].map(str::to_owned);
                leaves.into_iter().chain(nested.into_iter().flatten()).collect()
            }

            fn kind(&self) -> String {
                match self {
                    $(Self::$leaf { .. } => stringify!($leaf).to_owned(),)*
                    $($pattern => format!(concat!(stringify!($name), ".{}"), Kinds::kind($inner)),)*
                }
            }
        }
    };
}

kinds! { Event: ;
    Session(Self::Session(event)) => event, SessionEvent;
    Run(Self::Run(event)) => event, RunEvent;
    Approval(Self::Approval(event)) => event, ApprovalEvent;
    Work(Self::Work(event)) => event, WorkEvent;
    Delivery(Self::Delivery(event)) => event, DeliveryEvent;
    Policy(Self::Policy(event)) => event, PolicyEvent;
    Catalogue(Self::Catalogue(event)) => event, CatalogueEvent;
}

kinds! { SessionEvent: Started Warned Paused Unpaused RequestsForgotten MessagePosted MessageRecorded Assisted
    ReplyTokensBegun;
    Removals(Self::Removals(fact)) => fact, RemovalFact;
}
kinds! { RemovalFact: Begun Rows Done Forgotten Redacted OfTenant Expired; }

kinds! { RunEvent: Created Activated Entered ActBegun Answered Left Ended TurnEnded Signalled Wrote Rested Faulted
    Restarted Looped EventRecorded EarlyUsed ChoicePending Judged ChoiceOver CalleesPinned ChildrenPlanned ChildCreated
    ChildEnded ChildrenJoined;
    Deferred(Self::Deferred { due, .. }) => due, Deferral;
    Pending(Self::Pending(fact)) => fact, PendingFact;
}
kinds! { Deferral: Take End Ended Again Judged Fault Chosen Begin Try; }
kinds! { PendingFact: Held Entered; }

kinds! { ApprovalEvent: Opened Closed Commented Voided Escalated Lapsed Reminded Answered ReplyRecorded ReplyAnswered
    AudienceSet RemindersSet;
    PageCodes(Self::PageCodes(fact)) => &fact.step, PageCodeStep;
    Votes(Self::Votes(fact)) => fact, VoteFact;
}
kinds! { PageCodeStep: Sent Refused Accepted; }
kinds! { VoteFact: QuorumSet Given Needed Notified EscalationSet Dropped Assigned; }

kinds! { WorkEvent: Closed Leased Released Done;
    Opened(Self::Opened { body, .. }) => body, OpenItemBody;
}
kinds! { OpenItemBody: Work Wait Timer; }

kinds! { DeliveryEvent: Acked Failed Retried Dismissed Deferred Held MailBounced EndpointNoted;
    Queued(Self::Queued { effect }) => &effect.body, EffectBody;
    WebhookSources(Self::WebhookSources(fact)) => fact, WebhookSourceFact;
}
kinds! { EffectBody: Notice Confirm Settle Message Publish; }
kinds! { WebhookSourceFact: Put Deleted; }

kinds! { PolicyEvent: CallPermitted CallDenied CallAsked CallReported CallLapsed GrantMade GrantUsed GrantLapsed Metered
    BudgetExhausted CapRaised LedgerReserved LedgerConfirmed LedgerSettled Swept;
    Policies(Self::Policies(fact)) => fact, PolicyFact;
}
kinds! { PolicyFact: Attached Pinned; }

kinds! { CatalogueEvent: MachineInstalled TenantCreated TenantChanged KeyCreated KeyRevoked VersionDeployed TenancyPut
    ClusterChanged LevelRaised VotersPlaced;
    Versions(Self::Versions(fact)) => fact, VersionFact;
    Assistants(Self::Assistants(fact)) => fact, AssistantFact;
    Tenants(Self::Tenants(fact)) => fact, TenantFact;
}
kinds! { VersionFact: Activated Retired Archived Unarchived Deleted DefinitionDeleted; }
kinds! { AssistantFact: Put Deleted; }
kinds! { TenantFact: Changed Deleted; }

kinds! { FailureCode: Attempt WebhookFailed TooLarge MailNotConfigured MailCap Reported;
    Unsendable(Self::Unsendable(problem)) => problem, EventProblem;
}
kinds! { EventProblem: EndpointDisabled NoSession UnknownSubject; }

kinds! { DeliveryDetail: Quoted;
    TooLarge(Self::TooLarge { part, .. }) => part, SizedPart;
    Address(Self::Address(problem)) => problem, AddressProblem;
    Request(Self::Request(problem)) => problem, RequestProblem;
    Exchange(Self::Exchange(problem)) => problem, ExchangeProblem;
    Mail(Self::Mail(problem)) => problem, MailProblem;
    Model(Self::Model(problem)) => problem, ModelProblem;
    Job(Self::Job(problem)) => problem, JobProblem;
    Ping(Self::Ping(problem)) => problem, PingProblem;
}
kinds! { SizedPart: Address Headers Body Data Result; }
kinds! { AddressProblem: Characters Unreadable Scheme HttpsOnly Login NoHost HostLength HostCharacters HostNotListed NoPort
    PortNotListed NotPublic Unresolved RulesUnknown;
}
kinds! { RequestProblem: Unreadable Method TooManyHeaders BodyJson BodyText HeaderText;
    Header(Self::Header { problem, .. }) => problem, HeaderProblem;
}
kinds! { HeaderProblem: Name OfServer ControlCharacter Value; }
kinds! { ExchangeProblem: Setup NotConnected ConnectTime Tls AnswerTime Broken AnswerSize Compressed ReceiverStatus
    EndpointStatus Status NoStatus;
}
kinds! { MailProblem: NotConfigured Sender Address ReplyAddress Author TooManyAddresses Characters Length NoContentType Tls
    NoReply TooSlow;
}
kinds! { ModelProblem: NotConfigured Busy Unreadable TooManyChoices NoChoices NameLength InstructionsLength Status Declined
    AnswerCut AnswerForm ResultSchema;
}
kinds! { JobProblem: Late WorkersOnly; }
kinds! { PingProblem: Busy AnswerLost NoAnswer AnswerForm; }

kinds! { FaultCause: TooManyOperations NoValue Expression WrittenBytes NoList TooManyItems TurnBytes WorkInputBytes
    HttpStatus ChildInput ChildOutput DataFull Template NoInputObject Guard LeasesLapsed UnknownCallee TooManyRuns
    TooDeep Ended Unconnected Drain TurnFuel AbsentValue NoTransition;
    Write(Self::Write(problem)) => problem, WriteProblem;
    Recipients(Self::Recipients(problem)) => problem, RecipientsProblem;
    Outbox(Self::Outbox(excess)) => excess, OutboxExcess;
    Worker(Self::Worker(failure)) => failure, WorkFailure;
    Result(Self::Result(problem)) => problem, ResultProblem;
}
kinds! { WorkFailure: Reported Attempt TooLarge; }
kinds! { WriteProblem: Reserved KeyLength TooDeep TooManyKeys Clash TooLarge NotDeclared Schema; }
kinds! { RecipientsProblem: TooMany Nobody TooManyParticipants NoList AddressLength NoAddress TaskBytes; }
kinds! { OutboxExcess: ActEffects ActBytes TurnEffects TurnBytes OutboxEffects OutboxBytes MailsOfDay; }
kinds! { ResultProblem: NoObject UnknownField FieldType HttpStatus NoJudgement NoWorkflows UnknownWorkflow
    RepeatedWorkflow NoPort Schema NextUnknown NextMissing NextClash NextGuard;
    Write(Self::Write(problem)) => problem, WriteProblem;
}

kinds! { CallGrounds: Approved Ask Allowed;
    Short(Self::Short(shortage)) => shortage, Shortage;
    Problem(Self::Problem(problem)) => problem, CallProblem;
}
kinds! { Shortage: Grants Money Mails Limit; }
kinds! { CallProblem: Listed NobodyToAsk NotListed UnlistedNobodyToAsk DeniedByDefault Paused Reviewed NoSender NoRecipient
    SenderNotListed RecipientNotListed NoAddress Arguments;
}

kinds! { SessionWarning: Definition Logged Unsent EndpointsFull StillCapped NotCarriedOver NobodyBehind NotMerged DataFull
    Ignored NoRecipients NoParticipants WaitedDataFull;
    AtGate(Self::AtGate { trouble, .. }) => trouble, GateTrouble;
}
kinds! { GateTrouble: TooFewRecipients SharedAddresses NotInDirectory NobodyElse NotReminded QuorumLost;
    Unnotified(Self::Unnotified { why }) => why, NoAudience;
}
kinds! { NoAudience: NoAddress TooMuch; }

/// The kinds of facts that samples lack: the variants of their enum, and of the enums that it holds.
#[must_use]
pub fn missing_facts<'s, F: Kinds + 's>(samples: impl IntoIterator<Item = &'s F>) -> Vec<String> {
    let seen: BTreeSet<String> = samples.into_iter().map(F::kind).collect();
    F::kinds().into_iter().filter(|kind| !seen.contains(kind)).collect()
}

/// The kind of an event: its aggregate, its variant there, and the variants of the enums that it holds, such as
/// `Delivery.Queued.Message`.
#[must_use]
pub fn kind(event: &Event) -> String {
    event.kind()
}

/// Every kind of event that there is.
#[must_use]
pub fn kinds() -> BTreeSet<String> {
    Event::kinds().into_iter().collect()
}

/// Kinds of events that do not occur in random runs.
#[derive(Debug, Clone, Copy)]
pub struct Absent {
    /// Why they do not occur.
    pub why: &'static str,
    /// The kinds; a kind that ends with a dot stands for all that begin with it.
    pub kinds: &'static [&'static str],
}

/// Compares the kinds of events that have occurred with all that there are, without those that are known to be absent.
/// Returns one line for each that is missing, that has occurred and is listed as absent, or that is listed and unknown.
#[must_use]
pub fn uncovered(seen: &BTreeSet<String>, absent: &[Absent]) -> Vec<String> {
    let all = kinds();
    let listed = absent.iter().flat_map(|group| group.kinds).copied();
    let stands_for = |listed: &str, kind: &str| {
        if listed.ends_with('.') { kind.starts_with(listed) } else { kind == listed }
    };
    let mut lines = Vec::new();
    for kind in &all {
        match (seen.contains(kind), listed.clone().any(|listed| stands_for(listed, kind))) {
            (false, false) => lines.push(format!("{kind} has not occurred")),
            (true, true) => lines.push(format!("{kind} has occurred, and is listed as absent")),
            (true, false) | (false, true) => {}
        }
    }
    let unknown = listed.filter(|listed| !all.iter().any(|kind| stands_for(listed, kind)));
    lines.extend(unknown.map(|listed| format!("{listed} is listed as absent, and there is no such kind")));
    lines
}
