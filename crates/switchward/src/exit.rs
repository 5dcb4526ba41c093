//! How a command ends: its exit code, and what it prints on the standard error if it did not do what was asked.

mod refused;

use http::StatusCode;
use serde_json::{Value, json};
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;
use switchward_gateway::Reason;
use tonic::{Code, Status};

use crate::args::Output;
use crate::output::{HELP, PROBLEM, clean};
use refused::Refused;

/// An error that has no better code.
const FAILED: u8 = 1;
/// Called wrongly.
pub(crate) const USAGE: u8 = 2;
/// Not found.
const NOT_FOUND: u8 = 3;
/// In conflict with what is, or a precondition does not hold.
const CONFLICT: u8 = 4;
/// Something was found: errors of a definition, an expectation that does not hold.
pub(crate) const FINDINGS: u8 = 5;
/// Denied.
pub(crate) const DENIED: u8 = 6;
/// Still waiting for somebody.
pub(crate) const WAITING: u8 = 7;
/// The server cannot be reached, or cannot answer now.
const UNAVAILABLE: u8 = 69;

/// The end of a command that did not simply do what was asked.
#[must_use = "an end does nothing until it is reported"]
#[derive(Debug)]
pub(crate) struct Exit(Box<Content>);

#[derive(Debug)]
struct Content {
    code: u8,
    cause: Cause,
    /// What to do, or to type, next.
    next: Vec<String>,
    output: Output,
}

#[derive(Debug)]
enum Cause {
    /// Everything has been printed.
    Reported,
    /// This command's own words.
    Ours(String),
    /// The server's words.
    Server(Refused),
}

impl Exit {
    /// Ends with this code; everything has been printed.
    pub(crate) fn reported(code: u8) -> Self {
        Self::new(code, Cause::Reported)
    }

    /// Ends because something of this machine's failed. A reader that went away is no failure.
    pub(crate) fn failed(error: anyhow::Error) -> Self {
        let gone = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
        if error.chain().filter_map(|cause| cause.downcast_ref()).any(gone) {
            return Self::reported(0);
        }
        Self::new(FAILED, Cause::Ours(format!("{error:#}")))
    }

    /// Ends because it was called wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, Cause::Ours(message.into()))
    }

    /// Ends because what it is about does not exist.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, Cause::Ours(message.into()))
    }

    /// Ends because of a conflict; something else has to be done first.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(CONFLICT, Cause::Ours(message.into()))
    }

    /// Ends because what was looked through is not whole.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(FINDINGS, Cause::Ours(message.into()))
    }

    /// Ends because nobody answers.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(UNAVAILABLE, Cause::Ours(message.into()))
    }

    /// Ends because a message went into quarantine: it was not understood, or nothing waits for it.
    pub(crate) fn quarantined() -> Self {
        Self::reported(CONFLICT)
    }

    /// Ends because the server refused by plain HTTP, in these words.
    pub(crate) fn answered(status: StatusCode, message: &str) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DENIED,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                UNAVAILABLE
            }
            status if status.is_client_error() => USAGE,
            _ => FAILED,
        };
        let message =
            if message.is_empty() { format!("the server answers {status}") } else { message.to_owned() };
        Self::new(code, Cause::Ours(message))
    }

    /// Ends because the server refused.
    pub(crate) fn refused(status: &Status) -> Self {
        let refused = Refused::of(status);
        let (code, next) = (refused.exit_code(), refused.next());
        let exit = Self::new(code, Cause::Server(refused));
        next.into_iter().fold(exit, Self::next)
    }

    fn new(code: u8, cause: Cause) -> Self {
        Self(Box::new(Content { code, cause, next: Vec::new(), output: Output::Text }))
    }

    /// With what to do, or to type, next.
    pub(crate) fn next(mut self, line: impl Into<String>) -> Self {
        self.0.next.push(line.into());
        self
    }

    /// With the one of what is allowed that is nearest to what was typed.
    pub(crate) fn typed(mut self, word: &str) -> Self {
        if let Cause::Server(refused) = &mut self.0.cause {
            refused.find_nearest(word);
        }
        self
    }

    /// With a field of the request called by the flag that it was typed as.
    pub(crate) fn calling(mut self, field: &str, flag: &str) -> Self {
        if let Cause::Server(refused) = &mut self.0.cause {
            refused.call(field, flag);
        }
        self
    }

    /// Reports in the format that was asked for.
    pub(crate) fn in_format(mut self, output: Output) -> Self {
        self.0.output = output;
        self
    }

    /// The message, without advice.
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

    /// What the server would have accepted, if that is a closed list.
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
