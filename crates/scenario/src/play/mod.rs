//! Playing a scenario in a system.

mod catalogue;
mod effects;
pub(crate) mod gates;
mod holds;
mod moves;
mod seen;
mod work;

use seen::{Seen, StepKind, seconds};
use serde_json::{Map, Value, json};
use switchward_formats::{Finding, Report as Findings, document::Span};
use switchward_machine::{SessionId, TenantId};
use switchward_state::catalogue::Settings;
use switchward_state::policy::Authorized;
use switchward_state::run::RunAddress;
use switchward_state::{Reason, Rejection};

use crate::codes::FILE;
use crate::memory::Memory;
use crate::parse::parse;
use crate::report::{Miss, REFUSAL, Report, StepReport};
use crate::script::{Expected, Named, Scenario, Verb, Wanted};
use crate::system::{Broken, System};

/// Returns the bytes of a file that a scenario names, relative to the scenario's own path; or why it cannot.
pub type Loader<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Why a scenario was not played to its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unplayed {
    /// It cannot be read as a scenario, or a file that it names cannot be read: an error of the author.
    #[error("the file cannot be read as a scenario")]
    Unreadable(Vec<Finding>),
    /// The engine or the system broke an invariant: a defect.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Reads a scenario and plays it in a new system.
///
/// # Errors
/// As [`Unplayed`] says; a failed expectation is not an error, but part of the report.
pub fn simulate(file: &str, bytes: &[u8], loader: Loader<'_>) -> Result<Report, Unplayed> {
    play(&parse(file, bytes).map_err(Unplayed::Unreadable)?, loader)
}

/// Plays a scenario in a new system.
///
/// # Errors
/// As [`Unplayed`] says.
pub fn play(scenario: &Scenario, loader: Loader<'_>) -> Result<Report, Unplayed> {
    play_on(scenario, loader, &mut Memory::new())
}

/// Plays a scenario in any system that has no tenant named `scenario` yet.
///
/// # Errors
/// As [`Unplayed`] says.
pub fn play_on(scenario: &Scenario, loader: Loader<'_>, system: &mut dyn System) -> Result<Report, Unplayed> {
    let files = files(scenario, loader)?;
    let mut player = Player::new(scenario.settings, files, system);
    player.open(scenario)?;
    let start = &scenario.start;
    let mut steps = Vec::with_capacity(scenario.steps.len() + 1);
    let refused = player.begin(scenario)?;
    steps.push(player.check(0, "start", start.span, &start.expected, refused.err().as_ref())?);
    for step in &scenario.steps {
        let refused = player.step(&step.verb)?;
        let refused = refused.err();
        steps.push(player.check(
            step.index,
            step.verb.word(),
            step.span,
            &step.expected,
            refused.as_ref(),
        )?);
    }
    let session = player.look()?.session_json();
    Ok(Report { file: scenario.file.clone(), steps, session })
}

/// The files that a scenario names, by their names, all of them read before anything is played.
type Files = Vec<(String, Vec<u8>)>;

fn files(scenario: &Scenario, loader: Loader<'_>) -> Result<Files, Unplayed> {
    let published = scenario
        .steps
        .iter()
        .filter_map(|step| if let Verb::Publish(named) = &step.verb { Some(named) } else { None });
    let mut findings = Findings::new(&scenario.file);
    let mut files = Files::new();
    for named in scenario.named().chain(published) {
        match loader(&named.path) {
            Ok(bytes) => files.push((named.path.clone(), bytes)),
            Err(why) => findings.add(Finding::new(FILE, named.span, why)),
        }
    }
    if findings.errors() > 0 { Err(Unplayed::Unreadable(findings.finish())) } else { Ok(files) }
}

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    code: &'static str,
    message: String,
    retry_after_ms: Option<u64>,
}

impl Refusal {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), message: message.into(), retry_after_ms: None }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self {
            code: rejection.reason.code(),
            message: rejection.message,
            retry_after_ms: rejection.retry_after_ms,
        }
    }
}

