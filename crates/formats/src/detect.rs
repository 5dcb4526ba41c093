//! Detects a definition's format. See `docs/concepts.md#definition-and-version`.

use crate::codes::{FILE_COUNT, FORMAT_AMBIGUOUS, FORMAT_UNKNOWN};
use crate::document::{Node, Span, Syntax, Value, read};
use crate::row::has;
use crate::{Finding, Format, Report, SourceFile, has_errors, quoted};

/// The format of these files, or the findings that say why it is unknown.
///
/// # Errors
/// Findings, at least one of them an error: unreadable text, no format or several fit, or too many files.
pub fn detect(files: &[SourceFile<'_>]) -> Result<Format, Vec<Finding>> {
    if let Some(format) = by_file_names(files) {
        return Ok(format);
    }
    let mut report = Report::new(files.first().map_or("", |file| file.path));
    let format = single(files, &mut report)
        .and_then(|file| read(file.bytes, Syntax::of(file.path, file.bytes), &mut report))
        .and_then(|root| of_document(&root, &mut report));
    let findings = report.finish();
    format.filter(|_| !has_errors(&findings)).ok_or(findings)
}

/// The format that one of the files identifies by its name, whatever it contains.
pub(crate) fn by_file_names(files: &[SourceFile<'_>]) -> Option<Format> {
    let identifies = |format: Format, path: &str| {
        path.rsplit(['/', '\\']).next().is_some_and(|name| format.marker_files().contains(&name))
    };
    Format::ALL.into_iter().find(|format| files.iter().any(|file| identifies(*format, file.path)))
}

/// The only file, if the format is a single document.
pub(crate) fn single<'a>(files: &'a [SourceFile<'a>], report: &mut Report) -> Option<&'a SourceFile<'a>> {
    if let [file] = files {
        return Some(file);
    }
    let message = format!("{} files were given, but this format is one file", files.len());
    report.add(Finding::new(FILE_COUNT, Span::START, message));
    None
}

/// The format of a document; reports if none fits, or more than one.
pub(crate) fn of_document(root: &Node, report: &mut Report) -> Option<Format> {
    let fitting: Vec<Format> = Format::ALL.into_iter().filter(|format| format.fits(root)).collect();
    match fitting.as_slice() {
        [format] => return Some(*format),
        [] => {
            let finding = none_fits(root, report);
            report.add(finding);
        }
        several => {
            let names: Vec<&str> = several.iter().map(|format| format.name()).collect();
            let message = format!("the file matches {}", names.join(" and "));
            let finding = Finding::new(FORMAT_AMBIGUOUS, root.span, message).allowed(names);
            report.add(finding.hint("name the format"));
        }
    }
    None
}

fn none_fits(root: &Node, report: &mut Report) -> Finding {
    let found = match &root.value {
        Value::Map(entries) => {
            let keys: Vec<String> =
                entries.iter().take(SHOWN_KEYS).map(|(key, _)| quoted(&key.text)).collect();
            let more = if entries.len() > SHOWN_KEYS { " and more" } else { "" };
            format!(
                "a map with {}{more}",
                if keys.is_empty() { "no key".to_owned() } else { keys.join(", ") }
            )
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_)
        | Value::Unread) => other.kind().to_owned(),
    };
    let looked_for: Vec<String> =
        Format::ALL.into_iter().map(|format| format!("{}: {}", format.name(), format.marker())).collect();
    let (span, nearest) = mistyped(root, report).unwrap_or((root.span, None));
    Finding::new(FORMAT_UNKNOWN, span, format!("this matches none of the formats: it is {found}"))
        .allowed(looked_for.iter().map(String::as_str))
        .nearest(nearest)
        .hint("name the format to see what is missing")
}

const SHOWN_KEYS: usize = 8;

/// The first key that is close to a marker key, and that marker key.
fn mistyped(root: &Node, report: &mut Report) -> Option<(Span, Option<String>)> {
    let markers = || Format::ALL.into_iter().flat_map(|format| format.marker_keys().iter().copied());
    let missing = || markers().filter(|key| !has(root, key));
    let entries = root.as_map().unwrap_or_default().iter().take(SHOWN_KEYS);
    let mut own = entries.filter(|(key, _)| markers().all(|marker| marker != key.text));
    own.find_map(|(key, _)| Some((key.span, Some(report.nearest(&key.text, missing())?))))
}
