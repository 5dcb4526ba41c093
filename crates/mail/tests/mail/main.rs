//! Whole messages: what must never decide, what must, and what others have collected.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod genuine;
mod shapes;
mod world;
