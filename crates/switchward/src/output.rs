//! Output: results on the standard output, for people or for programs, and hints on the standard error.
//!
//! Colours are removed if the output is not a terminal or if `NO_COLOR` is set.

mod table;

use anstyle::{AnsiColor, Style};
use prost::Message;
use prost_reflect::DynamicMessage;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use switchward_api::{PACKAGE, descriptor_pool};
use switchward_formats::Finding;

use crate::args::Output;
use crate::exit::{Exit, unwritten};

pub(crate) use switchward_messages::clean;
pub(crate) use table::Table;

/// An error.
pub(crate) const PROBLEM: Style = AnsiColor::Red.on_default().bold();
/// A success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Something that waits or needs attention.
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
/// Labels.
pub(crate) const HELP: Style = AnsiColor::Cyan.on_default();
/// Emphasis.
pub(crate) const STRONG: Style = Style::new().bold();
/// Details.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Writes to the standard output, without colours if it is no terminal.
///
/// # Errors
/// The output cannot be written; after a closed pipe, the command ends quietly.
pub(crate) fn print(text: &str) -> Result<(), Exit> {
    let mut out = anstream::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(written.map_err(unwritten)?)
}

/// Writes bytes to the standard output as they are.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    Ok(written.map_err(unwritten)?)
}

/// Prints the responses of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    output: Output,
    quiet: bool,
}

impl Printer {
    /// A printer that also prints hints for people.
    pub(crate) fn new(output: Output) -> Self {
        Self { output, quiet: false }
    }

    /// A printer without hints.
    pub(crate) fn quiet(output: Output) -> Self {
        Self { output, quiet: true }
    }

    /// Returns true if the output is for programs.
    pub(crate) fn is_json(self) -> bool {
        self.output.json()
    }

    /// Prints a message of the API: as JSON for programs, as the given text for people.
    pub(crate) fn message<M: Message>(
        self,
        name: &str,
        message: &M,
        text: impl FnOnce() -> String,
    ) -> Result<(), Exit> {
        if self.output.json() { print(&format!("{}\n", json(name, message)?)) } else { print(&text()) }
    }

    /// Prints a list: as one message, as one message for each entry, or as a text.
    pub(crate) fn list<M: Message, E: Message>(
        self,
        name: &str,
        message: &M,
        entry_name: &str,
        entries: &[E],
        text: impl FnOnce() -> String,
    ) -> Result<(), Exit> {
        match self.output {
            Output::Text => print(&text()),
            Output::Json => print(&format!("{}\n", json(name, message)?)),
            Output::Jsonl => {
                entries.iter().try_for_each(|entry| print(&format!("{}\n", json(entry_name, entry)?)))
            }
        }
    }

    /// Prints a warning for people on the standard error.
    pub(crate) fn warn(self, line: &str) {
        if !self.output.json() {
            // A lost warning is not an error.
            let _lost = writeln!(anstream::stderr().lock(), "{CARE}warning{CARE:#}  {}", clean(line));
        }
    }

    /// Prints what is being waited for, for people, on the standard error.
    pub(crate) fn progress(self, line: &str) {
        if !self.quiet && !self.output.json() {
            // A lost line is not an error.
            let _lost = writeln!(anstream::stderr().lock(), "{FAINT}{}{FAINT:#}", clean(line));
        }
    }

    /// Prints a hint for people on the standard error.
    pub(crate) fn advice(self, line: &str) {
        if !self.quiet && !self.output.json() {
            // A lost hint is not an error.
            let _lost = writeln!(anstream::stderr().lock(), "{HELP}next{HELP:#}  {}", clean(line));
        }
    }
}

/// A message of the API as JSON, as the server's HTTP API returns it. `name` is the message's name inside the package.
///
/// # Errors
/// The API has no such message, or it has no JSON form; both are bugs of this program.
pub(crate) fn json<M: Message>(name: &str, message: &M) -> Result<String, Exit> {
    let descriptor = descriptor_pool().get_message_by_name(&format!("{PACKAGE}.{name}"));
    let descriptor = descriptor.ok_or_else(|| anyhow::anyhow!("the API has no message {name}"))?;
    let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())
        .map_err(anyhow::Error::from)?;
    Ok(serde_json::to_string(&message).map_err(anyhow::Error::from)?)
}

/// Labels and values, one per line; empty values are omitted.
pub(crate) fn card(rows: &[(&str, String)]) -> String {
    let filled = || rows.iter().filter(|(_, value)| !value.is_empty());
    let width = filled().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, value) in filled() {
        let indent = format!("\n{}", " ".repeat(width + 2));
        let value = value.trim_end().replace('\n', &indent);
        put(&mut text, format_args!("{HELP}{label:<width$}{HELP:#}  {value}\n"));
    }
    text
}

/// The findings of a file, each with its line.
pub(crate) fn findings(findings: &[Finding], source: &[u8]) -> String {
    use switchward_formats::Style as Part;
    let mut text = String::new();
    for segment in switchward_formats::render_segments(findings, source) {
        let style = match segment.style {
            Part::Plain | Part::Source => Style::new(),
            Part::Error | Part::Mark => PROBLEM,
            Part::Warning => CARE,
            Part::Notice => STRONG,
            Part::Frame => FAINT,
            Part::Help => HELP,
        };
        put(&mut text, format_args!("{style}{}{style:#}", segment.text));
    }
    text
}

/// Appends to a text.
pub(crate) fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing into a string cannot fail");
}

/// A word, quoted for a shell.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@=,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A duration such as `1h 1m 1s`, rounded up to seconds.
pub(crate) fn period(length: Duration) -> String {
    let mut seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    let mut parts = Vec::new();
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")] {
        if seconds >= unit {
            parts.push(format!("{}{name}", seconds / unit));
            seconds %= unit;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// A count with its noun: `1 step`, `2 steps`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_api::v1;

    #[test]
    fn json_is_that_of_the_api() {
        let reply = v1::DecideGateResponse {
            gate: Some(v1::Gate { name: "tenants/t/gates/g".into(), status: 2, ..v1::Gate::default() }),
            sequence: 7,
        };
        let expected =
            r#"{"gate":{"name":"tenants/t/gates/g","status":"GATE_STATUS_DECIDED"},"sequence":"7"}"#;
        assert_eq!(json("DecideGateResponse", &reply).unwrap(), expected);
    }

    #[test]
    fn periods_and_counts() {
        let period = |ms| super::period(Duration::from_millis(ms));
        assert_eq!(
            (period(0).as_str(), period(1).as_str(), period(3_661_000).as_str()),
            ("0s", "1s", "1h 1m 1s")
        );
        assert_eq!(period(3_600_000), "1h");
        assert_eq!((count(1, "step"), count(2, "step")), ("1 step".to_owned(), "2 steps".to_owned()));
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_must_be() {
        assert_eq!(
            (shell("n/a"), shell("not yet"), shell("it's")),
            ("n/a".into(), "'not yet'".into(), "'it'\\''s'".into())
        );
    }

    #[test]
    fn a_card_leaves_out_what_is_empty() {
        let text = card(&[("session", "ses_1".into()), ("key", String::new()), ("at", "a\nb".into())]);
        assert_eq!(
            anstream::adapter::strip_str(&text).to_string(),
            "session  ses_1\nat       a\n         b\n"
        );
    }
}
