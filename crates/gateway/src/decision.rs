//! The decision page: `/a/{token}`, for whoever got a mail that asks. Plain HTML without script.
//!
//! Looking changes nothing, however often and by whatever machine it is done; only the form's POST says something, once,
//! because a gate is closed once and each form that was shown is taken once. Who has the token is the person that it was
//! made for: it stands in her mail alone, and is good for one gate and the newest round. Source: semantics §6.2; Standard
//! practice since mail scanners follow links.

mod find;
pub(crate) use find::tenant_of;
mod page;

use axum::Form;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use switchward_engine::{AnswerGate, Body, DecideGate, DiscussGate, MailToken, Reply, RequestId, Scope};
use switchward_machine::{Decision, Digest};

use crate::door::{Call, Door};
use crate::error::{Reason, Refusal};
use crate::limits::{FORM_ID_CHARS, PAGE_BODY_BYTES_MAX};
use find::{Asked, Found};

/// The pages of a door.
pub fn pages(door: Door) -> Router {
    Router::new()
        .route("/a/style.css", get(style))
        .route("/a/{token}", get(show).post(say))
        .layer(DefaultBodyLimit::max(PAGE_BODY_BYTES_MAX))
        .with_state(door)
}

/// What a form says.
#[derive(Debug, Deserialize)]
struct Said {
    /// `approve`, `reject`, `discuss` or `answer`; nothing where nothing was chosen.
    #[serde(default)]
    decision: String,
    #[serde(default)]
    comment: String,
    /// The digest of what was shown; empty where nothing is shown that has one.
    #[serde(default)]
    shown: String,
    /// The name of the form, which is taken once.
    #[serde(default)]
    form: String,
}

impl Said {
    /// Stands for all that the form says.
    fn digest(&self) -> Digest {
        let texts = [&self.decision, &self.comment, &self.shown].map(String::as_bytes);
        Digest::of_parts(&texts)
    }
}

async fn style() -> Response {
    let kind = (header::CONTENT_TYPE, "text/css; charset=utf-8");
    ([kind, (header::CACHE_CONTROL, "max-age=3600")], page::STYLE).into_response()
}

async fn show(State(door): State<Door>, Path(token): Path<String>) -> Response {
    match look(&door, &token).await {
        Ok(asked) => told(StatusCode::OK, page::asked(&asked, None)),
        Err(no) => refused(&no),
    }
}

async fn say(State(door): State<Door>, Path(token): Path<String>, Form(said): Form<Said>) -> Response {
    let asked = match look(&door, &token).await {
        Ok(asked) => asked,
        Err(no) => return refused(&no),
    };
    let body = match body(&asked, &said) {
        Ok(body) => body,
        Err(problem) => return told(StatusCode::BAD_REQUEST, page::asked(&asked, Some(problem))),
    };
    let call = Call { door: &door, caller: asked.caller.clone(), trace: None };
    // With the token in it the name of one person's form stands for nothing on another's page.
    let request = RequestId { id: format!("page:{}:{}", asked.token, said.form), body: said.digest() };
    match call.execute(Scope::Session(asked.token.session), Some(request), None, body).await {
        Ok(Reply::Gate { .. }) => {
            let back = HeaderValue::from_str(&format!("/a/{token}"));
            let mut response = StatusCode::SEE_OTHER.into_response();
            if let Ok(back) = back {
                response.headers_mut().insert(header::LOCATION, back);
            }
            guarded(response)
        }
        Ok(_) => told(StatusCode::INTERNAL_SERVER_ERROR, page::nothing("Something went wrong.", None)),
        Err(refusal) => after(&door, &token, &asked, &refusal).await,
    }
}

/// Why there is nothing to show.
enum No {
    /// The link is none, or for nothing that is known here.
    Unknown,
    /// It cannot be told now.
    Later,
}

async fn look(door: &Door, token: &str) -> Result<Asked, No> {
    let token: MailToken = token.parse().map_err(|_| No::Unknown)?;
    match find::find(door, token).await {
        Ok(Found::Asked(asked)) => Ok(*asked),
        Ok(Found::Nothing) => Err(No::Unknown),
        Err(refusal) => {
            tracing::warn!(reason = %refusal.reason().code(), "a decision page could not be read");
            Err(No::Later)
        }
    }
}

/// What is said of a form that is not the page's.
const CHANGED: &str = "The form is not the one of this page, or was changed on its way.";

/// What is said of a form that was sent before, when it said something else.
const SENT: &str = "This form was sent before, and what it said then counts.";

/// What a form asks for; what is wrong with it, in words.
fn body(asked: &Asked, said: &Said) -> Result<Body, &'static str> {
    let gate = asked.token.about;
    if said.form.len() != FORM_ID_CHARS || !said.form.bytes().all(|sign| sign.is_ascii_hexdigit()) {
        return Err(CHANGED);
    }
    let shown = match said.shown.as_str() {
        "" if asked.gate.open().gate.shown().is_some() => return Err(CHANGED),
        "" => None,
        text => Some(text.parse::<Digest>().map_err(|_| CHANGED)?),
    };
    let (comment, proof) = (said.comment.clone(), Some(asked.token.clone()));
    let decide = |decision, comment, proof| {
        Body::DecideGate(DecideGate { gate, decision, comment, shown, limits: None, proof })
    };
    match said.decision.as_str() {
        "approve" => Ok(decide(Decision::Approve, comment, proof)),
        "reject" => Ok(decide(Decision::Refuse, comment, proof)),
        "discuss" if comment.trim().is_empty() => Err("Write your question first."),
        "discuss" => Ok(Body::DiscussGate(DiscussGate { gate, comment, shown, proof })),
        "answer" if comment.trim().is_empty() => Err("Write your answer first."),
        "answer" => {
            let answer = comment.trim().into();
            Ok(Body::AnswerGate(AnswerGate { gate, answer, comment: String::new(), shown, proof }))
        }
        _ => Err("Choose one of the decisions first."),
    }
}

/// What is shown when a decision was refused: mostly that somebody was faster.
async fn after(door: &Door, token: &str, asked: &Asked, refusal: &Refusal) -> Response {
    let reason = refusal.reason();
    let is = |these: &[Reason]| these.contains(&reason);
    let status = if is(&[Reason::AlreadyResolved, Reason::SessionTerminal, Reason::StateMismatch]) {
        StatusCode::CONFLICT
    } else if is(&[Reason::CredentialInvalid, Reason::SelfApproval, Reason::NotAnApprover]) {
        StatusCode::FORBIDDEN
    } else if is(&[Reason::FieldInvalid, Reason::RequestIdReused]) {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let problem = if reason == Reason::RequestIdReused { SENT } else { refusal.message() }.to_owned();
    match look(door, token).await {
        Ok(now) => told(status, page::asked(&now, Some(&problem))),
        Err(_) => told(status, page::asked(asked, Some(&problem))),
    }
}

fn refused(no: &No) -> Response {
    match no {
        No::Unknown => {
            let why = "It may have been cut off by a mail program, or belong to another server.";
            told(StatusCode::NOT_FOUND, page::nothing("This link leads to no request.", Some(why)))
        }
        No::Later => {
            let why = "Nothing is decided. Please try again in a moment.";
            told(
                StatusCode::SERVICE_UNAVAILABLE,
                page::nothing("The request cannot be shown now.", Some(why)),
            )
        }
    }
}

fn told(status: StatusCode, page: maud::Markup) -> Response {
    guarded((status, page).into_response())
}

/// Nothing of it is kept, told to others, listed or framed, and it runs nothing.
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
