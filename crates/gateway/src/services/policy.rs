//! PolicyService: authorizes tool calls, counts usage, and attaches policies to definitions and the tenant.

use switchward_api::v1::{self, policy_service_server::PolicyService};
use switchward_engine::policy::{Explanation, LookedAt};
use switchward_machine::{BudgetUnit, Digest, Limit, Micros, SessionId};
use switchward_messages::call_grounds;
use switchward_query::{CheckLedger, ExplainCall, Source};
use switchward_state::delivery::{Draft, Outgoing};
use switchward_state::limits::CALL_ID_CHARS_MAX;
use switchward_state::policy::{
    Args, Authorize, Authorized, CallEffect, CallGrounds, LedgerRule, LimitOutcome, MatchedRule,
    PolicyCommand, ReportCall, ReportUsage, Shortage,
};
use switchward_state::{Body, Reason as StateReason, Reply, RequestId, Scope};
use tonic::{Request, Response, Status};

use super::policies::Change;
use super::{decisions, policies};
use crate::api::{Api, Call, request_id};
use crate::auth::roles;
use crate::convert::known;
use crate::error::{Reason, Refusal};
use crate::refusals::{named, odd, unreadable};
use crate::{convert, names, run_address};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl PolicyService for Api {
    async fn authorize_tool_call(
        &self,
        request: Request<v1::AuthorizeToolCallRequest>,
    ) -> Answered<v1::AuthorizeToolCallResponse> {
        let (call, message) = self.open(request, roles::CALL)?;
        let request = call_request("AuthorizeToolCall", &message.call_id, &message.request_id, &message)?;
        let authorize = authorize(&message)?;
        let of = PendingCall {
            session: &message.session,
            call_id: &message.call_id,
            address: message.address.clone(),
        };
        Ok(Response::new(decided(&call, of, request, authorize).await?))
    }

    async fn send_email(&self, request: Request<v1::SendEmailRequest>) -> Answered<v1::SendEmailResponse> {
        let (call, message) = self.open(request, roles::CALL)?;
        let request = call_request("SendEmail", &message.call_id, &message.request_id, &message)?;
        let (session, call_id) = (message.session.clone(), message.call_id.clone());
        let of = PendingCall { session: &session, call_id: &call_id, address: message.address.clone() };
        let reply = decided(&call, of, request, sending(message)?).await?;
        Ok(Response::new(v1::SendEmailResponse { call: Some(reply) }))
    }

    async fn report_tool_usage(
        &self,
        request: Request<v1::ReportToolUsageRequest>,
    ) -> Answered<v1::ReportToolUsageResponse> {
        let (call, message) = self.open(request, roles::CALL)?;
        let request = request_id(&message.request_id, "ReportToolUsage", &message)?;
        let id = names::session(&call.caller, "session", &message.session)?;
        let cost = convert::reported("cost_usd", message.cost_usd.as_deref())?.unwrap_or_default();
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        if message.call_id.is_empty() && message.capability.is_empty() {
            return Err(Refusal::field("call_id", "is required if capability is empty").into());
        }
        let success = match known("outcome", message.outcome)? {
            v1::ToolOutcome::Unspecified | v1::ToolOutcome::Success => true,
            v1::ToolOutcome::Failure => false,
        };
        let report = ReportCall {
            call_id: given(&message.call_id),
            // A call id names that call or none; otherwise a repeated report would count twice.
            capability: given(&message.capability).filter(|_| message.call_id.is_empty()),
            success,
            cost,
            tokens: message.tokens,
        };
        let address = run_address::of(&call.caller, id, message.address.clone())?;
        let body = Body::Policy(PolicyCommand::ReportCall(report));
        let reply = call.execute_at(Scope::Session(id), address, request, None, body).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(refusal) => return Err(not_reported(&call, id, &message, refusal).await.into()),
        };
        let (budget, sequence) = metered(&reply)?;
        let (budget, call_id) = (Some(budget), message.call_id);
        Ok(Response::new(v1::ReportToolUsageResponse { budget, call_id, sequence }))
    }

    async fn report_usage(
        &self,
        request: Request<v1::ReportUsageRequest>,
    ) -> Answered<v1::ReportUsageResponse> {
        let (call, message) = self.open(request, roles::CALL)?;
        let request = request_id(&message.request_id, "ReportUsage", &message)?;
        let id = names::session(&call.caller, "session", &message.session)?;
        let cost = convert::reported("cost_usd", message.cost_usd.as_deref())?.unwrap_or_default();
        let report = ReportUsage { cost, tokens: message.tokens };
        let address = run_address::of(&call.caller, id, message.address)?;
        let body = Body::Policy(PolicyCommand::ReportUsage(report));
        let reply = call.execute_at(Scope::Session(id), address, request, None, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "session", &message.session))?;
        let (budget, sequence) = metered(&reply)?;
        Ok(Response::new(v1::ReportUsageResponse { budget: Some(budget), sequence }))
    }

    async fn explain_decision(
        &self,
        request: Request<v1::ExplainDecisionRequest>,
    ) -> Answered<v1::ExplainDecisionResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(explained(&call, message).await?))
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Answered<v1::ListDecisionsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(decisions::list(&call, message).await?))
    }

    async fn attach_policy(
        &self,
        request: Request<v1::AttachPolicyRequest>,
    ) -> Answered<v1::AttachPolicyResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "AttachPolicy", &message)?;
        let v1::AttachPolicyRequest { definition, policy, expected_etag: etag, .. } = &message;
        let definition =
            policies::change(&call, Change { definition, policy, attached: true, etag, request }).await?;
        Ok(Response::new(v1::AttachPolicyResponse { definition: Some(definition) }))
    }

    async fn detach_policy(
        &self,
        request: Request<v1::DetachPolicyRequest>,
    ) -> Answered<v1::DetachPolicyResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "DetachPolicy", &message)?;
        let v1::DetachPolicyRequest { definition, policy, expected_etag: etag, .. } = &message;
        let definition =
            policies::change(&call, Change { definition, policy, attached: false, etag, request }).await?;
        Ok(Response::new(v1::DetachPolicyResponse { definition: Some(definition) }))
    }

    async fn set_tenant_policy(
        &self,
        request: Request<v1::SetTenantPolicyRequest>,
    ) -> Answered<v1::SetTenantPolicyResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        Ok(Response::new(policies::set(&call, message).await?))
    }

    async fn remove_tenant_policy(
        &self,
        request: Request<v1::RemoveTenantPolicyRequest>,
    ) -> Answered<v1::RemoveTenantPolicyResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        Ok(Response::new(policies::remove(&call, message).await?))
    }
}

