//! `switchward check`: everything that is wrong with definitions, all files and all findings at once.

use std::fs;
use std::path::{Path, PathBuf};
use switchward_formats::{Compiled, Format, Severity, SourceFile, compile_file, detect, render_json};

use crate::args::{CheckArgs, Output, files};
use crate::exit::{Exit, FINDINGS};
use crate::output::{CARE, GOOD, PROBLEM, count, findings, print};

/// Files that are looked at in folders.
const FILES_MAX: usize = 10_000;
/// Folders inside each other.
const DEPTH_MAX: usize = 32;

/// What was seen so far.
#[derive(Default)]
struct Tally {
    checked: usize,
    errors: usize,
    warnings: usize,
    /// Files of the folders that are no definitions.
    left_out: usize,
    /// The first path that could not be read; the others are checked all the same.
    unread: Option<Exit>,
}

/// Checks every path.
pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<(), Exit> {
    let format = args.format.as_deref().and_then(Format::named);
    let mut tally = Tally::default();
    for path in &args.paths {
        let seen = if path.is_dir() {
            folder(path, format, args, output, &mut tally)
        } else {
            file(path, format, args, output, &mut tally)
        };
        if let Err(exit) = seen {
            // A reader of ours that went away ends the whole; everything else is about one path.
            if exit.is_quiet() {
                return Err(exit);
            }
            tally.unread.get_or_insert(exit);
        }
    }
    tally.end(args, output).map_err(|exit| exit.told_as(output))
}

impl Tally {
    fn end(self, args: &CheckArgs, output: Output) -> Result<(), Exit> {
        let worth_a_line = self.checked > 1 || (self.checked == 1 && self.left_out > 0);
        if !output.json() && !args.quiet && worth_a_line {
            let mut line = format!("{}: ", count(self.checked, "file"));
            line.push_str(&told(self.errors, self.warnings));
            if self.left_out > 0 {
                line.push_str(&format!("; {} left out as no definition", count(self.left_out, "other file")));
            }
            print(&format!("{line}\n"))?;
        }
        if let Some(exit) = self.unread {
            return Err(exit);
        }
        if self.checked == 0 {
            return Err(Exit::missing("there is no definition in what was named")
                .next("name the file itself to be told what is missing in it"));
        }
        let found = self.errors > 0 || (args.strict && self.warnings > 0);
        if found { Err(Exit::told(FINDINGS)) } else { Ok(()) }
    }
}

/// Checks a file that was named.
fn file(
    path: &Path,
    format: Option<Format>,
    args: &CheckArgs,
    output: Output,
    tally: &mut Tally,
) -> Result<(), Exit> {
    let bytes = files::read(path)?;
    one(path, &bytes, format, args, output, tally)
}

/// Checks what is a definition in a folder and in the folders below it.
fn folder(
    path: &Path,
    format: Option<Format>,
    args: &CheckArgs,
    output: Output,
    tally: &mut Tally,
) -> Result<(), Exit> {
    let mut found = Vec::new();
    walk(path, DEPTH_MAX, &mut found)?;
    for path in found {
        let bytes = files::read(&path)?;
        let name = path.to_string_lossy();
        if format.is_none() && detect(&[SourceFile { path: &name, bytes: &bytes }]).is_err() {
            tally.left_out += 1;
            continue;
        }
        one(&path, &bytes, format, args, output, tally)?;
    }
    Ok(())
}

/// The files below a folder that may be definitions, by name. Hidden ones and links to folders are passed by.
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
                return Err(Exit::usage(format!(
                    "there are more than {FILES_MAX} files; name a smaller folder"
                )));
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

fn one(
    path: &Path,
    bytes: &[u8],
    format: Option<Format>,
    args: &CheckArgs,
    output: Output,
    tally: &mut Tally,
) -> Result<(), Exit> {
    let name = path.to_string_lossy();
    let checked = compile_file(&name, bytes, format);
    let of = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    tally.checked += 1;
    tally.errors += errors;
    tally.warnings += warnings;
    if output.json() {
        return print(&format!("{}\n", render_json(&name, checked.format, &checked.findings)));
    }
    let mut text = findings(&checked.findings, bytes);
    if !args.quiet {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&summary(&name, &checked, errors, warnings));
    }
    print(&text)
}

fn summary(name: &str, checked: &Compiled, errors: usize, warnings: usize) -> String {
    let name = crate::output::clean(name);
    let Some(definition) = &checked.definition else {
        return format!("{name}: {}\n", told(errors, warnings));
    };
    let format = checked.format.map_or("", Format::name);
    format!("{name}: {}, {format} {}\n", told(errors, warnings), definition.name)
}

fn told(errors: usize, warnings: usize) -> String {
    let care =
        if warnings > 0 { format!(", {CARE}{}{CARE:#}", count(warnings, "warning")) } else { String::new() };
    if errors > 0 {
        format!("{PROBLEM}{}{PROBLEM:#}{care}", count(errors, "error"))
    } else {
        format!("{GOOD}ok{GOOD:#}{care}")
    }
}
