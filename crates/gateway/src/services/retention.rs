//! RetentionService: deletes and erases sessions, by request or after the tenant's periods.

use switchward_api::v1::{self, retention_service_server::RetentionService};
use switchward_query::GetTenantRecord;
use switchward_state::catalogue::{CatalogueCommand, PutRetention};
use switchward_state::session::{Remove, Removing, Retention, RetentionRule, SessionCommand};
use switchward_state::{Body, Reply, Scope};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, roles};
use crate::convert::{duration, ms_of, timestamp};
use crate::error::Refusal;
use crate::limits::{ERASED_WITHIN_MS, MAIL_KEPT_MS_MAX};
use crate::mask::Mask;
use crate::refusals::{named, odd};
use crate::{names, sealing};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl RetentionService for Api {
    async fn delete_session(
        &self,
        request: Request<v1::DeleteSessionRequest>,
    ) -> Answered<v1::DeleteSessionResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "DeleteSession", &message)?;
        let id = names::session(&call.caller, "name", &message.name)?;
        let body = Body::Session(SessionCommand::Remove(Remove { how: Removing::Deleted, ended_by: None }));
        let reply = call.execute(Scope::Session(id), request, None, body).await;
        reply.map_err(|refusal| named(refusal, "session", &message.name))?;
        Ok(Response::new(v1::DeleteSessionResponse {}))
    }

    async fn erase_session(
        &self,
        request: Request<v1::EraseSessionRequest>,
    ) -> Answered<v1::EraseSessionResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "EraseSession", &message)?;
        let id = names::session(&call.caller, "name", &message.name)?;
        let body = Body::Session(SessionCommand::Remove(Remove { how: Removing::Erased, ended_by: None }));
        let reply = call.execute(Scope::Session(id), request, None, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "session", &message.name))?;
        let Reply::Removed { at } = reply else { return Err(odd(&reply).into()) };
        let gone_time = Some(timestamp(at.after_ms(ERASED_WITHIN_MS)));
        Ok(Response::new(v1::EraseSessionResponse { gone_time }))
    }

    async fn put_retention(
        &self,
        request: Request<v1::PutRetentionRequest>,
    ) -> Answered<v1::PutRetentionResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "PutRetention", &message)?;
        let Some(requested) = message.retention else {
            return Err(Refusal::field("retention", "is required").into());
        };
        names::parent(&call.caller, "parent", &message.parent)?;
        let rules = requested.rules.into_iter().enumerate();
        let rules = rules.map(|(at, rule)| read(&call.caller, at, rule)).collect::<Result<_, _>>()?;
        let retention = Retention { rules };
        let key = sealing::mail_key(&call.api.cluster.ring(), call.caller.tenant);
        let body = Body::Catalogue(CatalogueCommand::PutRetention(PutRetention {
            retention,
            key,
            etag: requested.etag,
        }));
        let reply = call.execute_in_own_scope(request, body).await?;
        let Reply::Retention(stored) = reply else { return Err(odd(&reply).into()) };
        let retention = Some(shown(&call.caller, stored));
        Ok(Response::new(v1::PutRetentionResponse { retention }))
    }

    async fn get_retention(
        &self,
        request: Request<v1::GetRetentionRequest>,
    ) -> Answered<v1::GetRetentionResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("Retention", message.read_mask)?;
        let retention = mask.keep(shown(&call.caller, retention_of(&call).await?));
        Ok(Response::new(v1::GetRetentionResponse { retention: Some(retention) }))
    }
}

async fn retention_of(call: &Call<'_>) -> Result<Retention, Refusal> {
    let found = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    Ok(found.map(|record| record.retention.clone()).unwrap_or_default())
}

fn read(caller: &Caller, at: usize, rule: v1::RetentionRule) -> Result<RetentionRule, Refusal> {
    let field = |field: &str| format!("retention.rules.{at}.{field}");
    let time = |name: &str, time: Option<prost_types::Duration>| {
        let bad = || {
            Refusal::field(field(name), "must be a duration that is not negative, and at most 10,000 years")
        };
        time.map(|time| ms_of(time).ok_or_else(bad)).transpose()
    };
    let definition = match rule.definition.as_str() {
        "" => "",
        name => names::definition(caller, &field("definition"), name)?,
    };
    let quarantine_ms = time("quarantine", rule.quarantine)?;
    if quarantine_ms.is_some_and(|kept| kept > MAIL_KEPT_MS_MAX) {
        return Err(Refusal::field(field("quarantine"), "must be at most 30 days"));
    }
    Ok(RetentionRule {
        definition: definition.to_owned(),
        sessions_ms: time("ended_sessions", rule.ended_sessions)?,
        history_ms: time("history", rule.history)?,
        decisions_ms: time("decisions", rule.decisions)?,
        quarantine_ms,
    })
}

fn shown(caller: &Caller, retention: Retention) -> v1::Retention {
    let etag = retention.etag();
    let rule = |rule: RetentionRule| v1::RetentionRule {
        definition: match rule.definition.as_str() {
            "" => String::new(),
            name => names::of_definition(caller, name),
        },
        ended_sessions: rule.sessions_ms.map(duration),
        history: rule.history_ms.map(duration),
        decisions: rule.decisions_ms.map(duration),
        quarantine: rule.quarantine_ms.map(duration),
    };
    v1::Retention { rules: retention.rules.into_iter().map(rule).collect(), etag }
}
