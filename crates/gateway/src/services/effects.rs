//! EffectService: lists outgoing messages; fails, retries, dismisses and releases them.

use switchward_api::v1::{self, effect_service_server::EffectService};
use switchward_machine::{Channel, SessionId};
use switchward_query::{EffectShown, GetEffect, ListEffects, ListTenantsHeld};
use switchward_state::delivery::{
    BadFailureCode, DeliveryCommand, DeliveryDetail, DismissEffect, EffectKind, EffectStatus, FailEffect,
    HoldEffects, RetryEffect,
};
use switchward_state::{Body, Reply, RequestId, Scope};
use tonic::{Request, Response, Status};

use super::tenants::FIRST;
use crate::api::{Api, Call, request_id};
use crate::auth::roles;
use crate::error::{Reason, Refusal};
use crate::mask::Mask;
use crate::pages::{Listed, Page, filter, order, unknown_term};
use crate::refusals::{named, odd};
use crate::{convert, names};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl EffectService for Api {
    async fn list_effects(
        &self,
        request: Request<v1::ListEffectsRequest>,
    ) -> Answered<v1::ListEffectsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(list(&call, message).await?))
    }

    async fn get_effect(&self, request: Request<v1::GetEffectRequest>) -> Answered<v1::GetEffectResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Effect", message.read_mask)?;
        let (session, number) = names::effect(&call.caller, "name", &message.name)?;
        let effect = shown(&call, session, number).await?;
        let effect = effect.ok_or_else(|| Refusal::not_found("effect", &message.name))?;
        Ok(Response::new(v1::GetEffectResponse { effect: Some(mask.keep(effect)) }))
    }

    async fn fail_effect(&self, request: Request<v1::FailEffectRequest>) -> Answered<v1::FailEffectResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let request = request_id(&message.request_id, "FailEffect", &message)?;
        let (session, number) = names::effect(&call.caller, "name", &message.name)?;
        let code = message
            .code
            .parse()
            .map_err(|error: BadFailureCode| Refusal::field("code", error.to_string()))?;
        let (detail, round) = (DeliveryDetail::quote(message.message), message.round);
        let body = Body::Delivery(DeliveryCommand::FailEffect(FailEffect { number, code, detail, round }));
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let (effect, sequence) = changed(&call, reply, &message.name)?;
        Ok(Response::new(v1::FailEffectResponse { effect, sequence }))
    }

    async fn retry_effect(
        &self,
        request: Request<v1::RetryEffectRequest>,
    ) -> Answered<v1::RetryEffectResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let request = request_id(&message.request_id, "RetryEffect", &message)?;
        let (session, number) = names::effect(&call.caller, "name", &message.name)?;
        let body = Body::Delivery(DeliveryCommand::RetryEffect(RetryEffect { number }));
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let (effect, sequence) = changed(&call, reply, &message.name)?;
        Ok(Response::new(v1::RetryEffectResponse { effect, sequence }))
    }

    async fn dismiss_effect(
        &self,
        request: Request<v1::DismissEffectRequest>,
    ) -> Answered<v1::DismissEffectResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let request = request_id(&message.request_id, "DismissEffect", &message)?;
        let (session, number) = names::effect(&call.caller, "name", &message.name)?;
        let body = Body::Delivery(DeliveryCommand::DismissEffect(DismissEffect { number }));
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        Ok(Response::new(v1::DismissEffectResponse { sequence: sequence(reply, &message.name)? }))
    }

    async fn release_effects(
        &self,
        request: Request<v1::ReleaseEffectsRequest>,
    ) -> Answered<v1::ReleaseEffectsResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let request = request_id(&message.request_id, "ReleaseEffects", &message)?;
        if message.all_tenants {
            release_all(&call, request).await?;
        } else {
            call.execute_in_own_scope(request, release()).await?;
        }
        Ok(Response::new(v1::ReleaseEffectsResponse {}))
    }
}

fn release() -> Body {
    Body::Delivery(DeliveryCommand::HoldEffects(HoldEffects { held: false }))
}

