//! The decision page: `/a/{token}`, for the recipient of a mail that asks for a decision. Plain HTML without script.
//!
//! GET changes nothing, however often it is repeated; only the form's POST has an effect, and only once, because a gate
//! is closed once and each form that was shown is accepted once. A token is valid for one gate, one person and the
//! newest round. If the tenant requires more than the link, which may have been passed on, the page shows the request
//! and accepts nothing until it has recognised the person, because mail scanners follow links.

mod browser;
mod code;
mod find;
pub(crate) use find::tenant_of;
mod forms;
mod page;
mod provider;
mod sign_in;

use axum::{
    Form, Router,
    extract::{FromRequest as _, Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use find::{ApproverLink, TokenTarget};
use forms::DecisionForm;
use switchward_machine::TenantId;
use switchward_messages as messages;
use switchward_messages::{FormProblem, PageAbsence, PageProblem, form_problem, page_problem};
use switchward_state::approval::MailToken;
use switchward_state::catalogue::LinkAuth;
use switchward_state::{Body, Reply, RequestId, Scope};

use crate::api::{Api, Call};
use crate::error::{Reason, Refusal};
use crate::limits::PAGE_BODY_BYTES_MAX;
pub use provider::{Attempt, CALLBACK, NotSignedIn, SignIn};

/// The pages of a server.
pub fn pages(api: Api) -> Router {
    Router::new()
        .route("/a/style.css", get(style))
        .route(CALLBACK, get(sign_in::finish))
        .route("/a/{token}", get(show).post(say))
        .route("/a/{token}/sign-in", get(sign_in::begin))
        .with_state(api)
}

async fn style() -> Response {
    let kind = (header::CONTENT_TYPE, "text/css; charset=utf-8");
    ([kind, (header::CACHE_CONTROL, "max-age=3600")], page::STYLE).into_response()
}

async fn show(State(api): State<Api>, Path(token): Path<String>, headers: HeaderMap) -> Response {
    match look(&api, &token, &headers).await {
        Ok(asked) => respond(StatusCode::OK, page::asked(&asked, None)),
        Err(no) => refused(&no),
    }
}

async fn say(State(api): State<Api>, Path(token): Path<String>, request: Request) -> Response {
    let headers = request.headers().clone();
    let asked = match look(&api, &token, &headers).await {
        Ok(asked) => asked,
        Err(no) => return refused(&no),
    };
    let said = match form(&api, asked.caller.tenant, request).await {
        Ok(said) => said,
        Err(response) => return response,
    };
    if !said.is_named() {
        return respond(
            StatusCode::BAD_REQUEST,
            page::asked(&asked, Some(form_problem(FormProblem::Changed))),
        );
    }
    let visitor = Visitor { api: &api, token: &token, headers: &headers };
    match said.decision.as_str() {
        "send_code" => return code::send(&visitor, &asked, &said).await,
        "enter_code" => return code::enter(&visitor, &asked, &said).await,
        _ => {}
    }
    let by = match recognised(&asked) {
        Ok(by) => by,
        Err(problem) => return respond(StatusCode::FORBIDDEN, page::asked(&asked, Some(&problem))),
    };
    let body = match said.body(&asked, by) {
        Ok(body) => body,
        Err(problem) => {
            return respond(StatusCode::BAD_REQUEST, page::asked(&asked, Some(form_problem(problem))));
        }
    };
    match visitor.execute(&asked, said.request(&asked), body).await {
        Ok(Reply::Gate { .. }) => said.accepted(&visitor),
        Ok(_) => respond(StatusCode::INTERNAL_SERVER_ERROR, page::nothing(PageAbsence::Internal)),
        Err(refusal) => after(&visitor, &asked, &refusal).await,
    }
}

/// The sender of a form.
struct Visitor<'a> {
    api: &'a Api,
    /// The token of the page.
    token: &'a str,
    headers: &'a HeaderMap,
}

impl Visitor<'_> {
    /// Executes a command in the name of the person whose page it is.
    async fn execute(&self, asked: &ApproverLink, request: RequestId, body: Body) -> Result<Reply, Refusal> {
        let call = Call { api: self.api, caller: asked.caller.clone(), trace: None };
        call.execute(Scope::Session(asked.token.session), Some(request), None, body).await
    }

    /// Redirects back to the page, which shows the result.
    fn back(&self) -> Response {
        let mut response = StatusCode::SEE_OTHER.into_response();
        if let Ok(back) = HeaderValue::from_str(&format!("/a/{}", self.token)) {
            response.headers_mut().insert(header::LOCATION, back);
        }
        guarded(response)
    }
}

