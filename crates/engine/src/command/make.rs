//! How a command of the server is made, and what a command takes along on its way.

use switchward_machine::TenantId;

use super::{Actor, Body, Command, Scope, Settings};
use crate::policy::LimitCheck;

impl Command {
    /// A wish of the server itself, which nobody repeats and no trace causes.
    #[must_use]
    pub fn of_server(tenant: TenantId, scope: Scope, body: Body) -> Self {
        Self {
            tenant,
            scope,
            request: None,
            expected_sequence: None,
            actor: Actor::server(),
            settings: Settings::default(),
            trace: None,
            body,
        }
    }

    /// Takes along what the ledger said; nothing happens to a command that asks none.
    pub fn take_along(&mut self, limits: Option<LimitCheck>) {
        if let Body::Authorize(call) = &mut self.body {
            call.limits = limits;
        } else if let Body::DecideGate(decide) = &mut self.body {
            decide.limits = limits;
        } else if let Body::RecordReply(reply) = &mut self.body {
            reply.limits = limits;
        }
    }
}