/// Releases the effects of every tenant whose effects are held, one after the other. If a tenant fails, those before it are
/// released, and the call can be repeated.
async fn release_all(call: &Call<'_>, request: Option<RequestId>) -> Result<(), Refusal> {
    if call.caller.tenant != FIRST {
        let message = "only keys of the server's first tenant may release the effects of all tenants";
        return Err(Refusal::new(Reason::RoleNotAllowed, message));
    }
    let held = call.ask(&ListTenantsHeld {}).await?;
    for (released, tenant) in held.into_iter().enumerate() {
        // The command is of the tenant that it is about, so that each remembers the request.
        let mut inside = Call { api: call.api, caller: call.caller.clone(), trace: call.trace.clone() };
        inside.caller.tenant = tenant;
        let done = inside.execute_in_own_scope(request.clone(), release()).await;
        done.map_err(|refusal| refusal.after_parts(released))?;
    }
    Ok(())
}

fn sequence(reply: Result<Reply, Refusal>, name: &str) -> Result<u64, Refusal> {
    let reply = reply.map_err(|refusal| named(refusal, "effect", name))?;
    let Reply::Session { sequence, .. } = reply else { return Err(odd(&reply)) };
    Ok(sequence)
}

/// Returns an effect after a command, and the session's sequence.
fn changed(
    call: &Call<'_>,
    reply: Result<Reply, Refusal>,
    name: &str,
) -> Result<(Option<v1::Effect>, u64), Refusal> {
    let reply = reply.map_err(|refusal| named(refusal, "effect", name))?;
    let Reply::Effect { session, sequence, effect } = reply else { return Err(odd(&reply)) };
    Ok((effect.map(|effect| convert::effects::summary(&call.caller, session, &effect)), sequence))
}

/// Returns an effect as it is now; `None` if it is gone.
async fn shown(call: &Call<'_>, session: SessionId, number: u64) -> Result<Option<v1::Effect>, Refusal> {
    let found = call.ask(&GetEffect { tenant: call.caller.tenant, session, number }).await?;
    Ok(found.map(|found| convert::effects::effect(&call.caller, session, &found)))
}

/// The effects of the caller's tenant that a filter lists.
fn wanted(call: &Call<'_>, text: &str) -> Result<ListEffects, Refusal> {
    let mut wanted = ListEffects { tenant: call.caller.tenant, status: None, kind: None, session: None };
    for (name, value) in filter(text)? {
        match (name.as_str(), value.as_str()) {
            ("status", "dead_letter") => wanted.status = Some(EffectStatus::DeadLetter),
            ("status", "pending") => wanted.status = Some(EffectStatus::Pending),
            ("status", other) => return Err(unknown_term(other, "dead_letter and pending")),
            ("kind", "email") => wanted.kind = Some(EffectKind::Message(Channel::Email)),
            ("kind", "webhook") => wanted.kind = Some(EffectKind::Message(Channel::Webhook)),
            ("kind", "chat") => wanted.kind = Some(EffectKind::Message(Channel::Chat)),
            ("kind", "notice") => wanted.kind = Some(EffectKind::Notice),
            ("kind", "event") => wanted.kind = Some(EffectKind::Event),
            ("kind", other) => return Err(unknown_term(other, "email, webhook, chat, notice and event")),
            ("session", name) => wanted.session = Some(names::session(&call.caller, "filter", name)?),
            (name, _) => return Err(unknown_term(name, "status, kind and session")),
        }
    }
    Ok(wanted)
}

/// The undelivered effects of all shards.
async fn list(call: &Call<'_>, message: v1::ListEffectsRequest) -> Result<v1::ListEffectsResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    let wanted = wanted(call, &message.filter)?;
    let mask = Mask::read("Effect", message.read_mask)?;
    order(&message.order_by, "status")?;
    let list = ["effects", call.caller.tenant_name.as_str(), message.filter.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let show =
        |call: &Call<'_>, of: EffectShown| convert::effects::effect(&call.caller, of.session, &of.effect);
    let Listed { entries, next_page_token, unreachable } = page.of_shards(call, wanted, show).await?;
    Ok(v1::ListEffectsResponse { effects: mask.keep_each(entries), next_page_token, unreachable })
}
