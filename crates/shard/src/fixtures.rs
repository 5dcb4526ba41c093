//! What unit tests share.

use switchward_engine::{Actor, Body, Command, Scope, Settings};
use switchward_machine::{SessionId, TenantId};

/// A command of the server itself for the tenant's first session.
pub(crate) fn command(tenant: TenantId, body: Body) -> Command {
    Command {
        tenant,
        scope: Scope::Session(SessionId([0; 16])),
        request: None,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: None,
        body,
    }
}
