//! Findings for people: one block each, with the source line and a mark under what it is about.

use crate::limits::LINE_CHARS_MAX;
use crate::quote::shown;
use crate::{Finding, Severity};

/// The role of a piece of text, so that a caller can colour it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Sentences.
    Plain,
    /// `error[SW1204]`.
    Error,
    /// `warning[SW1205]`.
    Warning,
    /// `notice[SW1230]`.
    Notice,
    /// File, line and column, and the frame of the source line.
    Frame,
    /// The source line.
    Source,
    /// The mark under it.
    Mark,
    /// The nearest and allowed values, or the hint.
    Help,
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which part of a finding it is; a terminal colours it by that.
    pub style: Style,
    /// Only line feeds in it move a terminal's cursor.
    pub text: String,
}

/// The findings of one file as pieces of text, one block each, with an empty line between two. `source` is what the findings
/// are about; without it the source lines are left out.
#[must_use]
pub fn render_segments(findings: &[Finding], source: &[u8]) -> Vec<Segment> {
    let source = String::from_utf8_lossy(source);
    let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
    let lines: Vec<&str> = lines(source).collect();
    let mut out = Out::default();
    for (at, finding) in findings.iter().enumerate() {
        if at > 0 {
            out.push(Style::Plain, "\n");
        }
        block(finding, &lines, &mut out);
    }
    out.segments
}

#[derive(Default)]
struct Out {
    segments: Vec<Segment>,
}

impl Out {
    fn push(&mut self, style: Style, text: impl Into<String>) {
        self.segments.push(Segment { style, text: text.into() });
    }
}

/// As the reader counts them: a line ends with a line feed, a carriage return, or both.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    source.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn block(finding: &Finding, lines: &[&str], out: &mut Out) {
    let style = match finding.severity {
        Severity::Error => Style::Error,
        Severity::Warning => Style::Warning,
        Severity::Notice => Style::Notice,
    };
    out.push(style, format!("{}[{}]", finding.severity.word(), finding.code));
    out.push(Style::Plain, format!(": {}\n", clean(&finding.message)));
    let line_number = finding.line.to_string();
    let margin = " ".repeat(line_number.len());
    let location = format!("{margin}--> {}:{}:{}\n", clean(&finding.file), finding.line, finding.column);
    out.push(Style::Frame, location);
    let line = usize::try_from(finding.line - 1).ok().and_then(|at| lines.get(at));
    if let Some(line) = line.filter(|line| !line.trim().is_empty()) {
        let window = Window::of(line, finding);
        out.push(Style::Frame, format!("{line_number} | "));
        out.push(Style::Source, format!("{}\n", window.text));
        out.push(Style::Frame, format!("{margin} | "));
        out.push(Style::Mark, format!("{}{}\n", " ".repeat(window.before), "^".repeat(window.marked)));
    }
    let mut help = |label: &str, text: String| {
        out.push(Style::Frame, format!("{margin} = "));
        out.push(Style::Help, format!("{label}: {}\n", clean(&text)));
    };
    if let Some(nearest) = &finding.nearest {
        help("nearest", nearest.clone());
    }
    if !finding.allowed.is_empty() {
        help("allowed", finding.allowed.join(", "));
    }
    if let Some(hint) = &finding.hint {
        help("hint", hint.clone());
    }
}

/// The part of a source line that is shown.
struct Window {
    text: String,
    /// Characters before the mark.
    before: usize,
    /// The width of the mark, characters.
    marked: usize,
}

impl Window {
    /// The line from its start if the mark is then seen, else from shortly before the mark.
    fn of(line: &str, finding: &Finding) -> Self {
        const LEAD: usize = 20;
        let column = usize::try_from(finding.column - 1).unwrap_or(usize::MAX);
        let first = if column + LEAD < LINE_CHARS_MAX { 0 } else { column - LEAD };
        let chars: Vec<char> = line.chars().skip(first).take(LINE_CHARS_MAX).map(printable).collect();
        let before = column - first;
        let width = usize::try_from(finding.width).unwrap_or(usize::MAX);
        // The reader's spans of quoted YAML texts reach over the blanks that follow.
        let under: String = chars.iter().skip(before).take(width).collect();
        let marked = under.trim_end().chars().count().max(1);
        Self { text: chars.into_iter().collect::<String>().trim_end().to_owned(), before, marked }
    }
}

/// A tab has a column of its own, so it is shown as one.
fn printable(c: char) -> char {
    if c == '\t' { ' ' } else { shown(c) }
}

fn clean(text: &str) -> String {
    text.chars().map(shown).collect()
}
