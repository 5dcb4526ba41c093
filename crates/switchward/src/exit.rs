//! The end of a command: its exit code, and the error that it prints on the standard error.

mod refused;

use http::StatusCode;
use refused::Refused;
use serde_json::{Value, json};
use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use switchward_gateway::Reason;
use tonic::{Code, Status};

use crate::args::Output;
use crate::output::{HELP, PROBLEM, clean};

/// An error that has no better code.
const FAILED: u8 = 1;
/// A usage error.
pub(crate) const USAGE: u8 = 2;
/// What was named does not exist.
const NOT_FOUND: u8 = 3;
/// A conflict with the current state, or a precondition that does not hold.
const CONFLICT: u8 = 4;
/// Findings: errors of a definition, an expectation that does not hold.
pub(crate) const FINDINGS: u8 = 5;
/// The credential is missing or wrong, or its role is not sufficient.
pub(crate) const DENIED: u8 = 6;
/// Waiting for a person.
pub(crate) const WAITING: u8 = 7;
/// The server cannot be reached, or cannot answer now.
const UNAVAILABLE: u8 = 69;

/// How long the end of a process waits until it has said why it ends.
const LAST_LINE_MAX: Duration = Duration::from_secs(2);
/// How long the stop of a server may take, the 10 seconds of open calls included. With [`LAST_LINE_MAX`] it is less than the 20
/// seconds that are promised.
const STOP_MAX: Duration = Duration::from_secs(17);

/// The exit codes and their meanings, as the help shows them.
pub(crate) const CODES: [(u8, &str); 9] = [
    (0, "success"),
    (FAILED, "any other error"),
    (USAGE, "usage error"),
    (NOT_FOUND, "not found"),
    (CONFLICT, "conflict with the current state"),
    (FINDINGS, "findings: a definition has errors, or an expectation does not hold"),
    (DENIED, "denied"),
    (WAITING, "waiting for a person"),
    (UNAVAILABLE, "the server cannot be reached, or cannot answer now"),
];

/// Prints a line of this process on the standard error. If it cannot be written, it is lost: `eprintln!` would panic.
pub(crate) fn print_error_line(line: &str) {
    let _lost = std::io::stderr().write_all(format!("switchward: {line}\n").as_bytes());
}

/// Ends this process at once, because its disk or its state can no longer be trusted. It also ends if it cannot say why:
/// to a pipe that nobody reads, into a file on the disk that fails, or to a log that waits for this disk.
pub(crate) fn end_process(why: &str) -> ! {
    let line = why.to_owned();
    within(LAST_LINE_MAX, move || print_error_line(&line));
    std::process::exit(i32::from(FAILED))
}

/// Ends this process if it has not ended by itself within [`STOP_MAX`] from now: what it waits for, such as a disk, may never
/// answer.
pub(crate) fn limit_stop() {
    let begun = thread::Builder::new().name("stop-limit".to_owned()).spawn(|| {
        thread::sleep(STOP_MAX);
        end_process(
            "the stop took longer than 17 seconds, such as on a disk that does not answer; nothing that was acknowledged \
             is lost, and the next start replays the log",
        );
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "failed to limit the time of the stop");
    }
}

/// Does something on another thread, if there can be one, and waits for it no longer than this.
fn within(longest: Duration, act: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel::<()>();
    let begun = thread::Builder::new().name("last-line".to_owned()).spawn(move || {
        act();
        drop(done);
    });
    if begun.is_ok() {
        // Nothing is sent: it ends when the other end is dropped, or it is late.
        let _done_or_late = wait.recv_timeout(longest);
    }
}

/// Nobody reads the standard output, or the standard error, of this process any more.
#[derive(Debug)]
struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the output is closed")
    }
}

impl std::error::Error for OutputClosed {}

/// The error of a write to the standard output or the standard error of this process: a closed one ends a command
/// quietly, see [`Exit::failed`].
pub(crate) fn unwritten(error: std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::BrokenPipe { OutputClosed.into() } else { error.into() }
}

/// The end of a command that did not succeed, or that has a special exit code.
#[must_use = "an exit does nothing until it is reported"]
#[derive(Debug)]
pub(crate) struct Exit(Box<Content>);

#[derive(Debug)]
struct Content {
    code: u8,
    cause: Cause,
    /// What to do next.
    next: Vec<String>,
    output: Output,
}

#[derive(Debug)]
enum Cause {
    /// Everything has been printed.
    Reported,
    /// An error of this program.
    Ours(String),
    /// The server has refused, with its code and reason.
    Server(Refused),
}

impl Exit {
    /// Ends with this code; everything has been printed.
    pub(crate) fn reported(code: u8) -> Self {
        Self::new(code, Cause::Reported)
    }

    /// Ends because an operation on this machine failed. A closed output, see [`unwritten`], is not a failure; any other
    /// pipe or connection that the other side has closed is one.
    pub(crate) fn failed(error: anyhow::Error) -> Self {
        if error.chain().any(|cause| cause.is::<OutputClosed>()) {
            return Self::reported(0);
        }
        Self::new(FAILED, Cause::Ours(format!("{error:#}")))
    }

    /// Lets a command go on whose output is closed and whose exit code says what came of it, or that has more to do: a denied
    /// call must not end with success because nobody reads that it is denied.
    ///
    /// # Errors
    /// It is another end.
    pub(crate) fn unless_output_closed(self) -> Result<(), Self> {
        let closed = self.0.code == 0 && matches!(self.0.cause, Cause::Reported);
        if closed { Ok(()) } else { Err(self) }
    }

