//! Whose link it is, and what it is about.

use std::ops::ControlFlow;
use switchward_engine::{
    Actor, GateView, Key, Kind, MailToken, Remark, Role, Row, Session, Tenant, View, Vote, Way, gate_view,
    remarks,
};
use switchward_machine::TenantId;

use crate::auth::Caller;
use crate::door::{Door, refusal, unreadable};
use crate::error::Refusal;

/// What a token leads to.
pub(super) enum Found {
    /// A gate that asks, or asked, the person that the token was made for.
    Asked(Box<Asked>),
    /// Nothing.
    Nothing,
}

/// A gate, and the person whose link it is.
pub(super) struct Asked {
    pub(super) token: MailToken,
    pub(super) caller: Caller,
    pub(super) gate: GateView,
    pub(super) session: Session,
    /// What was said about it so far.
    pub(super) said: Vec<Remark>,
    /// Whether she was asked anew since, so that the newest mail's link counts.
    pub(super) old: bool,
    /// Whether she asked for it herself, and so cannot decide.
    pub(super) own: bool,
    /// Her approval, where it counts and others are waited for.
    pub(super) vote: Option<Vote>,
}

/// Reads what a token is about. Nothing tells a token that was never made from one for what is gone.
pub(super) async fn find(door: &Door, token: MailToken) -> Result<Found, Refusal> {
    let view = door.cluster.shard_of(token.session.bucket()).read().await.map_err(refusal)?;
    let row = view.row(&Key::tenancy(token.tenant)).map_err(unreadable)?;
    let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(Found::Nothing) };
    let read = view.steady(|rows| {
        let session = rows.row(&Key::session(token.tenant, token.session))?;
        let Some(Row::Session(session)) = session.as_deref() else { return Ok(None) };
        let gate = gate_view(rows, token.tenant, token.session, token.about)?;
        let said = remarks(rows, token.tenant, token.session, token.about)?;
        Ok(gate.map(|gate| (session.clone(), gate, said)))
    });
    let Some((session, gate, said)) = read.map_err(unreadable)? else { return Ok(Found::Nothing) };
    let Some(asked) = &gate.open().gate.asked else { return Ok(Found::Nothing) };
    let made = |person: &&String| tenancy.keys.iter().any(|key| key.made(&token, Way::Page, person));
    let Some(person) = asked.to.iter().find(made).cloned() else { return Ok(Found::Nothing) };
    let old = asked.round_of(&person) != Some(token.round);
    let hers = |vote: &&Vote| vote.shown == asked.digest() && vote.is_of(&person, &tenancy.directory);
    let vote = asked.voting.iter().flat_map(|voting| &voting.votes).find(hers).cloned();
    let gated = &gate.open().gate;
    let own = gated.kind.needs_another() && tenancy.directory.one_person(&person, &gated.requester);
    let Some(tenant) = tenant_of(door, token.tenant)? else { return Ok(Found::Nothing) };
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name,
        settings: tenant.settings,
        actor: Actor { subject: person, role: Role::Approver },
        key_id: String::new(),
    };
    Ok(Found::Asked(Box::new(Asked { token, caller, gate, session, said, old, own, vote })))
}

/// The tenant of this number.
pub(crate) fn tenant_of(door: &Door, id: TenantId) -> Result<Option<Tenant>, Refusal> {
    let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Tenant);
    let mut found = None;
    let read = door.cluster.catalogue().read_stale().scan(&prefix, None, &mut |_, row| {
        if let Row::Tenant(tenant) = &**row
            && tenant.id == id
        {
            found = Some(tenant.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    read.map_err(unreadable)?;
    Ok(found)
}
