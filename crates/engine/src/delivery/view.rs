//! What a caller is shown of an effect.

use minicbor::{Decode, Encode};
use switchward_machine::{SessionId, TenantId};
use switchward_state::delivery::{Effect, EffectSource};
use switchward_state::{Key, ReadRows, View, ViewError};

use crate::policy::machine_of;

/// An effect for somebody outside that has not arrived.
#[derive(Debug, Clone, Encode, Decode)]
pub struct EffectView {
    /// Its row.
    #[n(0)]
    pub effect: Effect,
    /// The name of the node that caused it.
    #[n(1)]
    pub node: String,
}

/// An effect of a session of this tenant that goes outside; `None` if it has arrived or never was.
///
/// # Errors
/// A row cannot be read.
pub fn effect_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    number: u64,
) -> Result<Option<EffectView>, ViewError> {
    let rows: &dyn ReadRows = view;
    if rows.session(tenant, session)?.is_some_and(|session| session.is_hidden()) {
        return Ok(None);
    }
    let found = rows.outbox_at(&Key::outbox(tenant, session, number))?;
    let Some(effect) = found.filter(|effect| !effect.body.inner()) else { return Ok(None) };
    let EffectSource::Run { run, node, .. } = effect.source else { return Ok(None) };
    let machine = machine_of(rows, tenant, &*rows.run(tenant, session, run)?)?;
    let node = machine.node(node).map(|node| node.name.clone()).unwrap_or_default();
    Ok(Some(EffectView { effect: Effect::clone(&effect), node }))
}
