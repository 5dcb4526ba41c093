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

/// Who is asked in these tests, and the domain that they write from.
const APPROVER: &str = "lead@example.com";
const DOMAIN: &str = "example.com";
