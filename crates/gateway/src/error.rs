//! Refusals as callers see them: one table from reason to gRPC code, and the `google.rpc` details.
//!
//! Every error that leaves the gateway carries exactly one `google.rpc.ErrorInfo` of [`DOMAIN`]. The table is
//! `proto/README.md#errors`; the reasons are those of the design's error table and never change their meaning.

mod reason;
mod refusal;
mod rejection;

pub use reason::Reason;
pub use refusal::{DOMAIN, QUARANTINED_MAIL, Refusal};
