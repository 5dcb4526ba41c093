//! What a security review has tried, tried again on a server as a process.

mod bodies;
pub(crate) mod dns;
mod files;
mod lists;
mod machine;
mod mail;
mod results;
pub(crate) mod signer;
mod silent;
mod streams;

/// The approver in these tests, and their domain.
const APPROVER: &str = "lead@example.com";
const DOMAIN: &str = "example.com";
