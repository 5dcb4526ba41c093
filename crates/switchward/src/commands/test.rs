//! `switchward test`: plays all scenarios below a folder, with progress, a summary and a JUnit report.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use switchward_formats::{
    Report as Findings,
    document::{Syntax, read},
};
use switchward_messages::cli::test as texts;
use switchward_scenario::{Report, Unplayed, simulate};

use super::check::walk;
use crate::args::{Output, TestArgs, files};
use crate::exit::{Exit, FINDINGS, USAGE};
use crate::output::{GOOD, PROBLEM, clean, count, findings, period, print};

/// The maximum nesting of folders.
const DEPTH_MAX: usize = 32;

/// The result of a scenario.
struct Played {
    name: String,
    took: Duration,
    end: End,
}

enum End {
    Held,
    Missed(Box<Report>),
    /// It cannot be read, with the findings.
    Unreadable(String),
}

/// Plays all scenarios.
pub(crate) fn run(args: &TestArgs, output: Output) -> Result<(), Exit> {
    play(args, output).map_err(|exit| exit.in_format(output))
}

fn play(args: &TestArgs, output: Output) -> Result<(), Exit> {
    let found = scenarios(&args.paths)?;
    if found.is_empty() {
        return Err(Exit::usage(
            "no scenarios found; a scenario is a YAML or JSON file with the key `definition`",
        ));
    }
    let begun = Instant::now();
    let mut all = Vec::with_capacity(found.len());
    let live = std::io::stderr().is_terminal() && !output.json();
    for (at, path) in found.iter().enumerate() {
        if live {
            anstream::eprint!("\r\x1b[2K{} of {}  {}", at + 1, found.len(), clean(&path.to_string_lossy()));
        }
        let played = one(path)?;
        if live && !matches!(played.end, End::Held) {
            anstream::eprint!("\r\x1b[2K");
        }
        print_result(&played, output).or_else(Exit::unless_output_closed)?;
        all.push(played);
    }
    if live {
        anstream::eprint!("\r\x1b[2K");
    }
    if let Some(file) = &args.junit {
        write_junit(file, &all)?;
    }
    end(&all, begun.elapsed(), output)
}

/// The scenarios below the folders, and the named files, by name, without duplicates.
fn scenarios(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Exit> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut below = Vec::new();
        walk(path, DEPTH_MAX, &mut below)?;
        for file in below {
            if is_scenario(&file, &files::read(&file)?) {
                found.push(file);
            }
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(found)
}

/// Returns true if a file is a scenario, which no definition of any format is.
fn is_scenario(path: &Path, bytes: &[u8]) -> bool {
    let name = path.to_string_lossy();
    let root = read(bytes, Syntax::of(&name, bytes), &mut Findings::new(&name));
    root.is_some_and(|root| root.get("definition").is_some() && root.get("states").is_none())
}

fn one(path: &Path) -> Result<Played, Exit> {
    let name = path.to_string_lossy().into_owned();
    let bytes = files::read(path)?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let loader = |named: &str| files::read(&beside.join(named)).map_err(|exit| exit.message().to_owned());
    let begun = Instant::now();
    let end = match simulate(&name, &bytes, &loader) {
        Ok(report) if report.ok() => End::Held,
        Ok(report) => End::Missed(Box::new(report)),
        Err(Unplayed::Unreadable(found)) => End::Unreadable(findings(&found, &bytes)),
        Err(Unplayed::Broken(broken)) => return Err(Exit::failed(broken.into())),
    };
    Ok(Played { name, took: begun.elapsed(), end })
}

/// Prints the result of a scenario as soon as it was played.
fn print_result(played: &Played, output: Output) -> Result<(), Exit> {
    if output.json() {
        let (ok, result) = match &played.end {
            End::Held => (true, json!({ "file": played.name, "ok": true })),
            End::Missed(report) => (false, report.json()),
            End::Unreadable(why) => (false, json!({ "file": played.name, "ok": false, "error": plain(why) })),
        };
        debug_assert_eq!(result.get("ok"), Some(&json!(ok)));
        return print(&format!("{result}\n"));
    }
    match &played.end {
        End::Held => Ok(()),
        End::Missed(report) => print(&clean(&report.text())),
        End::Unreadable(why) => print(why),
    }
}

/// A text without its colours.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn end(all: &[Played], took: Duration, output: Output) -> Result<(), Exit> {
    let failed = all.iter().filter(|played| matches!(played.end, End::Missed(_))).count();
    let unreadable = all.iter().filter(|played| matches!(played.end, End::Unreadable(_))).count();
    if !output.json() {
        let mut parts = vec![format!("{} in {}", count(all.len(), "scenario"), period(took))];
        let held = all.len() - failed - unreadable;
        parts.push(format!("{GOOD}{held} passed{GOOD:#}"));
        if failed > 0 {
            parts.push(format!("{PROBLEM}{failed} failed{PROBLEM:#}"));
        }
        if unreadable > 0 {
            parts.push(format!("{PROBLEM}{unreadable} unreadable{PROBLEM:#}"));
        }
        print(&format!("{}\n", parts.join(", "))).or_else(Exit::unless_output_closed)?;
    }
    match (unreadable, failed) {
        (0, 0) => Ok(()),
        (0, _) => Err(Exit::reported(FINDINGS)),
        (_, _) => Err(Exit::reported(USAGE)),
    }
}

/// Writes the JUnit report: a suite for each folder, a case for each scenario.
fn write_junit(file: &Path, all: &[Played]) -> Result<(), Exit> {
    let mut report = Junit::new("switchward test");
    let mut folders: Vec<(String, Vec<&Played>)> = Vec::new();
    for played in all {
        let of = folder(&played.name);
        match folders.iter_mut().find(|(known, _)| *known == of) {
            Some((_, suite)) => suite.push(played),
            None => folders.push((of, vec![played])),
        }
    }
    for (of, suite) in folders {
        let took = suite.iter().map(|played| played.took).sum();
        let mut test_suite = TestSuite::new(of);
        test_suite.set_time(took).add_test_cases(suite.into_iter().map(case));
        report.add_test_suite(test_suite);
    }
    report.set_time(all.iter().map(|played| played.took).sum());
    let text = report.to_string().map_err(anyhow::Error::from)?;
    std::fs::write(file, text)
        .map_err(|error| Exit::failed(anyhow::anyhow!("failed to write {}: {error}", file.display())))
}

fn folder(name: &str) -> String {
    Path::new(name).parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default()
}

fn case(played: &Played) -> TestCase {
    let failed = |kind, message: &str, text: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(message).set_description(plain(text));
        status
    };
    let status = match &played.end {
        End::Held => TestCaseStatus::success(),
        End::Missed(report) => failed(NonSuccessKind::Failure, texts::MISSED, &report.text()),
        End::Unreadable(why) => failed(NonSuccessKind::Error, texts::NO_SCENARIO, why),
    };
    let name = Path::new(&played.name).file_name().map(|name| name.to_string_lossy().into_owned());
    let mut case = TestCase::new(name.unwrap_or_default(), status);
    case.set_classname(folder(&played.name)).set_time(played.took);
    case
}
