//! What every channel needs to know of a job beside its input.

use std::time::Duration;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header that carries the trace. Source: W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// The tenant, the deadline and the headers of one attempt at a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallContext<'j> {
    /// The number of the tenant, whose egress rules apply.
    pub(crate) tenant: u32,
    /// How long the attempt may take.
    pub(crate) deadline: Duration,
    /// The same for all attempts.
    pub(crate) idempotency_key: &'j str,
    /// The trace that the job belongs to.
    pub(crate) traceparent: Option<&'j str>,
}

impl CallContext<'_> {
    /// Adds the idempotency key, unless the headers have one.
    pub(super) fn add_key(&self, headers: &mut Vec<(String, String)>) {
        add(headers, IDEMPOTENCY_KEY, Some(self.idempotency_key));
    }

    /// Adds the trace, unless the headers have one.
    pub(super) fn add_trace(&self, headers: &mut Vec<(String, String)>) {
        add(headers, TRACEPARENT, self.traceparent);
    }
}

fn add(headers: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
    let own = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    headers.extend(value.filter(|_| !own).map(|value| (name.to_owned(), value.to_owned())));
}
