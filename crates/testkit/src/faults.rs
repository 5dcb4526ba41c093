//! Samples of what goes wrong in runs, and of the grounds of decisions on calls.

use switchward_machine::{DeliveryReason, EndReason, Ending, FaultCode, FieldType, Micros, Outcome, Port};
use switchward_state::catalogue::DefaultSetIn;
use switchward_state::delivery::JobProblem;
use switchward_state::policy::{CallGrounds, CallProblem, MatchedRule, Shortage};
use switchward_state::run::{
    EndedRun, Fault, FaultCause, OutboxExcess, RecipientsProblem, ResultProblem, WriteProblem,
};
use switchward_state::work::WorkFailure;

/// Every cause of a fault at least once, and faults that have ended runs: stored forms and texts are checked with them.
#[must_use]
pub fn faults() -> Vec<Fault> {
    let causes = operations().into_iter().chain(work()).chain(children());
    let mut all: Vec<Fault> = causes.map(Fault::from).collect();
    all.extend(writes().into_iter().map(|problem| FaultCause::Write(problem).into()));
    all.extend(recipients().into_iter().map(Fault::from));
    all.extend(excesses().into_iter().map(Fault::from));
    all.extend(result_problems().into_iter().map(Fault::from));
    all.extend(above());
    all
}

fn path() -> String {
    "order.items".into()
}

fn diagnostic() -> String {
    "expected value at line 1 column 2".into()
}

fn operations() -> Vec<FaultCause> {
    vec![
        FaultCause::TooManyOperations,
        FaultCause::NoValue { path: path() },
        FaultCause::Expression { diagnostic: "a number cannot be compared with a text".into() },
        FaultCause::WrittenBytes,
        FaultCause::NoList { path: path() },
        FaultCause::TooManyItems { path: path() },
        FaultCause::TurnBytes,
        FaultCause::DataFull { key: "approval".into(), state: "ship".into() },
        FaultCause::Template { diagnostic: diagnostic() },
        FaultCause::Guard { diagnostic: diagnostic() },
        FaultCause::TurnFuel,
        FaultCause::AbsentValue { path: path() },
    ]
}

fn work() -> Vec<FaultCause> {
    let detail = JobProblem::WorkersOnly.into();
    vec![
        FaultCause::WorkInputBytes,
        FaultCause::NoInputObject,
        FaultCause::HttpStatus { status: 503 },
        FaultCause::Worker(WorkFailure::Reported { text: "no printer answers".into() }),
        FaultCause::Worker(WorkFailure::Reported { text: String::new() }),
        FaultCause::Worker(WorkFailure::Attempt { reason: DeliveryReason::JobInvalid, detail }),
        FaultCause::Worker(WorkFailure::TooLarge),
        FaultCause::LeasesLapsed,
    ]
}

fn children() -> Vec<FaultCause> {
    let (definition, problem) = ("refund".to_owned(), WriteProblem::TooManyKeys);
    vec![
        FaultCause::ChildInput { definition: definition.clone(), problem: problem.clone() },
        FaultCause::ChildOutput { definition: definition.clone(), problem },
        FaultCause::UnknownCallee { name: definition.clone() },
        FaultCause::TooManyRuns,
        FaultCause::TooDeep { name: definition },
        FaultCause::Unconnected { port: Port::Named("paid".into()), state: "ship".into() },
        FaultCause::Drain { states: vec!["a".into(), "b".into(), "a".into()], more: 0 },
        FaultCause::Drain { states: vec!["a".into(), "b".into()], more: 998 },
        FaultCause::NoTransition { state: "ship".into() },
    ]
}

/// Every reason why a value is not written.
fn writes() -> Vec<WriteProblem> {
    let key = || "total".to_owned();
    vec![
        WriteProblem::Reserved { key: key() },
        WriteProblem::KeyLength,
        WriteProblem::TooDeep { key: key() },
        WriteProblem::TooManyKeys,
        WriteProblem::Clash { key: key(), diagnostic: "the value is no number".into() },
        WriteProblem::TooLarge { key: key() },
        WriteProblem::NotDeclared { key: key() },
        WriteProblem::Schema { path: "/total".into(), diagnostic: "/total must be a number".into() },
    ]
}

fn recipients() -> Vec<RecipientsProblem> {
    vec![
        RecipientsProblem::TooMany,
        RecipientsProblem::Nobody,
        RecipientsProblem::TooManyParticipants,
        RecipientsProblem::NoList { path: path() },
        RecipientsProblem::AddressLength,
        RecipientsProblem::NoAddress { value: "{\"name\":\"kim\"}".into() },
        RecipientsProblem::TaskBytes,
    ]
}

fn excesses() -> Vec<OutboxExcess> {
    vec![
        OutboxExcess::ActEffects,
        OutboxExcess::ActBytes,
        OutboxExcess::TurnEffects,
        OutboxExcess::TurnBytes,
        OutboxExcess::OutboxEffects,
        OutboxExcess::OutboxBytes,
        OutboxExcess::MailsOfDay { sent: 9_999 },
    ]
}

