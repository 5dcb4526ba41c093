//! How a command of the server is made, and what is attached to a command on its way.

use switchward_machine::TenantId;

use crate::approval::ApprovalCommand;
use crate::catalogue::Settings;
use crate::policy::{LimitCheck, PolicyCommand};
use crate::{Actor, Body, Command, Scope};

impl Command {
    /// A command of the server itself, without a request id and a trace.
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

    /// Attaches the ledger's answer; a command that needs none stays as it is.
    pub fn take_along(&mut self, limits: Option<LimitCheck>) {
        if let Body::Policy(PolicyCommand::Authorize(call)) = &mut self.body {
            call.limits = limits;
        } else if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &mut self.body {
            decide.limits = limits;
        } else if let Body::Approval(ApprovalCommand::RecordReply(reply)) = &mut self.body {
            reply.limits = limits;
        }
    }
}
