//! EffectService.

use switchward_api::v1::{self, effect_service_server::EffectService};
use switchward_engine::effect_view;
use switchward_machine::SessionId;
use switchward_shard::StateView;
use switchward_state::delivery::{DeliveryCommand, DismissEffect, FailEffect, HoldEffects, RetryEffect};
use switchward_state::{Body, IndexKey, Key, Reply, Row, Scope, View};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, named, odd, refusal, request_id, unreadable};
use crate::auth::roles;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Page, filter, order, unknown_term};
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
        let (code, text, round) = (message.code, message.message, message.round);
        let body =
            Body::Delivery(DeliveryCommand::FailEffect(FailEffect { number, code, message: text, round }));
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let sequence = sequence(reply, &message.name)?;
        let effect = shown(&call, session, number).await?;
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
        let sequence = sequence(reply, &message.name)?;
        let effect = shown(&call, session, number).await?;
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
        let body = Body::Delivery(DeliveryCommand::HoldEffects(HoldEffects { held: false }));
        call.execute(Scope::Catalogue, request, None, body).await?;
        Ok(Response::new(v1::ReleaseEffectsResponse {}))
    }
}

fn sequence(reply: Result<Reply, Refusal>, name: &str) -> Result<u64, Refusal> {
    let reply = reply.map_err(|refusal| named(refusal, "effect", name))?;
    let Reply::Session { sequence, .. } = reply else { return Err(odd(&reply)) };
    Ok(sequence)
}

/// Returns an effect as it is now; `None` if it is gone.
async fn shown(call: &Call<'_>, session: SessionId, number: u64) -> Result<Option<v1::Effect>, Refusal> {
    let tenant = call.caller.tenant;
    let view = call.shard(session).read().await.map_err(refusal)?;
    let found = view.consistent(|rows| effect_view(rows, tenant, session, number)).map_err(unreadable)?;
    Ok(found.map(|found| convert::effects::effect(&call.caller, session, &found)))
}

/// A filter of effects.
#[derive(Default)]
struct Wanted {
    dead: Option<bool>,
    kind: Option<String>,
    session: Option<SessionId>,
}

fn wanted(call: &Call<'_>, text: &str) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted::default();
    for (name, value) in filter(text)? {
        match (name.as_str(), value.as_str()) {
            ("status", "dead") => wanted.dead = Some(true),
            ("status", "pending") => wanted.dead = Some(false),
            ("status", other) => return Err(unknown_term(other, "dead and pending")),
            ("kind", "email" | "webhook" | "chat" | "notice" | "event") => wanted.kind = Some(value),
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
    let tenant = call.caller.tenant;
    let prefix = IndexKey::effects(tenant, wanted.dead);
    let pick = move |call: &Call<'_>, view: &StateView, entry: &Key| {
        let Some((session, number)) = IndexKey::effect_of(entry) else { return Ok(None) };
        if wanted.session.is_some_and(|wanted| wanted != session) {
            return Ok(None);
        }
        // Its session and the other rows are read only if it is shown.
        if let Some(wanted) = &wanted.kind {
            let row = view.row(&Key::outbox(tenant, session, number)).map_err(unreadable)?;
            if !matches!(row.as_deref(), Some(Row::Outbox(effect)) if convert::effects::kind(effect) == *wanted)
            {
                return Ok(None);
            }
        }
        let found = view.consistent(|rows: &dyn View| effect_view(rows, tenant, session, number));
        let found = found.map_err(unreadable)?;
        Ok(found.map(|found| convert::effects::effect(&call.caller, session, &found)))
    };
    let (effects, next_page_token) = page.of_shards(call, prefix, pick).await?;
    Ok(v1::ListEffectsResponse { effects: mask.keep_each(effects), next_page_token })
}
