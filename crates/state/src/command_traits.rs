//! What each kind of command says of itself. Each aggregate has the table of its own kinds.

use switchward_machine::TenantId;

use crate::{AdmissionClass, ScopeKind};

/// What a kind of command says of itself. It holds for each command of the kind, whatever the state is.
#[expect(clippy::struct_excessive_bools, reason = "each answers another part of the program")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTraits {
    /// The scopes that the command may have.
    pub scope: ScopeKind,
    /// What the command does to the load of a shard.
    pub admission: AdmissionClass,
    /// Whether the command makes the stored data grow, see [`Body::grows`](crate::Body::grows).
    pub grows: bool,
    /// Whether the command is refused while its tenant is at its quota of bytes, see [`Body::fills`](crate::Body::fills).
    pub fills: bool,
    /// What its caller is shown after the command.
    pub shows: Shown,
    /// Whether the command decides something about a gate.
    pub decides_gate: bool,
    /// Whether limits in a ledger may have to be asked before the command is decided.
    pub may_need_ledger: bool,
    /// Of which tenant the command changes what every shard must know; `None` if of none.
    pub changes_tenancy: Option<ChangedTenant>,
    /// Whether the command also acts on a session whose data is being removed.
    pub in_removed_session: bool,
    /// Whether the command also acts for a tenant that is being deleted or has been deleted.
    pub in_deleted_tenant: bool,
}

/// What the caller of a command is shown after it, beside the reply's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// No more than the reply has.
    Nothing,
    /// Where the session stands.
    Session,
    /// The gate that the command is about.
    Gate,
}

/// A tenant whose record a command changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedTenant {
    /// The command's own.
    Own,
    /// Another one: an operator's command is about it.
    Named(TenantId),
}

impl CommandTraits {
    /// A kind of this scope and class. A caller's step fills its tenant's quota. Nothing else holds of it.
    pub(crate) const fn of(scope: ScopeKind, admission: AdmissionClass) -> Self {
        Self {
            scope,
            admission,
            grows: false,
            fills: matches!(admission, AdmissionClass::Begins),
            shows: Shown::Nothing,
            decides_gate: false,
            may_need_ledger: false,
            changes_tenancy: None,
            in_removed_session: false,
            in_deleted_tenant: false,
        }
    }

    pub(crate) const fn grows(self) -> Self {
        Self { grows: true, ..self }
    }

    /// It brings data in from outside.
    pub(crate) const fn fills(self) -> Self {
        Self { fills: true, ..self }
    }

    pub(crate) const fn shows(self, shows: Shown) -> Self {
        Self { shows, ..self }
    }

    pub(crate) const fn decides_gate(self) -> Self {
        Self { decides_gate: true, ..self }
    }

    pub(crate) const fn may_need_ledger(self) -> Self {
        Self { may_need_ledger: true, ..self }
    }

    pub(crate) const fn changes_tenancy(self, of: ChangedTenant) -> Self {
        Self { changes_tenancy: Some(of), ..self }
    }

    pub(crate) const fn in_removed_session(self) -> Self {
        Self { in_removed_session: true, ..self }
    }

    pub(crate) const fn in_deleted_tenant(self) -> Self {
        Self { in_deleted_tenant: true, ..self }
    }
}
