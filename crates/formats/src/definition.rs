//! A definition: the files that it is written in, and what compiling them gives.

use switchward_machine::{Digest, Machine};

use crate::{Call, Finding, Format};

/// One file of a definition.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'a> {
    /// As the caller names it; with `/` between folders. Its extension distinguishes JSON from YAML.
    pub path: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
}

/// The result of compiling a definition's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// As given by the caller or detected from the files; `None` if it is unknown.
    pub format: Option<Format>,
    /// All of them, by position.
    pub findings: Vec<Finding>,
    /// Present exactly if no finding is an error.
    pub definition: Option<Definition>,
}

/// A definition that can be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The process's name, under which it is deployed.
    pub name: String,
    /// What it compiles to.
    pub machine: Machine,
    /// The digest of the source's bytes: the same bytes are the same version.
    pub source: Digest,
    /// The other definitions that it calls, each with the span of its name.
    pub calls: Vec<Call>,
}
