//! The formats of webhooks, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bodies;
mod retries;
mod sources;
mod standards;