/// The outcome of a step, if the system is intact.
type Moved = Result<Result<(), Refusal>, Broken>;

/// The player: the agent, the people and the author, all of one tenant.
struct Player<'a> {
    system: &'a mut dyn System,
    files: Files,
    settings: Settings,
    tenant: TenantId,
    /// The definition's name, once it is published.
    definition: Option<String>,
    /// All names in the catalogue, in order of publication.
    names: Vec<String>,
    session: Option<SessionId>,
    /// The run that the current step is about, if it names one.
    address: Option<RunAddress>,
    /// The number of requests so far; each has its own id.
    requests: u64,
    /// The decision about the session's last call.
    last: Option<Authorized>,
    /// The number of the session's events before this step.
    before: u64,
    /// The catalogue events of this step.
    published: Vec<&'static str>,
}

impl<'a> Player<'a> {
    fn new(settings: Settings, files: Files, system: &'a mut dyn System) -> Self {
        Self {
            system,
            files,
            settings,
            tenant: TenantId(0),
            definition: None,
            names: Vec::new(),
            session: None,
            address: None,
            requests: 0,
            last: None,
            before: 0,
            published: Vec::new(),
        }
    }

    /// Publishes and starts. The clock has its first time by then.
    fn begin(&mut self, scenario: &Scenario) -> Moved {
        let all: Vec<&Named> = std::iter::once(&scenario.definition).chain(&scenario.also).collect();
        let names = match self.publish_all(&all)? {
            Ok(names) => names,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.definition = names.first().cloned();
        self.names = names;
        if let Err(refusal) = self.hold(scenario)? {
            return Ok(Err(refusal));
        }
        self.published.clear();
        self.start(&scenario.start.session)
    }

    /// Reads the state after a step.
    fn look(&self) -> Result<Seen, Broken> {
        Seen::of(self)
    }

    /// Compares what is seen with what is expected.
    fn check(
        &mut self,
        index: usize,
        verb: &'static str,
        span: Span,
        expected: &Expected,
        refusal: Option<&Refusal>,
    ) -> Result<StepReport, Broken> {
        let seen = self.look()?;
        let mut report =
            StepReport { index, verb, span, expected: Map::new(), seen: Map::new(), misses: Vec::new() };
        compare_refusal(&mut report, expected, refusal);
        let calls = matches!(verb, "authorize" | "send_email");
        let step = if calls { StepKind::Call } else { StepKind::Other };
        for expectation in &expected.expectations {
            let wanted = expectation.wanted;
            let found = match refusal {
                Some(refusal) if wanted == Wanted::RetryAfter => seconds(refusal.retry_after_ms),
                Some(_) | None => seen.value(wanted, &expectation.value, step),
            };
            if !holds::holds(wanted, &expectation.value, &found) {
                report.misses.push(Miss {
                    span: expectation.span,
                    what: wanted.word(),
                    expected: expectation.value.clone(),
                    seen: found.clone(),
                    note: String::new(),
                });
            }
            report.expected.insert(wanted.word().into(), expectation.value.clone());
            report.seen.insert(wanted.word().into(), found);
        }
        self.before = seen.sequence();
        Ok(report)
    }
}

const ANY: &str = "any";

fn compare_refusal(report: &mut StepReport, expected: &Expected, refusal: Option<&Refusal>) {
    let wanted = expected.refusal.as_ref();
    let fits = match (wanted, refusal) {
        (None, None) => return,
        (Some((code, _)), Some(refusal)) => code == ANY || code == refusal.code,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let wanted_code = wanted.map_or(Value::Null, |(code, _)| json!(code));
    let seen = refusal.map_or(Value::Null, |refusal| json!(refusal.code));
    report.expected.insert(REFUSAL.into(), wanted_code.clone());
    report.seen.insert(REFUSAL.into(), seen.clone());
    if !fits {
        let span = wanted.map_or(report.span, |(_, span)| *span);
        let note = refusal.map(|refusal| refusal.message.clone()).unwrap_or_default();
        report.misses.push(Miss { span, what: REFUSAL, expected: wanted_code, seen, note });
    }
}
