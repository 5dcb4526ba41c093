//! Sign-in with an OpenID provider, so that a page recognises the person whose page it is.
//!
//! A link on the page sends the browser to the provider, which sends it back to [`CALLBACK`] with a code. Nothing is kept on
//! the server in between: a cookie holds which page it was and when, with a code (HMAC-SHA256) over that under a mail key of
//! the tenant, and what the provider has to give back is made from the same key. So a sign-in counts in the browser that
//! began it, for the page on which it began, within [`SIGN_IN_MS`]. Source: RFC 6749, 10.12; RFC 6265 for the cookie.

mod begun;

use axum::{
    extract::{Path, Query, State, rejection::QueryRejection},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use switchward_messages::{PageAbsence, PageProblem, page_problem};
use switchward_state::catalogue::LinkAuth;
#[cfg(doc)]
use switchward_state::limits::SIGN_IN_MS;

use super::find::ApproverLink;
#[cfg(doc)]
use super::provider::CALLBACK;
use super::provider::{Attempt, NotSignedIn};
use super::{Visitor, code, guarded, look, page, recognised, refused, respond};
use crate::api::Api;
use crate::limits::SIGN_IN_CODE_BYTES_MAX;
use begun::Begun;

/// The query with which a provider sends a browser back.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Back {
    #[serde(default)]
    state: String,
    #[serde(default)]
    code: String,
    /// Why there is no code.
    #[serde(default)]
    error: String,
}

/// Sends the browser to the provider.
pub(super) async fn begin(State(api): State<Api>, Path(token): Path<String>, headers: HeaderMap) -> Response {
    let asked = match look(&api, &token, &headers).await {
        Ok(asked) => asked,
        Err(no) => return refused(&no),
    };
    if let Err(response) = wanted(&asked) {
        return *response;
    }
    let Some(provider) = &api.sign_in else { return not_here(&asked) };
    let begun = Begun::draw(&asked);
    let page = match provider.page(&begun.attempt(&asked.visit.key, &asked)).await {
        Ok(page) => page,
        Err(no) => return failed(&asked, no),
    };
    match (HeaderValue::from_str(&page), begun.cookie(&api.pages)) {
        (Ok(page), Some(cookie)) => {
            let headers = [(header::LOCATION, page), (header::SET_COOKIE, cookie)];
            guarded((StatusCode::SEE_OTHER, headers).into_response())
        }
        _ => failed(&asked, NotSignedIn::Unavailable),
    }
}

/// Takes the browser that comes back from the provider.
pub(super) async fn finish(
    State(api): State<Api>,
    back: Result<Query<Back>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let back = back.map(|Query(back)| back).unwrap_or_default();
    let Some(begun) = Begun::read(&headers, &back.state) else { return unknown() };
    let asked = match look(&api, &begun.token, &headers).await {
        Ok(asked) => asked,
        Err(no) => return refused(&no),
    };
    let Some(key) = begun.key(&asked) else { return unknown() };
    let attempt = begun.attempt(key, &asked);
    let visitor = Visitor { api: &api, token: &begun.token, headers: &headers };
    let mut response = ended(&visitor, &asked, &attempt, &back).await;
    if let Some(gone) = begun.removed(&api.pages) {
        response.headers_mut().append(header::SET_COOKIE, gone);
    }
    response
}

/// Completes a sign-in that was begun in this browser.
async fn ended(visitor: &Visitor<'_>, asked: &ApproverLink, attempt: &Attempt, back: &Back) -> Response {
    if let Err(response) = wanted(asked) {
        return *response;
    }
    let Some(provider) = &visitor.api.sign_in else { return not_here(asked) };
    if !back.error.is_empty() {
        return failed(asked, NotSignedIn::Refused("sign_in_denied"));
    }
    if !(1..=SIGN_IN_CODE_BYTES_MAX).contains(&back.code.len()) {
        return failed(asked, NotSignedIn::Refused("code_missing"));
    }
    let Some(_permit) = visitor.api.sign_ins.take(asked.caller.tenant) else {
        tracing::warn!(tenant = asked.caller.tenant_name, "too many people sign in at one time");
        return failed(asked, NotSignedIn::Unavailable);
    };
    match provider.address(&back.code, attempt).await {
        Ok(address) if address.eq_ignore_ascii_case(&asked.caller.actor.subject) => {
            code::remembered(visitor, asked, LinkAuth::Oidc)
        }
        Ok(_) => failed(asked, NotSignedIn::Refused("address_other")),
        Err(no) => failed(asked, no),
    }
}

/// Checks that a sign-in is needed on this page, in this browser.
fn wanted(asked: &ApproverLink) -> Result<(), Box<Response>> {
    if asked.takes_sign_in() {
        return Ok(());
    }
    let (status, problem) = match recognised(asked) {
        // The requester's own browser.
        Err(problem) if asked.visit.requester.is_some() => (StatusCode::FORBIDDEN, problem),
        Ok(_) | Err(_) => (StatusCode::BAD_REQUEST, page_problem(&PageProblem::NoSignInNeeded)),
    };
    Err(Box::new(respond(status, page::asked(asked, Some(&problem)))))
}

/// The response to a sign-in that this browser did not begin, or began too long ago. Its parameters are not used.
fn unknown() -> Response {
    respond(StatusCode::BAD_REQUEST, page::nothing(PageAbsence::SignInUnknown))
}

/// The server has no provider, but the tenant requires one.
fn not_here(asked: &ApproverLink) -> Response {
    failed(asked, NotSignedIn::Refused("sign_in_not_configured"))
}

/// The page again, with why nobody was signed in.
fn failed(asked: &ApproverLink, no: NotSignedIn) -> Response {
    let (status, code, why) = match no {
        NotSignedIn::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable", PageProblem::SignInUnavailable)
        }
        NotSignedIn::Refused(code @ "sign_in_not_configured") => {
            (StatusCode::SERVICE_UNAVAILABLE, code, PageProblem::NoProvider)
        }
        NotSignedIn::Refused(code) => (StatusCode::FORBIDDEN, code, refusal(code, asked)),
    };
    tracing::info!(code, "a sign-in on a decision page was refused");
    respond(status, page::asked(asked, Some(&format!("{} ({code})", page_problem(&why)))))
}

/// What people see of a refusal; the code says the rest to the operator.
fn refusal<'a>(code: &str, asked: &'a ApproverLink) -> PageProblem<'a> {
    let person = &asked.caller.actor.subject;
    match code {
        "address_other" => PageProblem::SignedInAsOther { person },
        "address_missing" | "address_unverified" => PageProblem::AddressUnproved { person },
        _ => PageProblem::NotSignedIn,
    }
}
