//! Starts of sessions.

use switchward_machine::Digest;
use switchward_state::session::Start;

/// A start of this version of a definition by this role, with defaults for the rest.
pub fn start_of(
    definition: impl Into<String>,
    version: u32,
    machine: Digest,
    role: impl Into<String>,
) -> Start {
    Start {
        definition: definition.into(),
        version,
        machine,
        role: role.into(),
        key: None,
        labels: Vec::new(),
        input: Vec::new(),
        queue: Vec::new(),
        contact: None,
        workflows: Vec::new(),
        assistant: None,
        message: None,
        callees: Vec::new(),
        reply_tenant: None,
        audience: Vec::new(),
        reminders: None,
        quorum: None,
        escalation: Vec::new(),
        any_approver_address: false,
        policies: Vec::new(),
    }
}
