//! What a server prints for a program when it is ready: one line of JSON.

use serde::{Serialize, Serializer};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::exit::unwritten;

/// The line of a ready server.
#[derive(Serialize)]
pub(crate) struct Ready {
    /// Where clients reach it, like `http://127.0.0.1:7400`; `None` if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// The address of its metrics, like `http://127.0.0.1:9464/metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// The keys of a development server; other servers print none.
    #[serde(flatten)]
    pub(crate) keys: Option<Keys>,
    /// Where everything is kept.
    #[serde(serialize_with = "as_text")]
    pub(crate) data_dir: PathBuf,
    /// Whether it survives the server.
    pub(crate) durable: bool,
    /// `system`, or `manual`.
    pub(crate) clock: &'static str,
}

/// The keys of a development server.
#[derive(Serialize)]
pub(crate) struct Keys {
    pub(crate) agent_key: String,
    pub(crate) person_key: String,
    pub(crate) worker_key: String,
}

/// JSON is text: what is no UTF-8 in a path is replaced.
fn as_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// Prints a value as one line of JSON on the standard output.
///
/// # Errors
/// The standard output cannot be written to.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(unwritten)
}

impl Ready {
    /// Prints the line.
    ///
    /// # Errors
    /// The standard output cannot be written to.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        print_json(self)
    }
}
