//! `switchward simulate`: plays scenarios on the engine with a virtual clock.

use serde_json::{Value, json};
use std::path::Path;
use switchward_formats::{Finding, render_json};
use switchward_scenario::{Report, Unplayed, simulate};

use crate::args::{Output, SimulateArgs, files};
use crate::exit::{Exit, FINDINGS, USAGE};
use crate::output::{GOOD, PROBLEM, clean, count, findings, print};

/// The results of all files.
#[derive(Default)]
struct Tally {
    played: usize,
    failed: usize,
    unreadable: usize,
}

/// Plays every file.
pub(crate) fn run(args: &SimulateArgs, output: Output) -> Result<(), Exit> {
    let mut tally = Tally::default();
    for path in &args.files {
        let seen = one(path, args, output, &mut tally).or_else(Exit::unless_output_closed);
        seen.map_err(|exit| exit.in_format(output))?;
    }
    tally.end(args, output)
}

impl Tally {
    fn end(self, args: &SimulateArgs, output: Output) -> Result<(), Exit> {
        let Self { played, failed, unreadable } = self;
        if !output.json() && !args.quiet && args.files.len() > 1 {
            let mut parts = vec![format!("{} played", count(played, "scenario"))];
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
}

fn one(path: &Path, args: &SimulateArgs, output: Output, tally: &mut Tally) -> Result<(), Exit> {
    let name = path.to_string_lossy();
    // Unreadable scenarios have one exit code for all causes; the others are played nevertheless.
    let bytes = match files::read(path) {
        Ok(bytes) => bytes,
        Err(exit) => {
            tally.unreadable += 1;
            return unread(&name, &exit, output);
        }
    };
    let beside = path.parent().unwrap_or(Path::new(""));
    let loader = |named: &str| {
        let path = beside.join(named);
        files::read(&path).map_err(|exit| exit.message().to_owned())
    };
    match simulate(&name, &bytes, &loader) {
        Ok(report) => {
            tally.played += 1;
            tally.failed += usize::from(!report.ok());
            played(&report, args, output)
        }
        Err(Unplayed::Unreadable(found)) => {
            tally.unreadable += 1;
            unreadable(&name, &found, &bytes, output)
        }
        Err(Unplayed::Broken(broken)) => Err(Exit::failed(broken.into())),
    }
}

fn played(report: &Report, args: &SimulateArgs, output: Output) -> Result<(), Exit> {
    if output.json() {
        return print(&format!("{}\n", report.json()));
    }
    if report.ok() {
        if args.quiet {
            return Ok(());
        }
        let text = clean(&report.text());
        return print(&text.replacen(": ok,", &format!(": {GOOD}ok{GOOD:#},"), 1));
    }
    print(&clean(&report.text()))
}

/// Reports a file that is not a scenario.
fn unreadable(name: &str, found: &[Finding], bytes: &[u8], output: Output) -> Result<(), Exit> {
    if !output.json() {
        return print(&findings(found, bytes));
    }
    let rendered: Value =
        serde_json::from_str(&render_json(name, None, found)).map_err(anyhow::Error::from)?;
    let found = rendered.get("findings").cloned().unwrap_or_default();
    print(&format!(
        "{}\n",
        json!({ "file": name, "ok": false, "steps": [], "session": {}, "findings": found })
    ))
}

/// Reports a file that cannot be read.
fn unread(name: &str, exit: &Exit, output: Output) -> Result<(), Exit> {
    if output.json() {
        let report =
            json!({ "file": name, "ok": false, "steps": [], "session": {}, "error": exit.message() });
        return print(&format!("{report}\n"));
    }
    print(&format!("{PROBLEM}error:{PROBLEM:#} {}\n", clean(exit.message())))
}
