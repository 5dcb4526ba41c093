//! Plays every scenario of the corpus, in every system that there is here.
#![expect(clippy::disallowed_methods, reason = "these tests read the corpus")]
#![expect(clippy::unwrap_used, reason = "a test fails if it cannot read the corpus")]

mod twins;

use std::path::{Path, PathBuf};
use switchward_scenario::{Broken, Memory, System, Unplayed, parse, play_on, simulate};
use switchward_testkit::{apart, careful, replayed};
use twins::Twins;

fn scenarios() -> Vec<PathBuf> {
    scenarios_in("scenarios")
}

/// The scenarios in a folder of every format.
fn scenarios_in(below: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let mut found = Vec::new();
    for format in std::fs::read_dir(corpus).unwrap() {
        let folder = format.unwrap().path().join(below);
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        found.extend(files.map(|file| file.unwrap().path()));
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    found.sort();
    found
}

/// The text of all failed expectations.
fn failures(path: &Path, system: &mut dyn System) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let folder = path.parent().unwrap();
    let loader = |file: &str| std::fs::read(folder.join(file)).map_err(|error| format!("{file}: {error}"));
    let scenario = match parse(&name, &std::fs::read(path).unwrap()) {
        Ok(scenario) => scenario,
        Err(findings) => return format!("{name} cannot be read: {findings:#?}\n"),
    };
    match play_on(&scenario, &loader, system) {
        Ok(report) if report.ok() => String::new(),
        Ok(report) => report.text(),
        Err(Unplayed::Unreadable(findings)) => format!("{name} cannot be played: {findings:#?}\n"),
        Err(Unplayed::Broken(broken)) => format!("{name}: {broken}\n"),
    }
}

/// Plays every scenario in a system of its own, and looks at the system when it is over.
fn play_all<W: System>(fresh: impl Fn() -> W, over: impl Fn(&W) -> Result<(), Broken>) {
    let all = scenarios();
    assert!(all.len() >= 60, "the corpus is there: {}", all.len());
    let played = |path: &PathBuf| {
        let mut system = fresh();
        let failed = failures(path, &mut system);
        match over(&system) {
            Err(broken) if failed.is_empty() => format!("{}: {broken}\n", path.display()),
            Ok(()) | Err(_) => failed,
        }
    };
    let failed: Vec<String> = all.iter().map(played).filter(|text| !text.is_empty()).collect();
    let count = failed.len();
    assert!(failed.is_empty(), "{count} of {} scenarios do not hold\n\n{}", all.len(), failed.join("\n"));
}

#[test]
fn every_scenario_holds_on_one_shard() {
    play_all(Memory::new, |_| Ok(()));
}

#[test]
fn every_scenario_holds_where_ledgers_and_sessions_lie_apart() {
    play_all(apart, |_| Ok(()));
}

#[test]
fn every_scenario_holds_with_a_restart_and_a_repetition_after_every_command() {
    play_all(careful, replayed);
}

#[test]
fn every_scenario_holds_beside_a_tenant_that_does_the_same() {
    play_all(|| Twins::of(apart()), |_| Ok(()));
}

/// A scenario about the deploy gate of the corpus.
fn simulated(text: &str) -> Result<switchward_scenario::Report, Unplayed> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/checkpoint/definitions");
    let loader = |file: &str| std::fs::read(corpus.join(file)).map_err(|error| error.kind().to_string());
    simulate("wrong.yaml", text.as_bytes(), &loader)
}

const WRONG: &str = "definition: deploy-gate.json
start:
  expect: {at: env-check}
steps:
  - answer: {answer: yes}
    expect: {status: waiting, at: traffic-check}
  - answer: {answer: maybe}
  - authorize: {capability: mcp:filesystem:write_file, args: {path: /a}}
    expect:
      decision: ask
      effects: []
  - pause: {reason: lunch}
    expect_error: any
    expect: {status: suspended, reason: paused, open: [{kind: gate, type: tool_ask}]}
";

#[test]
fn an_expectation_that_does_not_hold_is_reported_with_its_step_and_line() {
    let report = simulated(WRONG).unwrap();
    assert!(!report.ok());
    let missed: Vec<(usize, u32, u32, &str)> = report
        .steps
        .iter()
        .flat_map(|step| {
            step.misses.iter().map(|miss| (step.index, step.span.line, miss.span.line, miss.what))
        })
        .collect();
    assert_eq!(
        missed,
        [(1, 5, 6, "at"), (2, 7, 7, "expect_error"), (3, 8, 11, "effects"), (4, 12, 13, "expect_error")]
    );
    assert_eq!(report.text(), include_str!("../golden/simulate.v1.txt"));
}

/// After a mail, `reason` is about that call, as after any other.
#[test]
fn a_denied_mail_is_not_one_without_a_reason() {
    let denied = "definition: mail.yaml
steps:
  - send_email: {from: bot@ours.example, to: x@evil.example, subject: s}
    expect: {decision: deny, reason: null}
";
    let report = simulated(denied).unwrap();
    let missed: Vec<&str> = report.steps.iter().flat_map(|step| &step.misses).map(|miss| miss.what).collect();
    assert_eq!(missed, ["reason"], "{}", report.text());
}

#[test]
fn the_report_has_its_public_form() {
    let report = simulated(WRONG).unwrap();
    let golden: serde_json::Value = serde_json::from_str(include_str!("../golden/simulate.v1.json")).unwrap();
    assert_eq!(report.json(), golden, "{:#}", report.json());
}

#[test]
fn a_scenario_that_holds_is_one_line() {
    let report = simulated("definition: deploy-gate.json\nsteps: [{wait: 1h}]\n").unwrap();
    assert_eq!(report.text(), "wrong.yaml: ok, 1 step\n");
}

#[test]
fn what_cannot_be_read_is_no_failed_expectation() {
    let line = |text: &str| match simulated(text) {
        Err(Unplayed::Unreadable(findings)) => {
            findings.iter().map(|it| (it.line, it.code)).collect::<Vec<_>>()
        }
        other => panic!("{text} was read: {other:?}"),
    };
    assert_eq!(line("definition: gone.json\n"), [(1, "SW1903")]);
    assert_eq!(line("definition: deploy-gate.json\nsteps:\n- publish: gone.json\n"), [(3, "SW1903")]);
    assert_eq!(line("definition: deploy-gate.json\nsteps:\n- jump: {}\n"), [(3, "SW1110")]);
    let broken = simulated("definition: release-broken.yaml\n").unwrap();
    assert!(!broken.ok() && broken.text().contains("DEFINITION_INVALID"), "{}", broken.text());
}