/// What a session has used after a report, and its sequence.
fn metered(reply: &Reply) -> Result<(v1::Budget, u64), Refusal> {
    let Reply::Metered { sequence, meters, usd_cap, mail_cap, .. } = reply else { return Err(odd(reply)) };
    Ok((convert::positions::budget(*meters, *usd_cap, *mail_cap), *sequence))
}

/// Why a report is refused: a call that was permitted and no longer waits for its report was reported before.
async fn not_reported(
    call: &Call<'_>,
    id: SessionId,
    message: &v1::ReportToolUsageRequest,
    refusal: Refusal,
) -> Refusal {
    // Any other refusal stays: that nothing can be read now does not mean that nothing was counted.
    if ![Reason::NotFound, Reason::SessionTerminal].contains(&refusal.reason()) {
        return refusal;
    }
    // Either the session or the call does not exist.
    let session = match call.session(id, &message.session).await {
        Ok(view) => view.session,
        Err(no_session) => return no_session,
    };
    if message.call_id.is_empty() {
        return refusal;
    }
    match decisions::permitted(call, id, session.sequence, message.call_id.clone()).await {
        Ok(true) => {
            let call = &message.call_id;
            let message = format!("call {call:?} was reported before, or its time for a report is over");
            Refusal::new(Reason::AlreadyResolved, message).meta("call_id", call)
        }
        Ok(false) => named(refusal, "call", &message.call_id),
        Err(unread) => unread,
    }
}

