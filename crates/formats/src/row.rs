//! The row of a format: everything that the crate and its callers ask about it.

use switchward_machine::Machine;

use crate::document::Node;
use crate::{Call, Naming, Report};

/// What there is to know about one format. Each format's folder has its own; `format.rs` lists them.
pub(crate) struct Row {
    /// The public name, in lower case with `_`. The API's value is `FORMAT_` with the same name in upper case.
    pub(crate) name: &'static str,
    /// How the format is recognised, for people.
    pub(crate) marker: &'static str,
    /// Keys of the outermost map that identify the format. If no format fits, a key that is close to one is named.
    pub(crate) marker_keys: &'static [&'static str],
    /// Names of files that identify the format, whatever they contain.
    pub(crate) marker_files: &'static [&'static str],
    /// Returns true if this document is recognised.
    pub(crate) fits: fn(&Node) -> bool,
    /// How a source is compiled; `None` if this build recognises the format and does not support it.
    pub(crate) compiler: Option<Compiler>,
}

/// Compiles a document, with the bytes that it was read from, to its name and its machine.
type Compile = fn(&Node, &[u8], &mut Report) -> Option<(String, Machine)>;

/// How the sources of a format are compiled, and what follows for their definitions.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    /// Returns `None` if no machine can be made; the report then has an error.
    pub(crate) compile: Compile,
    /// The definitions that a document calls, in the order of the source. Values that name no definition are left out.
    pub(crate) calls: fn(&Node) -> Vec<Call>,
    /// The names that its definitions can have.
    pub(crate) naming: Naming,
    /// What can be done with its definitions.
    pub(crate) use_as: UseAs,
}

/// What a definition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseAs {
    /// Sessions run it.
    Process,
    /// Sessions run it, and it takes the messages of a user: it can be one of several workflows of an assistant.
    Workflow,
    /// It is attached to other definitions or to a tenant; no session runs it.
    Policy,
}

/// Whether a map has a key, whatever its value.
pub(crate) fn has(root: &Node, key: &str) -> bool {
    root.get(key).is_some()
}

/// The calls of a format whose definitions call none.
pub(crate) fn no_calls(_: &Node) -> Vec<Call> {
    Vec::new()
}
