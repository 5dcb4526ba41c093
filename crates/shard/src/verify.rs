//! Verification: each replica of a group takes the digest of its rows at one entry of the log, and the servers compare the
//! digests. Rows that differ come from a defect or a damaged disk. A replica whose digest differs from that of a majority
//! of the voters fails: it answers nothing any more, and its server must be replaced.
//!
//! The entry is a mark. It changes no rows, so it needs no place among the decisions: the leader writes it beside them. Each
//! replica takes its rows when it applies the mark, in the time that a list in memory is copied, and computes the digest
//! beside what it does next. So nothing waits for a verification.

mod answer;
mod judge;
mod leader;
mod round;
mod task;

pub use judge::{GroupVerification, ReplicaVerification, VerifyOutcome};
pub use round::NotVerified;

pub(crate) use answer::{digest, outvoted};
pub(crate) use leader::{write_digest_mark, write_mark};
pub(crate) use round::verify;
pub(crate) use task::work;