/// Whose call is to be authorized.
struct PendingCall<'m> {
    session: &'m str,
    /// The caller's own id of the call; may be empty.
    call_id: &'m str,
    address: Option<v1::RunAddress>,
}

/// Authorizes a call, and returns the decision.
async fn decided(
    call: &Call<'_>,
    of: PendingCall<'_>,
    request: Option<RequestId>,
    authorize: Authorize,
) -> Result<v1::AuthorizeToolCallResponse, Refusal> {
    let PendingCall { session, call_id, address } = of;
    let id = names::session(&call.caller, "session", session)?;
    let address = run_address::of(&call.caller, id, address)?;
    let body = Body::Policy(PolicyCommand::Authorize(authorize));
    let reply = call.execute_at(Scope::Session(id), address, request, None, body).await;
    let reply = reply.map_err(|refusal| {
        let reused = refusal.reason() == Reason::RequestIdReused && !call_id.is_empty();
        if reused { call_reused(call_id) } else { named(refusal, "session", session) }
    })?;
    let Reply::Authorized(said) = reply else { return Err(odd(&reply)) };
    Ok(authorized(call, id, *said))
}

/// The call that sends a mail.
fn sending(message: v1::SendEmailRequest) -> Result<Authorize, Refusal> {
    let call_id = own_call_id(&message.call_id, &message.request_id);
    let v1::SendEmailRequest { from, to, cc, bcc, subject, text, .. } = message;
    let mail = Outgoing::new(Draft { from, to, cc, bcc, subject, text });
    mail.and_then(|mail| mail.call(call_id)).map_err(|bad| Refusal::field(bad.field, bad.problem))
}

/// A call's own id is its request id, too: it makes the authorization safe to repeat, and prevents that a second call
/// passes as the first, already counted one under another request id.
fn call_request(
    method: &'static str,
    call_id: &str,
    request: &str,
    message: &impl prost::Message,
) -> Result<Option<RequestId>, Refusal> {
    if call_id.chars().count() > CALL_ID_CHARS_MAX || call_id.chars().any(char::is_control) {
        return Err(Refusal::field("call_id", format!("must be 1 to {CALL_ID_CHARS_MAX} characters")));
    }
    let given = request_id(request, method, message)?;
    if call_id.is_empty() {
        return Ok(given);
    }
    let by_call = request_id(call_id, method, message)?;
    Ok(by_call.map(|request| RequestId { id: format!("call:{}", request.id), ..request }))
}

fn call_reused(call_id: &str) -> Refusal {
    let message =
        format!("call id {call_id:?} was used before with another request; use a new one for a new call");
    Refusal::new(Reason::RequestIdReused, message).meta("call_id", call_id)
}

fn authorize(message: &v1::AuthorizeToolCallRequest) -> Result<Authorize, Refusal> {
    let args = Args::parse(&message.args).map_err(|bad| Refusal::field("args", bad.0))?;
    if let Some(digest) = message.args_digest.as_deref().filter(|digest| !digest.is_empty())
        && digest != args.digest().to_string()
    {
        let message = format!("does not match args, whose digest is {}", args.digest());
        return Err(Refusal::field("args_digest", message));
    }
    let estimate = convert::reported("est_cost_usd", message.est_cost_usd.as_deref())?;
    let call_id = own_call_id(&message.call_id, &message.request_id);
    let capability = message.capability.clone();
    Ok(Authorize { capability, args, estimate, call_id, limits: None, mail: None })
}

