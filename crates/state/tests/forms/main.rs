//! The forms of what is stored and sent: one value of each in a golden file, and each of them read back.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed, and golden files are files"
)]

mod commands;
mod random;
mod replies;
mod stored;
