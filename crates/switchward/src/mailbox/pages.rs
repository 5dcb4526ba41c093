//! The mailbox as pages: `/mail`, and `/mail/{number}` with a box to reply in.

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use serde_json::json;
use switchward_engine::{MailToken, time_text};
use switchward_gateway::Door;
use switchward_gateway::mail::{Incoming, Recorded};
use switchward_machine::Digest;

use super::{Kept, Mailbox};

/// A reply that is typed, bytes.
const REPLY_BYTES_MAX: usize = 256 * 1024;
const STYLE: &str = include_str!("style.css");

/// What the pages are made of.
#[derive(Clone)]
struct Pages {
    mailbox: Mailbox,
    door: Door,
}

/// The pages of a mailbox; what is typed there is brought in at this door.
pub(crate) fn pages(mailbox: Mailbox, door: Door) -> Router {
    Router::new()
        .route("/mail", get(list))
        .route("/mail.json", get(listed))
        .route("/mail/style.css", get(style))
        .route("/mail/{number}", get(show))
        .route("/mail/{number}/reply", post(reply))
        .layer(DefaultBodyLimit::max(REPLY_BYTES_MAX))
        .with_state(Pages { mailbox, door })
}

/// What is typed as a reply.
#[derive(Deserialize)]
struct Typed {
    text: String,
    /// Who writes; nothing: whoever the mail went to.
    #[serde(default)]
    from: String,
    /// Whether the sender counts as proved: `yes` or nothing.
    #[serde(default)]
    proved: String,
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

async fn list(State(pages): State<Pages>) -> Response {
    let all = pages.mailbox.all();
    let body = html! {
        h1 { "Mail" }
        p.hint { "What this development server would have sent. Open a mail to answer it as whoever got it." }
        @if all.is_empty() { p { "Nothing was sent yet." } } @else {
            table {
                thead { tr { th scope="col" { "Sent" } th scope="col" { "To" } th scope="col" { "Subject" } } }
                tbody { @for kept in &all {
                    tr {
                        td.time { (time_text(kept.at)) }
                        td { (kept.mail.to) }
                        td { a href={ "/mail/" (kept.number) } { (kept.mail.subject) } }
                    }
                } }
            }
        }
    };
    guarded(whole("Mail", &body))
}

/// The same for programs.
async fn listed(State(pages): State<Pages>) -> Response {
    let mail = |kept: &Kept| {
        json!({
            "number": kept.number,
            "at": time_text(kept.at),
            "to": kept.mail.to,
            "from": kept.mail.from,
            "subject": kept.mail.subject,
            "message_id": kept.mail.message_id,
            "reply_to": kept.mail.reply_to,
            "text": kept.mail.text,
        })
    };
    Json(pages.mailbox.all().iter().map(mail).collect::<Vec<_>>()).into_response()
}

async fn show(State(pages): State<Pages>, Path(number): Path<u64>) -> Response {
    let Some(kept) = pages.mailbox.get(number) else {
        return (StatusCode::NOT_FOUND, whole("Mail", &html! { h1 { "There is no such mail." } }))
            .into_response();
    };
    let mail = &kept.mail;
    let body = html! {
        p { a href="/mail" { "← All mail" } }
        h1 { (mail.subject) }
        table.heads {
            tr { th scope="row" { "From" } td { (mail.from) } }
            tr { th scope="row" { "To" } td { (mail.to) } }
            @if let Some(reply) = &mail.reply_to { tr { th scope="row" { "Reply to" } td { code { (reply) } } } }
            tr { th scope="row" { "Sent" } td { (time_text(kept.at)) } }
        }
        pre { (linked(&mail.text)) }
        details { summary { "As it goes over the wire" } pre { (String::from_utf8_lossy(&mail.raw)) } }
        @for (text, outcome) in &kept.replies {
            section.reply { h2 { "You replied (" (outcome) ")" } pre { (text) } }
        }
        @if mail.reply_to.is_some() { (form(&kept)) }
    };
    guarded(whole(&mail.subject, &body))
}

fn form(kept: &Kept) -> Markup {
    html! {
        form method="post" action={ "/mail/" (kept.number) "/reply" } {
            label for="text" { "Reply" }
            textarea id="text" name="text" rows="5" required {}
            label for="from" { "Written by" }
            input id="from" name="from" value=(kept.mail.to);
            label.check { input type="checkbox" name="proved" value="yes" checked; "the sender is proved (DKIM or SPF)" }
            button type="submit" { "Send the reply" }
        }
    }
}

/// A text in which the decision page can be opened.
fn linked(text: &str) -> Markup {
    html! {
        @for (at, line) in text.lines().enumerate() {
            @if at > 0 { "\n" }
            @match line.split_once("Decision page: ") {
                Some((before, url)) if url.starts_with("http") => { (before) "Decision page: " a href=(url) { (url) } }
                _ => { (line) }
            }
        }
    }
}

async fn reply(State(pages): State<Pages>, Path(number): Path<u64>, Form(typed): Form<Typed>) -> Response {
    let Some(kept) = pages.mailbox.get(number) else { return StatusCode::NOT_FOUND.into_response() };
    let token = kept.mail.reply_to.as_deref().and_then(token_of);
    let Some(token) = token else { return StatusCode::CONFLICT.into_response() };
    let from = if typed.from.trim().is_empty() { kept.mail.to.clone() } else { typed.from.trim().to_owned() };
    let part = kept.replies.len().to_be_bytes();
    let digest = Digest::of_parts(&[kept.mail.message_id.as_bytes(), &part, typed.text.as_bytes()]);
    let incoming = Incoming {
        token,
        from,
        text: typed.text.clone(),
        authenticated: typed.proved == "yes",
        evidence: "typed in the development mailbox".into(),
        digest,
    };
    let outcome = match pages.door.take_mail(incoming).await {
        Recorded::Taken => "taken",
        Recorded::Nowhere => "nothing waits for it",
        Recorded::Later => "not taken now; send it again",
    };
    pages.mailbox.answered(number, typed.text, outcome);
    Redirect::to(&format!("/mail/{number}")).into_response()
}

/// The token in an address that replies go to.
fn token_of(address: &str) -> Option<MailToken> {
    let (local, _) = address.rsplit_once('@')?;
    local.rsplit_once('+').map_or(local, |(_, token)| token).parse().ok()
}

fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Switchward dev" }
                link rel="stylesheet" href="/mail/style.css";
            }
            body { main { (body) } }
        }
    }
}

fn guarded(page: Markup) -> Response {
    let mut response = page.into_response();
    let policy =
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