/// The caller's id of a call, or one that is made for it.
fn own_call_id(call_id: &str, request: &str) -> String {
    match (call_id, request) {
        ("", "") => format!("call_{:032x}", rand::random::<u128>()),
        // A repeated request finds the same ledger entry.
        ("", request) => format!("call_{}", &Digest::of(request.as_bytes()).to_string()[..32]),
        (call, _) => call.to_owned(),
    }
}

fn authorized(call: &Call<'_>, id: SessionId, said: Authorized) -> v1::AuthorizeToolCallResponse {
    let gate = said.gate.or(said.granted_by);
    let decision = convert::events::effect(said.effect);
    v1::AuthorizeToolCallResponse {
        decision: decision.into(),
        reason: said.reason.map(StateReason::code).unwrap_or_default().to_owned(),
        message: call_grounds(said.grounds.as_ref()),
        matched_rule: said.rule.as_ref().map(convert::events::rule),
        gate: gate.map(|gate| names::of_gate(&call.caller, id, gate)).unwrap_or_default(),
        grant_used: said.granted_by.is_some(),
        call_id: said.call_id,
        retry_after: said.retry_after_ms.map(convert::duration),
        remaining: Some(v1::Remaining {
            calls: said.remaining.calls,
            usd: said.remaining.usd.map(|usd| usd.to_string()),
        }),
        sequence: said.sequence,
        unnotified: said.unnotified,
        warnings: said.warnings.iter().map(switchward_messages::warning).collect(),
        layers: convert::events::layers(&said.layers),
    }
}

async fn explained(
    call: &Call<'_>,
    message: v1::ExplainDecisionRequest,
) -> Result<v1::ExplainDecisionResponse, Refusal> {
    let id = names::session(&call.caller, "session", &message.session)?;
    let args = Args::parse(&message.args).map_err(|bad| Refusal::field("args", bad.0))?;
    switchward_machine::Pattern::check_call(&message.capability)
        .map_err(|bad| Refusal::field("capability", bad.to_string()))?;
    let estimate = convert::reported("est_cost_usd", message.est_cost_usd.as_deref())?;
    let status = call.session(id, &message.session).await?.session.status;
    if status.ended() {
        let message = format!("the session has ended: {}", status.word());
        return Err(Refusal::new(Reason::SessionTerminal, message).meta("status", status.word()));
    }
    let rows = call.api.reader(Source::session(id)).await?;
    let (tenant, settings, now) =
        (call.caller.tenant, call.caller.settings, call.api.cluster.now_or_median());
    let capability = message.capability;
    let address = run_address::of(&call.caller, id, message.address)?;
    let query = ExplainCall { tenant, session: id, settings, capability, args, estimate, now, address };
    let explanation = rows.answer(&query).map_err(unreadable)?;
    let explanation = explanation.ok_or_else(|| Refusal::not_found("session", &message.session))?;
    let explanation = explanation.map_err(Refusal::from)?;
    respond(call, explanation, estimate.unwrap_or_default()).await
}

