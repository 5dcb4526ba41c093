//! Checkpoint processes: states with questions and answers, and a policy for tools. See
//! `docs/formats-checkpoint.md`.
//!
//! Where the page is silent: every `null` except that of `next` is an absent key; a text may be empty if it is only shown
//! (`question`, `initial_prompt`) but not if it names something; a name of a state or an answer is any text without
//! control characters.

mod answers;
mod graph;
mod idle;
pub(crate) mod mail;
pub(crate) mod policy;
mod process;
mod states;
pub(crate) mod tools;

pub(crate) use process::compile;
