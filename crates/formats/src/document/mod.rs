//! One located tree, read from JSON or from YAML.
//!
//! [`read`] is the entry point: bytes in, a [`Node`] and findings out. A node has a span; a number keeps its text; a map
//! keeps its keys in the author's order, each once. What JSON and YAML disagree about is refused rather than guessed:
//! the same document in both gives the same tree.
//!
//! Two parsers and one builder each were chosen over a YAML reader for both, because a `.json` file is to be refused
//! wherever another program would refuse it; and over a deserialiser, because that stops at the first wrong value
//! and loses the positions of the right ones.

mod aliases;
mod inside;
mod json;
mod line_index;
mod node;
mod read;
mod scalar;
mod tags;
mod yaml;

pub use inside::Source;
pub use node::{Entry, Key, Node, Span, Value};
pub use read::{Syntax, read};
