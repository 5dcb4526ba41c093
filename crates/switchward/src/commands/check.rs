//! `switchward check`: everything that is wrong with definitions, all files and all findings at once.

use std::fs;
use std::path::{Path, PathBuf};
use switchward_formats::{
    Call, Calls, Finding, Format, Severity, SourceFile, absent, compile_file, cycles, detect, render_json,
};
use switchward_messages::cli::check::skipped;

use crate::args::{CheckArgs, Output, files};
use crate::exit::{Exit, FINDINGS};
use crate::output::{CARE, GOOD, PROBLEM, count, findings, print};

/// The maximum number of files in folders.
const FILES_MAX: usize = 10_000;
/// The maximum nesting of folders.
pub(super) const DEPTH_MAX: usize = 32;

/// A file that was checked.
struct Checked {
    path: String,
    format: Option<Format>,
    findings: Vec<Finding>,
    /// Its text, if a finding can refer to it.
    bytes: Vec<u8>,
    /// Its name and its calls, if it compiles.
    definition: Option<(String, Vec<Call>)>,
}

/// The results so far.
#[derive(Default)]
struct Tally {
    checked: Vec<Checked>,
    /// Files in the folders that are not definitions.
    left_out: usize,
    /// The first path that could not be read; the others are checked nevertheless.
    unread: Option<Exit>,
}

/// Checks every path.
pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<(), Exit> {
    let format = args.format.as_deref().and_then(Format::named);
    let mut tally = Tally::default();
    for path in &args.paths {
        let seen = if path.is_dir() {
            folder(path, format, &mut tally)
        } else {
            files::read(path).map(|bytes| one(path, bytes, format, &mut tally))
        };
        if let Err(exit) = seen {
            tally.unread.get_or_insert(exit);
        }
    }
    together(&mut tally.checked);
    for checked in &tally.checked {
        report(checked, args, output).or_else(Exit::unless_output_closed)?;
    }
    tally.end(args, output).map_err(|exit| exit.in_format(output))
}

/// Adds the findings that involve several files.
fn together(all: &mut [Checked]) {
    let mut positions = Vec::new();
    let mut calls = Vec::new();
    for (at, checked) in all.iter().enumerate() {
        if let Some((name, of)) = &checked.definition {
            positions.push(at);
            calls.push(Calls { file: &checked.path, name, calls: of });
        }
    }
    // The name of a file with errors is unknown; it may define what another file calls.
    let missing = if calls.len() == all.len() { absent(&calls) } else { Vec::new() };
    let found = cycles(&calls).into_iter().chain(missing);
    let found: Vec<(usize, Finding)> =
        found.filter_map(|(at, finding)| Some((*positions.get(at)?, finding))).collect();
    for (at, finding) in found {
        all[at].findings.push(finding);
        all[at].findings.sort_by_key(|finding| (finding.line, finding.column));
    }
}

impl Tally {
    fn end(self, args: &CheckArgs, output: Output) -> Result<(), Exit> {
        let files = self.checked.len();
        let all = |severity| self.checked.iter().map(|checked| checked.count(severity)).sum::<usize>();
        let (errors, warnings) = (all(Severity::Error), all(Severity::Warning));
        let notices = all(Severity::Notice);
        let worth_a_line = files > 1 || (files == 1 && self.left_out > 0);
        if !output.json() && !args.quiet && worth_a_line {
            let mut line = format!("{}: ", count(files, "file"));
            line.push_str(&totals(errors, warnings, notices));
            if self.left_out > 0 {
                line.push_str(&format!("; {}", skipped(&count(self.left_out, "other file"))));
            }
            print(&format!("{line}\n")).or_else(Exit::unless_output_closed)?;
        }
        if let Some(exit) = self.unread {
            return Err(exit);
        }
        if files == 0 {
            return Err(Exit::missing("no definitions found")
                .next("name a file itself to see why it is not a definition"));
        }
        let found = errors > 0 || (args.strict && warnings > 0);
        if found { Err(Exit::reported(FINDINGS)) } else { Ok(()) }
    }
}

/// Checks the definitions below a folder.
fn folder(path: &Path, format: Option<Format>, tally: &mut Tally) -> Result<(), Exit> {
    let mut found = Vec::new();
    walk(path, DEPTH_MAX, &mut found)?;
    for path in found {
        let bytes = files::read(&path)?;
        let name = path.to_string_lossy();
        if format.is_none() && detect(&[SourceFile { path: &name, bytes: &bytes }]).is_err() {
            tally.left_out += 1;
            continue;
        }
        one(&path, bytes, format, tally);
    }
    Ok(())
}

/// Collects the files below a folder that may be definitions, by name. Skips hidden files and links to folders.
pub(super) fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Exit> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(|error| files::unreadable(folder, &error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| files::unreadable(&path, &error))?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            if depth == 0 {
                return Err(Exit::usage(format!(
                    "{} is nested deeper than {DEPTH_MAX} folders",
                    path.display()
                )));
            }
            walk(&path, depth - 1, found)?;
        } else if path.is_file() && may_be_definition(&path) {
            if found.len() == FILES_MAX {
                return Err(Exit::usage(format!("more than {FILES_MAX} files; name a smaller folder")));
            }
            found.push(path);
        }
    }
    Ok(())
}

fn may_be_definition(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    matches!(ending.as_deref(), Some("json" | "yaml" | "yml"))
}

fn one(path: &Path, bytes: Vec<u8>, format: Option<Format>, tally: &mut Tally) {
    let path = path.to_string_lossy().into_owned();
    let compiled = compile_file(&path, &bytes, format);
    let definition = compiled.definition.map(|definition| (definition.name, definition.calls));
    let calls = definition.as_ref().is_some_and(|(_, calls)| !calls.is_empty());
    let bytes = if calls || !compiled.findings.is_empty() { bytes } else { Vec::new() };
    let (format, findings) = (compiled.format, compiled.findings);
    tally.checked.push(Checked { path, format, findings, bytes, definition });
}

impl Checked {
    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

fn report(checked: &Checked, args: &CheckArgs, output: Output) -> Result<(), Exit> {
    if output.json() {
        let line = render_json(&checked.path, checked.format, &checked.findings);
        return print(&format!("{line}\n"));
    }
    let mut text = findings(&checked.findings, &checked.bytes);
    if !args.quiet {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&summary(checked));
    }
    print(&text)
}

fn summary(checked: &Checked) -> String {
    let path = crate::output::clean(&checked.path);
    let errors = checked.count(Severity::Error);
    let totals = totals(errors, checked.count(Severity::Warning), checked.count(Severity::Notice));
    let Some((name, _)) = checked.definition.as_ref().filter(|_| errors == 0) else {
        return format!("{path}: {totals}\n");
    };
    let format = checked.format.map_or("", Format::name);
    format!("{path}: {totals}, {format} {name}\n")
}

fn totals(errors: usize, warnings: usize, notices: usize) -> String {
    let mut care =
        if warnings > 0 { format!(", {CARE}{}{CARE:#}", count(warnings, "warning")) } else { String::new() };
    if notices > 0 {
        care.push_str(&format!(", {}", count(notices, "notice")));
    }
    if errors > 0 {
        format!("{PROBLEM}{}{PROBLEM:#}{care}", count(errors, "error"))
    } else {
        format!("{GOOD}ok{GOOD:#}{care}")
    }
}
