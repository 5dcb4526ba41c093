//! GateService.

use switchward_api::v1::{self, gate_service_server::GateService};
use switchward_engine::{GateView, SessionView, comments, gate_view, session_view};
use switchward_machine::{Decision, Digest, OpenId, SessionId, TenantId};
use switchward_shard::StateView;
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate};
use switchward_state::{Body, IndexKey, Key, Reply, Row, Scope, View, ViewError};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, named, odd, refusal, request_id, unreadable};
use crate::auth::roles;
use crate::convert::known;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Page, filter, order, unknown_term};
use crate::{convert, names};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl GateService for Api {
    async fn list_gates(&self, request: Request<v1::ListGatesRequest>) -> Answered<v1::ListGatesResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(list(&call, message).await?))
    }

    async fn get_gate(&self, request: Request<v1::GetGateRequest>) -> Answered<v1::GetGateResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Gate", message.read_mask)?;
        let (session, gate) = names::gate(&call.caller, "name", &message.name)?;
        let gate = shown(&call, session, gate, &message.name).await?;
        Ok(Response::new(v1::GetGateResponse { gate: Some(mask.keep(gate)) }))
    }

    async fn decide_gate(&self, request: Request<v1::DecideGateRequest>) -> Answered<v1::DecideGateResponse> {
        let (call, message) = self.open(request, roles::DECIDE)?;
        let request = request_id(&message.request_id, "DecideGate", &message)?;
        let said = said(&message)?;
        let (session, gate) = names::gate(&call.caller, "name", &message.name)?;
        let shown_digest = message.args_digest.as_deref().filter(|text| !text.is_empty());
        let shown_digest = shown_digest.map(str::parse::<Digest>).transpose();
        let shown_digest =
            shown_digest.map_err(|_| Refusal::field("args_digest", "must be 64 lower-case hex digits"))?;
        let (comment, shown_args) = (message.comment, shown_digest);
        let body = match said {
            Said::Decided(decision) => Body::Approval(ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision,
                comment,
                shown: shown_args,
                limits: None,
                proof: None,
            })),
            Said::Discussed => Body::Approval(ApprovalCommand::DiscussGate(DiscussGate {
                gate,
                comment,
                shown: shown_args,
                proof: None,
            })),
            Said::Answered(answer) => Body::Approval(ApprovalCommand::AnswerGate(AnswerGate {
                gate,
                answer,
                comment,
                shown: shown_args,
                proof: None,
            })),
        };
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "gate", &message.name))?;
        let Reply::Gate { sequence, .. } = reply else { return Err(odd(&reply).into()) };
        let gate = shown(&call, session, gate, &message.name).await?;
        Ok(Response::new(v1::DecideGateResponse { gate: Some(gate), sequence }))
    }
}

/// A person's answer to a gate.
enum Said {
    /// One of the two decisions.
    Decided(Decision),
    /// Neither: a comment.
    Discussed,
    /// The requested data.
    Answered(serde_json::Value),
}

fn said(message: &v1::DecideGateRequest) -> Result<Said, Refusal> {
    let decision = known("decision", message.decision)?;
    if message.answer.is_some() && decision != v1::GateDecision::Answer {
        return Err(Refusal::field("answer", "may be set only with GATE_DECISION_ANSWER"));
    }
    match decision {
        v1::GateDecision::Approve => Ok(Said::Decided(Decision::Approve)),
        v1::GateDecision::Reject => Ok(Said::Decided(Decision::Refuse)),
        v1::GateDecision::Discuss if message.comment.trim().is_empty() => {
            Err(Refusal::field("comment", "is required with GATE_DECISION_DISCUSS"))
        }
        v1::GateDecision::Discuss => Ok(Said::Discussed),
        v1::GateDecision::Answer => {
            let answer = message.answer.as_ref().map(convert::json::of_value).transpose();
            let answer = answer.map_err(|problem| Refusal::field("answer", problem))?;
            Ok(Said::Answered(answer.unwrap_or_default()))
        }
        v1::GateDecision::Unspecified => Err(Refusal::field(
            "decision",
            "must be GATE_DECISION_APPROVE, GATE_DECISION_REJECT, GATE_DECISION_DISCUSS or GATE_DECISION_ANSWER",
        )),
    }
}

