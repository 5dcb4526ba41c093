//! GateService: lists, decides and assigns gates.

use switchward_api::v1::{self, gate_service_server::GateService};
use switchward_machine::{Decision, Digest, GateKind, OpenId, SessionId};
use switchward_query::{GateShown, ListGates, ShowGate};
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate};
use switchward_state::{Body, Reply, Scope};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, request_id};
use crate::auth::roles;
use crate::convert::known;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Listed, Page, filter, order, unknown_term};
use crate::refusals::{named, odd};
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
        let (shown_args, comment) = (digest(message.args_digest.as_deref())?, message.comment);
        let message_comment = comment.clone();
        let body = match said {
            GateAnswer::Decided(decision) => Body::Approval(ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision,
                comment,
                shown: shown_args,
                limits: None,
                proof: None,
            })),
            GateAnswer::Commented => Body::Approval(ApprovalCommand::DiscussGate(DiscussGate {
                gate,
                comment,
                shown: shown_args,
                proof: None,
            })),
            GateAnswer::Answered(answer) => Body::Approval(ApprovalCommand::AnswerGate(AnswerGate {
                gate,
                answer,
                comment,
                shown: shown_args,
                proof: None,
            })),
        };
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "gate", &message.name))?;
        let Reply::Gate { sequence, summary, .. } = reply else { return Err(odd(&reply).into()) };
        let said = convert::gates::DecisionDetails { comment: message_comment, answer: message.answer };
        let gate = summary.map(|of| convert::gates::summary(&call.caller, session, gate, *of, said));
        Ok(Response::new(v1::DecideGateResponse { gate, sequence }))
    }

    async fn assign_gate(&self, request: Request<v1::AssignGateRequest>) -> Answered<v1::AssignGateResponse> {
        let (call, message) = self.open(request, roles::DECIDE)?;
        let request = request_id(&message.request_id, "AssignGate", &message)?;
        let (session, gate) = names::gate(&call.caller, "name", &message.name)?;
        if message.to.trim().is_empty() {
            return Err(Refusal::field("to", "is required").into());
        }
        let body = Body::Approval(ApprovalCommand::AssignGate {
            gate,
            from: message.from.filter(|from| !from.trim().is_empty()),
            to: message.to,
            comment: message.comment,
            shown: digest(message.args_digest.as_deref())?,
            proof: None,
        });
        let reply = call.execute(Scope::Session(session), request, message.expected_sequence, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "gate", &message.name))?;
        let Reply::Gate { sequence, summary, .. } = reply else { return Err(odd(&reply).into()) };
        let said = convert::gates::DecisionDetails { comment: String::new(), answer: None };
        let gate = summary.map(|of| convert::gates::summary(&call.caller, session, gate, *of, said));
        Ok(Response::new(v1::AssignGateResponse { gate, sequence }))
    }
}

/// The digest of what a caller saw; `None` if they do not say.
fn digest(text: Option<&str>) -> Result<Option<Digest>, Refusal> {
    let digest = text.filter(|text| !text.is_empty()).map(str::parse::<Digest>).transpose();
    digest.map_err(|_| Refusal::field("args_digest", "must be 64 lower-case hex digits"))
}

/// A person's answer to a gate.
enum GateAnswer {
    /// One of the two decisions.
    Decided(Decision),
    /// Neither: a comment.
    Commented,
    /// The requested data.
    Answered(serde_json::Value),
}

fn said(message: &v1::DecideGateRequest) -> Result<GateAnswer, Refusal> {
    let decision = known("decision", message.decision)?;
    if message.answer.is_some() && decision != v1::GateDecision::Answer {
        return Err(Refusal::field("answer", "may be set only with GATE_DECISION_ANSWER"));
    }
    match decision {
        v1::GateDecision::Approve => Ok(GateAnswer::Decided(Decision::Approve)),
        v1::GateDecision::Reject => Ok(GateAnswer::Decided(Decision::Refuse)),
        v1::GateDecision::Discuss if message.comment.trim().is_empty() => {
            Err(Refusal::field("comment", "is required with GATE_DECISION_DISCUSS"))
        }
        v1::GateDecision::Discuss => Ok(GateAnswer::Commented),
        v1::GateDecision::Answer => {
            let answer = message.answer.as_ref().map(convert::json::of_value).transpose();
            let answer = answer.map_err(|problem| Refusal::field("answer", problem))?;
            Ok(GateAnswer::Answered(answer.unwrap_or_default()))
        }
        v1::GateDecision::Unspecified => Err(Refusal::field(
            "decision",
            "must be GATE_DECISION_APPROVE, GATE_DECISION_REJECT, GATE_DECISION_DISCUSS or GATE_DECISION_ANSWER",
        )),
    }
}

async fn shown(call: &Call<'_>, session: SessionId, gate: OpenId, name: &str) -> Result<v1::Gate, Refusal> {
    let found = call.ask(&ShowGate { tenant: call.caller.tenant, session, gate }).await?;
    let of = found.ok_or_else(|| Refusal::not_found("gate", name))?;
    let mut shown = convert::gates::gate(&call.caller, &of.session, gate, &of.gate);
    shown.comments = of.comments.into_iter().map(convert::gates::comment).collect();
    Ok(shown)
}

/// The gates of the caller's tenant that a filter lists.
fn wanted(call: &Call<'_>, text: &str) -> Result<ListGates, Refusal> {
    let mut wanted = ListGates { tenant: call.caller.tenant, kind: None, session: None };
    for (name, value) in filter(text)? {
        match (name.as_str(), value.as_str()) {
            ("kind", "notify") => wanted.kind = Some(GateKind::Notify),
            ("kind", "tool_ask") => wanted.kind = Some(GateKind::ToolAsk),
            ("kind", "approval") => wanted.kind = Some(GateKind::Approval),
            ("kind", "task") => wanted.kind = Some(GateKind::Task),
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
    let show =
        |call: &Call<'_>, of: GateShown| convert::gates::gate(&call.caller, &of.session, of.id, &of.gate);
    let Listed { entries, next_page_token, unreachable } = page.of_shards(call, wanted, show).await?;
    Ok(v1::ListGatesResponse { gates: mask.keep_each(entries), next_page_token, unreachable })
}
