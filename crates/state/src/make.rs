//! How a command of the server is made, and what is attached to a command on its way.

use switchward_machine::TenantId;

use crate::catalogue::Settings;
use crate::policy::LimitCheck;
use crate::{Actor, Body, Command, Scope};

impl Command {
    /// As [`of_server`](Self::of_server), for a body whose kind says its scope, see [`ScopeKind::own`](crate::ScopeKind::own).
    #[must_use]
    pub fn in_own_scope(tenant: TenantId, body: Body) -> Self {
        Self::of_server(tenant, body.traits().scope.own(), body)
    }

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
            address: None,
        }
    }

    /// Attaches the ledger's answer; a command that needs none stays as it is.
    pub fn take_along(&mut self, limits: Option<LimitCheck>) {
        if let Some(asked) = self.body.limits_mut() {
            *asked = limits;
        }
    }
}