/// Returns how the visitor of a page is recognised, or the message to show if they are not.
fn recognised(asked: &ApproverLink) -> Result<LinkAuth, String> {
    if let Some(person) = &asked.visit.requester {
        return Err(page_problem(&PageProblem::OwnBrowser { requester: person }));
    }
    asked.visit.by.ok_or_else(|| page_problem(&PageProblem::Unrecognised))
}

/// Reads a form within the body limits and time limit of every request. Only the link was checked before.
async fn form(api: &Api, tenant: TenantId, request: Request) -> Result<DecisionForm, Response> {
    let (parts, body) = request.into_parts();
    let mut held = api.bodies.begin(Some(tenant), &parts.extensions);
    let bytes = crate::body::read(body, PAGE_BODY_BYTES_MAX, 0, &mut held)
        .await
        .map_err(|refusal| respond(crate::body::status(&refusal), page::nothing(PageAbsence::Incomplete)))?;
    let request = Request::from_parts(parts, bytes.into());
    let read: Result<Form<DecisionForm>, _> = Form::from_request(request, &()).await;
    read.map(|Form(said)| said).map_err(IntoResponse::into_response)
}

/// Why there is nothing to show.
enum No {
    /// The link is invalid, or leads to nothing that is known here.
    Unknown,
    /// The request cannot be read now.
    Later,
}

async fn look(api: &Api, token: &str, headers: &HeaderMap) -> Result<ApproverLink, No> {
    let token: MailToken = token.parse().map_err(|_| No::Unknown)?;
    match find::find(api, token, headers).await {
        Ok(TokenTarget::Gate(asked)) => Ok(*asked),
        Ok(TokenTarget::Nothing) => Err(No::Unknown),
        Err(refusal) => {
            tracing::warn!(reason = %refusal.reason().code(), "a decision page could not be read");
            Err(No::Later)
        }
    }
}

/// Responds to a refused decision, usually because somebody else decided first.
async fn after(visitor: &Visitor<'_>, asked: &ApproverLink, refusal: &Refusal) -> Response {
    let reason = refusal.reason();
    let is = |these: &[Reason]| these.contains(&reason);
    let status = if is(&[Reason::AlreadyResolved, Reason::SessionTerminal, Reason::StateMismatch]) {
        StatusCode::CONFLICT
    } else if is(&[Reason::CredentialInvalid, Reason::SelfApproval, Reason::NotAnApprover]) {
        StatusCode::FORBIDDEN
    } else if is(&[Reason::FieldInvalid, Reason::RequestIdReused]) {
        StatusCode::BAD_REQUEST
    } else if is(&[Reason::RateLimited]) {
        StatusCode::TOO_MANY_REQUESTS
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let now = look(visitor.api, visitor.token, visitor.headers).await;
    let asked = now.as_ref().unwrap_or(asked);
    let page = match refusal.rejection() {
        Some(rejection) => page::asked(asked, Some(&messages::refusal(rejection))),
        None if is(&[Reason::OutcomeUnknown, Reason::DeadlineExceeded]) => page::uncertain(asked),
        None if is(&[Reason::InternalError]) => {
            page::asked(asked, Some(&page_problem(&PageProblem::Internal)))
        }
        None => page::asked(asked, Some(&page_problem(&PageProblem::Later))),
    };
    respond(status, page)
}

fn refused(no: &No) -> Response {
    match no {
        No::Unknown => respond(StatusCode::NOT_FOUND, page::nothing(PageAbsence::Unknown)),
        No::Later => respond(StatusCode::SERVICE_UNAVAILABLE, page::nothing(PageAbsence::Later)),
    }
}

fn respond(status: StatusCode, page: maud::Markup) -> Response {
    guarded((status, page).into_response())
}

/// Adds headers so that the page is not cached, indexed or framed, sends no referrer and runs no script.
fn guarded(mut response: Response) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    let policy =
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
    response
}