    /// Ends with a usage error.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, Cause::Ours(message.into()))
    }

    /// Ends because the resource does not exist.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, Cause::Ours(message.into()))
    }

    /// Ends because of a conflict with the current state.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(CONFLICT, Cause::Ours(message.into()))
    }

    /// Ends because what was checked is damaged.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(FINDINGS, Cause::Ours(message.into()))
    }

    /// Ends because the server cannot be reached or cannot answer.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(UNAVAILABLE, Cause::Ours(message.into()))
    }

    /// Ends because a message was quarantined.
    pub(crate) fn quarantined() -> Self {
        Self::reported(CONFLICT)
    }

    /// Ends because the server refused a plain HTTP request with this message.
    pub(crate) fn answered(status: StatusCode, message: &str) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DENIED,
            StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS => UNAVAILABLE,
            status if status.is_client_error() => USAGE,
            _ => FAILED,
        };
        let message = if message.is_empty() {
            format!("the server responded with {status}")
        } else {
            message.to_owned()
        };
        Self::new(code, Cause::Ours(message))
    }

    /// Ends because the server refused a call.
    pub(crate) fn refused(status: &Status) -> Self {
        let refused = Refused::of(status);
        let (code, next) = (refused.exit_code(), refused.next());
        let exit = Self::new(code, Cause::Server(refused));
        next.into_iter().fold(exit, Self::next)
    }

    fn new(code: u8, cause: Cause) -> Self {
        Self(Box::new(Content { code, cause, next: Vec::new(), output: Output::Text }))
    }

    /// Adds a line about what to do next.
    pub(crate) fn next(mut self, line: impl Into<String>) -> Self {
        self.0.next.push(line.into());
        self
    }

    /// Adds the allowed value that is nearest to the given one.
    pub(crate) fn typed(mut self, word: &str) -> Self {
        if let Cause::Server(refused) = &mut self.0.cause {
            refused.find_nearest(word);
        }
        self
    }

    /// Replaces the name of a request's field by the name of its option.
    pub(crate) fn calling(mut self, field: &str, flag: &str) -> Self {
        if let Cause::Server(refused) = &mut self.0.cause {
            refused.call(field, flag);
        }
        self
    }

    /// Sets the output format of the report.
    pub(crate) fn in_format(mut self, output: Output) -> Self {
        self.0.output = output;
        self
    }

    /// The message, without hints.
    pub(crate) fn message(&self) -> &str {
        match &self.0.cause {
            Cause::Reported => "",
            Cause::Ours(message) => message,
            Cause::Server(refused) => refused.message(),
        }
    }

    /// The server's reason, if the server refused.
    pub(crate) fn reason(&self) -> Option<&str> {
        match &self.0.cause {
            Cause::Server(refused) => Some(refused.reason()),
            Cause::Reported | Cause::Ours(_) => None,
        }
    }

    /// The values that the server accepts, if that is a closed list.
    pub(crate) fn allowed(&self) -> Vec<String> {
        match &self.0.cause {
            Cause::Server(refused) => refused.allowed(),
            Cause::Reported | Cause::Ours(_) => Vec::new(),
        }
    }

    /// Prints the error on the standard error and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let text = match (&self.0.cause, self.0.output) {
            (Cause::Reported, _) => String::new(),
            (Cause::Ours(_) | Cause::Server(_), Output::Json | Output::Jsonl) => format!("{}\n", self.json()),
            (Cause::Ours(message), Output::Text) => self.text(message, &[]),
            (Cause::Server(refused), Output::Text) => self.text(refused.message(), &refused.facts()),
        };
        // If the standard error is gone, nothing can be reported.
        let _nobody = anstream::stderr().lock().write_all(text.as_bytes());
        ExitCode::from(self.0.code)
    }

    fn text(&self, message: &str, facts: &[(&str, String)]) -> String {
        let mut text = format!("{PROBLEM}error:{PROBLEM:#} {}\n", clean(message));
        let next = self.0.next.iter().map(|line| ("next", line.clone()));
        for (label, fact) in facts.iter().cloned().chain(next) {
            text.push_str(&format!("  {HELP}{label:<8}{HELP:#} {}\n", clean(&fact)));
        }
        text
    }

    /// `{"error":{...}}`, with the server's code, reason, message and details if the server refused.
    fn json(&self) -> Value {
        let mut error = match &self.0.cause {
            Cause::Reported => json!({}),
            Cause::Ours(message) => self.own_words(message),
            Cause::Server(refused) => refused.json(),
        };
        if !self.0.next.is_empty() {
            error["next"] = self.0.next.clone().into();
        }
        json!({ "error": error })
    }

    /// The error as a server would describe it, if it is not a server's.
    fn own_words(&self, message: &str) -> Value {
        let (code, reason) = match self.0.code {
            USAGE => (Code::InvalidArgument, Some(Reason::FieldInvalid)),
            NOT_FOUND => (Code::NotFound, Some(Reason::NotFound)),
            CONFLICT => (Code::FailedPrecondition, None),
            UNAVAILABLE => (Code::Unavailable, None),
            _ => (Code::Unknown, None),
        };
        let mut error = json!({ "code": refused::word(code), "message": message });
        if let Some(reason) = reason {
            error["reason"] = reason.word().into();
        }
        error
    }
}

impl From<anyhow::Error> for Exit {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(error)
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.into())
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        Self::refused(&status)
    }
}

#[cfg(test)]
mod tests;
