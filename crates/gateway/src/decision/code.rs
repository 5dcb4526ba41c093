//! Codes that are mailed to the person whose page it is, so that the page recognises them.

use axum::response::Response;
use http::{StatusCode, header};
use switchward_messages::{PageProblem, page_problem};
use switchward_state::approval::{ApprovalCommand, EnterPageCode, SendPageCode};
use switchward_state::catalogue::LinkAuth;
use switchward_state::{Body, Reply};

use super::browser::Known;
use super::find::ApproverLink;
use super::{Visitor, after, browser, forms::DecisionForm, page, respond};

/// Mails a code.
pub(super) async fn send(visitor: &Visitor<'_>, asked: &ApproverLink, said: &DecisionForm) -> Response {
    if !asked.takes_codes() {
        return respond(
            StatusCode::BAD_REQUEST,
            page::asked(asked, Some(&page_problem(&PageProblem::NoCodeNeeded))),
        );
    }
    let body = Body::Approval(ApprovalCommand::SendPageCode(SendPageCode { token: asked.token.clone() }));
    match visitor.execute(asked, said.request(asked), body).await {
        Ok(_) => visitor.back(),
        Err(refusal) => after(visitor, asked, &refusal).await,
    }
}

/// Checks the code that was entered, and remembers the browser.
pub(super) async fn enter(visitor: &Visitor<'_>, asked: &ApproverLink, said: &DecisionForm) -> Response {
    if !asked.takes_codes() {
        return respond(
            StatusCode::BAD_REQUEST,
            page::asked(asked, Some(&page_problem(&PageProblem::NoCodeNeeded))),
        );
    }
    let body = Body::Approval(ApprovalCommand::EnterPageCode(EnterPageCode {
        token: asked.token.clone(),
        code: said.code.clone(),
    }));
    let problem = match visitor.execute(asked, said.request(asked), body).await {
        Ok(Reply::PageCode { accepted: true, .. }) => return remembered(visitor, asked, LinkAuth::Code),
        Ok(Reply::PageCode { left, .. }) => PageProblem::WrongCode { left },
        Ok(_) => PageProblem::Internal,
        Err(refusal) => return after(visitor, asked, &refusal).await,
    };
    respond(StatusCode::FORBIDDEN, page::asked(asked, Some(&page_problem(&problem))))
}

/// Redirects back to the page and sets the cookie by which the browser is known from now on.
pub(super) fn remembered(visitor: &Visitor<'_>, asked: &ApproverLink, by: LinkAuth) -> Response {
    let visit = &asked.visit;
    let known = Known { person: asked.caller.actor.subject.clone(), by, at: visit.now };
    let mut response = visitor.back();
    let pages = &visitor.api.pages;
    if let Some(cookie) = browser::remember(asked.token.tenant, &visit.key, &known, visit.keep_ms, pages) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
