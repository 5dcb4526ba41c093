//! The forms of a decision page: how each is shown, what it asks for, and what its sender sees then.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use switchward_machine::{Decision, Digest, GateSpec};
use switchward_messages::{FormProblem, FormText, form_text};
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate, OpenGate, PageProof};
use switchward_state::catalogue::LinkAuth;
use switchward_state::limits::ADDRESS_BYTES_MAX;
use switchward_state::{Body, RequestId};

use super::find::ApproverLink;
use super::{Visitor, page, respond};
use crate::limits::FORM_ID_CHARS;

/// The fields of a form.
#[derive(Debug, Deserialize)]
pub(super) struct DecisionForm {
    /// `approve`, `reject`, `discuss`, `answer` or `assign`; empty if nothing was chosen.
    #[serde(default)]
    pub(super) decision: String,
    #[serde(default)]
    comment: String,
    /// The digest of what was shown; empty if nothing that was shown has one.
    #[serde(default)]
    shown: String,
    /// The id of the form, which is accepted once.
    #[serde(default)]
    form: String,
    /// A code that was mailed.
    #[serde(default)]
    pub(super) code: String,
    /// Whom the request is handed to.
    #[serde(default)]
    to: String,
}

impl DecisionForm {
    /// The digest of all fields of the form.
    fn digest(&self) -> Digest {
        let texts = [&self.decision, &self.comment, &self.shown, &self.code, &self.to].map(String::as_bytes);
        Digest::of_parts(&texts)
    }

    /// The request id of this form. It includes the token, so that one person's form id means nothing on another's page.
    pub(super) fn request(&self, asked: &ApproverLink) -> RequestId {
        RequestId { id: format!("page:{}:{}", asked.token, self.form), body: self.digest() }
    }

    /// Returns true if the form has a valid id.
    pub(super) fn is_named(&self) -> bool {
        self.form.len() == FORM_ID_CHARS && self.form.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Returns the command that a form asks for, or what is wrong with the form.
    pub(super) fn body(&self, asked: &ApproverLink, by: LinkAuth) -> Result<Body, FormProblem> {
        let gate = asked.token.about;
        let shown = match self.shown.as_str() {
            "" if asked.gate.open().body.shown().is_some() => return Err(FormProblem::Changed),
            "" => None,
            text => Some(text.parse::<Digest>().map_err(|_| FormProblem::Changed)?),
        };
        let (comment, proof) = (self.comment.clone(), Some(PageProof { token: asked.token.clone(), by }));
        let decide = |decision, comment, proof| {
            Body::Approval(ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision,
                comment,
                shown,
                limits: None,
                proof,
            }))
        };
        match self.decision.as_str() {
            "approve" => Ok(decide(Decision::Approve, comment, proof)),
            "reject" => Ok(decide(Decision::Refuse, comment, proof)),
            "discuss" if comment.trim().is_empty() => Err(FormProblem::NoQuestion),
            "discuss" => {
                Ok(Body::Approval(ApprovalCommand::DiscussGate(DiscussGate { gate, comment, shown, proof })))
            }
            "answer" if comment.trim().is_empty() => Err(FormProblem::NoAnswer),
            "answer" => {
                let answer = comment.trim().into();
                Ok(Body::Approval(ApprovalCommand::AnswerGate(AnswerGate {
                    gate,
                    answer,
                    comment: String::new(),
                    shown,
                    proof,
                })))
            }
            "assign" if self.to.trim().is_empty() => Err(FormProblem::NoReceiver),
            "assign" => {
                let (from, to) = (None, self.to.trim().to_owned());
                Ok(Body::Approval(ApprovalCommand::AssignGate { gate, from, to, comment, shown, proof }))
            }
            _ => Err(FormProblem::NoDecision),
        }
    }

    /// Responds to this form, which was accepted: with the page as it is now; a request that was handed over has none any
    /// more for its sender.
    pub(super) fn accepted(&self, visitor: &Visitor<'_>) -> Response {
        if self.decision != "assign" {
            return visitor.back();
        }
        let now = form_text(FormText::HandedTo { to: self.to.trim() });
        respond(StatusCode::OK, page::short(&form_text(FormText::HandedOver), Some(&now)))
    }
}

/// The form by which the person decides. No decision is preselected.
pub(super) fn decision(asked: &ApproverLink, open: &OpenGate, spec: &GateSpec) -> Markup {
    let shown = open.body.shown().map(|digest| digest.to_string()).unwrap_or_default();
    let answers = spec.resolve(Decision::Answer).is_some();
    let offered =
        [("approve", Decision::Approve), ("reject", Decision::Refuse)].into_iter().filter(|(_, decision)| {
            spec.resolve(*decision).is_some() && (asked.vote.is_none() || *decision != Decision::Approve)
        });
    let rule = if spec.resolve(Decision::Approve).is_some() {
        switchward_messages::rule(open)
    } else {
        String::new()
    };
    html! {
        form method="post" action={ "/a/" (asked.token) } {
            input type="hidden" name="shown" value=(shown);
            input type="hidden" name="form" value=(form_id());
            @if answers {
                input type="hidden" name="decision" value="answer";
                label for="comment" { (form_text(FormText::Answer)) }
                textarea id="comment" name="comment" rows="6" required {}
                button type="submit" { (form_text(FormText::SendAnswer)) }
            } @else {
                fieldset {
                    legend { (form_text(FormText::Decision)) }
                    @for (value, decision) in offered {
                        label.choice { input type="radio" name="decision" value=(value) required; (form_text(FormText::Choice { decision })) }
                    }
                    label.choice {
                        input type="radio" name="decision" value="discuss";
                        (form_text(FormText::Neither))
                    }
                }
                label for="comment" { (form_text(FormText::Comment)) span.hint { " " (form_text(FormText::CommentHint)) } }
                textarea id="comment" name="comment" rows="4" {}
                button type="submit" { (form_text(FormText::Decide)) }
                p.hint { (form_text(FormText::DecideHint { rule: &rule })) }
            }
        }
        @if asked.vote.is_none() { (assign(asked, &shown)) }
    }
}

/// The form by which the person hands the request to somebody else.
fn assign(asked: &ApproverLink, shown: &str) -> Markup {
    html! {
        form method="post" action={ "/a/" (asked.token) } {
            input type="hidden" name="shown" value=(shown);
            input type="hidden" name="form" value=(form_id());
            input type="hidden" name="decision" value="assign";
            label for="to" { (form_text(FormText::HandOverTo)) span.hint { " " (form_text(FormText::HandOverToHint)) } }
            textarea id="to" name="to" rows="1" maxlength=(ADDRESS_BYTES_MAX) autocomplete="off" required {}
            label for="why" { (form_text(FormText::Comment)) span.hint { " " (form_text(FormText::Optional)) } }
            textarea id="why" name="comment" rows="2" {}
            button.other type="submit" { (form_text(FormText::HandOver)) }
            p.hint { (form_text(FormText::HandOverHint)) }
        }
    }
}

/// An id for one form as it was shown, so that it is accepted once however often it is sent: 32 hexadecimal digits.
pub(super) fn form_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
