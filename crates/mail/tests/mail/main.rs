//! Whole messages: what must never decide, what must, and what others have collected.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod elsewhere;
mod forged;
mod genuine;
mod hand_signed;
mod harness;
mod hostile_text;
mod imap;
mod limits;
mod lmtp;
mod machines;
mod mutants;
mod others;
mod shapes;
mod sources;