/// Every reason why a result is refused at least once.
#[must_use]
pub fn result_problems() -> Vec<ResultProblem> {
    let (field, name) = (|| "amount".to_owned(), || "\"refund\"".to_owned());
    let mut all = vec![
        ResultProblem::NoObject,
        ResultProblem::UnknownField { field: field() },
        ResultProblem::FieldType { field: field(), wanted: FieldType::Number, value: "\"12\"".into() },
        ResultProblem::FieldType { field: field(), wanted: FieldType::String, value: "é".repeat(300) },
        ResultProblem::HttpStatus { status: "\"fine\"".into() },
        ResultProblem::NoJudgement,
        ResultProblem::NoWorkflows,
        ResultProblem::UnknownWorkflow { at: 0, name: name() },
        ResultProblem::RepeatedWorkflow { at: 1, name: name() },
        ResultProblem::NoPort,
        ResultProblem::Schema { diagnostic: "/amount must be a number".into() },
        ResultProblem::NextUnknown { next: "pay".into(), exits: vec!["ship".into(), "hold".into()] },
        ResultProblem::NextUnknown { next: "pay".into(), exits: Vec::new() },
        ResultProblem::NextMissing { exits: vec!["ship".into(), "hold".into()] },
        ResultProblem::NextClash { inside: "ship".into(), beside: "hold".into() },
        ResultProblem::NextGuard { next: "ship".into() },
    ];
    all.extend(writes().into_iter().map(ResultProblem::Write));
    all
}

/// Faults of runs below the one that they are reported to.
fn above() -> Vec<Fault> {
    let ended = |definition: &str, outcome, fault: Option<FaultCode>| {
        let ending = Ending { outcome, reason: fault.map(EndReason::Fault) };
        EndedRun { definition: definition.into(), ending }
    };
    let commented = |comment: &str| FaultCause::Ended { comment: comment.into() };
    vec![
        Fault { cause: commented(""), ended: vec![ended("refund", Outcome::Blocked, None)] },
        Fault { cause: commented("not today"), ended: vec![ended("refund", Outcome::Cancelled, None)] },
        Fault {
            cause: FaultCause::HttpStatus { status: 503 },
            ended: vec![
                ended("refund", Outcome::Failed, Some(FaultCode::Child)),
                ended("pay", Outcome::Failed, Some(FaultCode::Operation)),
            ],
        },
    ]
}

/// All grounds of a decision on a call at least once.
#[must_use]
pub fn call_grounds() -> Vec<CallGrounds> {
    let capability = || "bash".to_owned();
    let rule = |capability: &str, default_set_in| MatchedRule {
        layer: "policy".into(),
        list: "allow".into(),
        capability: capability.into(),
        default_set_in,
    };
    let mut rules = vec![None, Some(rule("mcp:*", None))];
    rules.extend(SET_IN.map(|set_in| Some(rule("", Some(set_in)))));
    let allowed = rules.into_iter().map(|rule| CallGrounds::Allowed { capability: capability(), rule });
    let mut all: Vec<CallGrounds> = call_problems().into_iter().map(CallGrounds::Problem).collect();
    all.extend(allowed);
    all.extend([CallGrounds::Ask { capability: capability() }, CallGrounds::Approved]);
    all.extend(shortages().into_iter().map(CallGrounds::Short));
    all
}

const SET_IN: [DefaultSetIn; 4] =
    [DefaultSetIn::Source, DefaultSetIn::Document, DefaultSetIn::Tenant, DefaultSetIn::Configuration];

fn call_problems() -> Vec<CallProblem> {
    let (capability, address) = (|| "bash".to_owned(), || "eve@b.example".to_owned());
    let mut all = vec![
        CallProblem::Listed { capability: capability() },
        CallProblem::NobodyToAsk { capability: capability() },
        CallProblem::NotListed,
        CallProblem::UnlistedNobodyToAsk,
        CallProblem::Paused,
        CallProblem::Reviewed,
        CallProblem::NoSender,
        CallProblem::NoRecipient,
        CallProblem::SenderNotListed { address: address() },
        CallProblem::RecipientNotListed { address: address() },
        CallProblem::NoAddress { field: "cc".into() },
        CallProblem::Arguments { diagnostic: diagnostic() },
    ];
    let by_default = |set_in| CallProblem::DeniedByDefault { layer: "tenant:guard@1".into(), set_in };
    all.push(by_default(None));
    all.extend(SET_IN.map(|set_in| by_default(Some(set_in))));
    all
}

fn shortages() -> Vec<Shortage> {
    let layer = || Some("tenant:guard@1".to_owned());
    vec![
        Shortage::Grants { most: 8 },
        Shortage::Money { used: Micros(2_500_000), most: Micros(3_000_000), layer: None },
        Shortage::Money { used: Micros(2_500_000), most: Micros(3_000_000), layer: layer() },
        Shortage::Mails { sent: 4, most: 4, layer: None },
        Shortage::Mails { sent: 4, most: 4, layer: layer() },
        Shortage::Limit { capability: "bash".into() },
    ]
}