async fn respond(
    call: &Call<'_>,
    explanation: Explanation,
    estimate: Micros,
) -> Result<v1::ExplainDecisionResponse, Refusal> {
    let (mut full, mut rules) = (None, Vec::new());
    for LookedAt { rule, covers } in &explanation.looked_at {
        let same = |other: &MatchedRule| other.layer == rule.layer && other.list == rule.list;
        let decides = *covers && explanation.rule.as_ref().is_some_and(same);
        let speaks = *covers && explanation.layers.iter().any(|said| same(&said.rule));
        let counts = |limited: &&LedgerRule| {
            limited.capability == rule.capability && limited.layers.contains(&rule.layer)
        };
        let limited = explanation.limited.iter().find(counts).filter(|_| speaks);
        let mut limits = Vec::new();
        for limit in limited.iter().flat_map(|rule| &rule.limits) {
            let use_now = usage(call, limited, *limit, estimate).await?;
            if !use_now.available && full.is_none() {
                let by = if rule.layer == "policy" { String::new() } else { format!(" ({})", rule.layer) };
                let named = format!("{}{by}", rule.capability);
                let money = matches!(limit, Limit::Money { .. });
                let reason = if money { Reason::BudgetExhausted } else { Reason::RateLimited };
                full = Some((reason, CallGrounds::Short(Shortage::Limit { capability: named })));
            }
            limits.push(use_now);
        }
        rules.push(v1::RuleExplanation {
            rule: Some(convert::events::rule(rule)),
            matches: *covers,
            decides,
            limits,
        });
    }
    let decision = match (explanation.effect, &full) {
        (CallEffect::Deny, _) | (_, Some(_)) => v1::ToolDecision::Deny,
        (CallEffect::Ask, None) => v1::ToolDecision::Ask,
        (CallEffect::Allow, None) => v1::ToolDecision::Allow,
    };
    let by_limit = full.as_ref().map(|(reason, _)| reason.word());
    let session_limits = explanation.budgets.iter().map(|budget| {
        let money = budget.unit == BudgetUnit::UsdMicros;
        let kind = if money { v1::LimitKind::SessionBudget } else { v1::LimitKind::Emails };
        let text = |value: u64| if money { Micros(value).to_string() } else { value.to_string() };
        let (max, used, within) = (text(budget.cap), text(budget.used), budget.used < budget.cap);
        let layer = budget.layer.clone().unwrap_or_default();
        v1::LimitUse { kind: kind.into(), max, used, available: within, layer, ..v1::LimitUse::default() }
    });
    Ok(v1::ExplainDecisionResponse {
        decision: decision.into(),
        reason: explanation.reason.map(StateReason::code).or(by_limit).unwrap_or_default().to_owned(),
        grant_available: explanation.granted,
        message: call_grounds(Some(full.as_ref().map_or(&explanation.grounds, |(_, grounds)| grounds))),
        matched_rule: explanation.rule.as_ref().map(convert::events::rule),
        rules,
        session_limits: session_limits.collect(),
        layers: convert::events::layers(&explanation.layers),
    })
}

/// The current use of one limit, from its ledger.
async fn usage(
    call: &Call<'_>,
    rule: Option<&LedgerRule>,
    limit: Limit,
    estimate: Micros,
) -> Result<v1::LimitUse, Refusal> {
    let Some(rule) = rule else { return Ok(v1::LimitUse::default()) };
    let tenant = call.caller.tenant;
    let rows = call.api.reader(CheckLedger::source_of(tenant, &rule.process)).await?;
    let rules = vec![LedgerRule { limits: vec![limit], ..rule.clone() }];
    let now = call.api.cluster.now_or_median();
    let query = CheckLedger { tenant, rules, estimate, now };
    let check = rows.answer(&query).map_err(unreadable)?;
    let (kind, max, window) = match limit {
        Limit::Rate { max, window_ms } => {
            (v1::LimitKind::Rate, max.to_string(), Some(convert::duration(window_ms)))
        }
        Limit::Money { max, .. } => (v1::LimitKind::Budget, max.to_string(), None),
    };
    let (within, used, reset_time) = match (&check.outcome, limit) {
        (LimitOutcome::Available { remaining }, Limit::Rate { max, .. }) => {
            (true, max.saturating_sub(remaining.calls.unwrap_or(0)).to_string(), None)
        }
        (LimitOutcome::Available { remaining }, Limit::Money { max, .. }) => {
            (true, max.minus(remaining.usd.unwrap_or_default()).to_string(), None)
        }
        (LimitOutcome::Full { wait_ms, .. }, _) => {
            (false, max.clone(), Some(convert::timestamp(now.after_ms(*wait_ms))))
        }
    };
    let layer = rule.layers.join(", ");
    Ok(v1::LimitUse { kind: kind.into(), max, used, window, reset_time, available: within, layer })
}
