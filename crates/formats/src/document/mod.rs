//! One located tree, read from JSON or from YAML.
//!
//! [`read`] is the door: bytes in, a [`Node`] and findings out. A node knows where it stands; a number keeps its
//! text; a map keeps its keys in the author's order, each once. What JSON and YAML disagree about is refused rather
//! than guessed: the same document in both gives the same tree.
//!
//! Two parsers and one builder each were chosen over a YAML reader for both, because a `.json` file is to be refused
//! wherever another program would refuse it; and over a deserialiser, because that stops at the first wrong value
//! and forgets where the right ones stood.

mod aliases;
mod inside;
mod json;
mod node;
mod places;
mod read;
mod scalar;
mod tags;
mod yaml;

pub use inside::Source;
pub use node::{Entry, Key, Node, Span, Value};
pub use read::{Syntax, read};