async fn shown(call: &Call<'_>, session: SessionId, gate: OpenId, name: &str) -> Result<v1::Gate, Refusal> {
    let missing = || Refusal::not_found("gate", name);
    let view = call.shard(session).read().await.map_err(refusal)?;
    let tenant = call.caller.tenant;
    let rows = view
        .consistent(|rows| Ok((both(rows, tenant, session, gate)?, comments(rows, tenant, session, gate)?)));
    let ((Some(of), Some(row)), said) = rows.map_err(unreadable)? else { return Err(missing()) };
    let mut shown = convert::gates::gate(&call.caller, &of, gate, &row);
    shown.comments = said.into_iter().map(convert::gates::comment).collect();
    Ok(shown)
}

/// A session and a gate of it.
fn both(
    rows: &dyn View,
    tenant: TenantId,
    session: SessionId,
    gate: OpenId,
) -> Result<(Option<SessionView>, Option<GateView>), ViewError> {
    Ok((session_view(rows, tenant, session)?, gate_view(rows, tenant, session, gate)?))
}

/// A filter of gates.
#[derive(Default)]
struct Wanted {
    kind: Option<v1::GateKind>,
    session: Option<SessionId>,
}

fn wanted(call: &Call<'_>, text: &str) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted::default();
    for (name, value) in filter(text)? {
        match (name.as_str(), value.as_str()) {
            ("kind", "notify") => wanted.kind = Some(v1::GateKind::Notify),
            ("kind", "tool_ask") => wanted.kind = Some(v1::GateKind::ToolAsk),
            ("kind", "approval") => wanted.kind = Some(v1::GateKind::Approval),
            ("kind", "task") => wanted.kind = Some(v1::GateKind::Task),
            ("kind", other) => return Err(unknown_term(other, "notify, tool_ask, approval and task")),
            ("session", name) => wanted.session = Some(names::session(&call.caller, "filter", name)?),
            ("status", "open") => {}
            (name, _) => return Err(unknown_term(name, "kind, session and status=\"open\"")),
        }
    }
    Ok(wanted)
}

/// The open gates of all shards, oldest first.
async fn list(call: &Call<'_>, message: v1::ListGatesRequest) -> Result<v1::ListGatesResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    let wanted = wanted(call, &message.filter)?;
    let mask = Mask::read("Gate", message.read_mask)?;
    order(&message.order_by, "create_time")?;
    let list = ["gates", call.caller.tenant_name.as_str(), message.filter.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let tenant = call.caller.tenant;
    let prefix = IndexKey::gates(tenant);
    let pick = move |call: &Call<'_>, view: &StateView, entry: &Key| {
        let Some((session, gate)) = IndexKey::gate_of(entry) else { return Ok(None) };
        if wanted.session.is_some_and(|wanted| wanted != session) {
            return Ok(None);
        }
        // Its session and the other rows are read only if it is shown.
        if let Some(wanted) = wanted.kind {
            let open = view.row(&Key::open(tenant, session, gate)).map_err(unreadable)?;
            if !matches!(open.as_deref(), Some(Row::Open(open)) if convert::gates::kind(open.gate.kind) == wanted)
            {
                return Ok(None);
            }
        }
        let rows = view.consistent(|rows| both(rows, tenant, session, gate)).map_err(unreadable)?;
        let (Some(of), Some(row @ GateView::Open(..))) = rows else { return Ok(None) };
        let gate = convert::gates::gate(&call.caller, &of, gate, &row);
        Ok(Some(gate))
    };
    let (gates, next_page_token) = page.of_shards(call, prefix, pick).await?;
    Ok(v1::ListGatesResponse { gates: mask.keep_each(gates), next_page_token })
}
