//! What a caller is shown of a gate.

use minicbor::{Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Machine, Node, OpenId, SessionId, TenantId};
use switchward_state::approval::{Closed, OpenGate, Warning};
use switchward_state::{Key, ReadRows, View, ViewError, machine_bytes};

use crate::approval::reach::Reach;
use crate::policy::machine_of;

/// A gate, open or closed, with the machine of its run.
#[derive(Debug, Clone, Encode, Decode)]
pub enum GateView {
    /// Somebody owes a decision; and who knows of that.
    #[n(0)]
    Open(#[n(0)] OpenGate, #[cbor(n(1), with = "machine_bytes")] Arc<Machine>, #[n(2)] Reach),
    /// It was decided or voided.
    #[n(1)]
    Closed(#[n(0)] Closed, #[cbor(n(1), with = "machine_bytes")] Arc<Machine>),
}

impl GateView {
    /// Returns the row of the open gate; for a closed one, as it was when it closed.
    #[must_use]
    pub fn open(&self) -> &OpenGate {
        match self {
            Self::Open(open, ..) => open,
            Self::Closed(closed, _) => &closed.open,
        }
    }

    /// Whom no mail about it has reached that was sent so far: addresses, while it is open.
    #[must_use]
    pub fn unreached(&self) -> &[String] {
        match self {
            Self::Open(_, _, reach) => &reach.unreached,
            Self::Closed(..) => &[],
        }
    }

    /// Whether it is open and nobody who may decide knows of it by mail.
    #[must_use]
    pub fn unnotified(&self) -> bool {
        if let Self::Open(_, _, reach) = self { reach.unnotified } else { false }
    }

    /// What a reader of it should know, while it is open.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        if let Self::Open(_, _, reach) = self { &reach.warnings } else { &[] }
    }

    /// Whether this address is asked and can no longer decide, because the directory does not lead to it any more.
    #[must_use]
    pub fn has_lost(&self, address: &str) -> bool {
        self.warnings().iter().any(|warning| {
            let Warning::NoLongerListed { who } = warning else { return false };
            who.iter().any(|one| one.eq_ignore_ascii_case(address))
        })
    }

    /// How many inputs of its run wait for it to close, while it is open.
    #[must_use]
    pub fn held(&self) -> u32 {
        if let Self::Open(_, _, reach) = self { reach.held } else { 0 }
    }

    /// The machine of its run.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        match self {
            Self::Open(_, machine, _) | Self::Closed(_, machine) => machine,
        }
    }

    /// The node that it belongs to.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.machine().node(self.open().head.node)
    }
}

/// A gate of a session of this tenant; `None` if there is none.
///
/// # Errors
/// A row cannot be read.
pub fn gate_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    gate: OpenId,
) -> Result<Option<GateView>, ViewError> {
    let rows: &dyn ReadRows = view;
    if rows.session(tenant, session)?.is_none_or(|session| session.is_hidden()) {
        return Ok(None);
    }
    if let Some(open) = rows.gate(tenant, session, gate)? {
        let machine = machine_of(rows, tenant, &*rows.run(tenant, session, open.head.run)?)?;
        let reach = Reach::of(rows, tenant, session, &open)?;
        return Ok(Some(GateView::Open(OpenGate::clone(&open), machine, reach)));
    }
    let Some(closed) = rows.closed_at(&Key::closed(tenant, session, gate))? else { return Ok(None) };
    let machine = machine_of(rows, tenant, &*rows.run(tenant, session, closed.open.head.run)?)?;
    Ok(Some(GateView::Closed(Closed::clone(&closed), machine)))
}
