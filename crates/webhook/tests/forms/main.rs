//! The formats of webhooks, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that fails here has found what it looks for")]

mod bodies;
mod retries;
mod sources;
mod standards;
