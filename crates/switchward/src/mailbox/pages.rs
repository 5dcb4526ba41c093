//! The mailbox as pages: `/mail`, and `/mail/{id}` with a box to reply in.

use axum::{
    Form, Json, Router,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use serde_json::json;
use switchward_gateway::{
    Api,
    mail::{Level, MailIngress, Outcome, Seen},
};
use switchward_mail::{
    Signer,
    incoming::{Dns, Envelope, Settings},
};
use switchward_messages::server_pages::mailbox::{self as words, ReplyEnd};
use switchward_messages::{LANGUAGE, Piece, page_line, server_pages};
use switchward_state::policy::time_text;

use super::{Mailbox, SentMail};
use crate::page_guard::stale_form;

/// A reply that is typed, bytes.
const REPLY_BYTES_MAX: usize = 256 * 1024;
/// The name of the keys that replies are signed with.
const SELECTOR: &str = "dev";
const STYLE: &str = include_str!("style.css");

/// What the pages are made of.
#[derive(Clone)]
struct Pages {
    mailbox: Mailbox,
    ingress: MailIngress,
}

/// The mail ingress of a mailbox. It asks no DNS: a proved reply is signed with a key whose record is added to it.
///
/// # Errors
/// The DNS that asks nobody cannot be set up.
pub(crate) fn ingress(api: Api) -> anyhow::Result<MailIngress> {
    Ok(MailIngress::new(api, Settings::of(super::HOST), Dns::of_records(&[], &[])?, Level::Strict))
}

/// The pages of a mailbox; replies that are typed there go to this ingress.
pub(crate) fn pages(mailbox: Mailbox, ingress: MailIngress) -> Router {
    Router::new()
        .route("/mail", get(list))
        .route("/mail.json", get(listed))
        .route("/mail/style.css", get(style))
        .route("/mail/{id}", get(show))
        .route("/mail/{id}/reply", post(reply))
        .layer(DefaultBodyLimit::max(REPLY_BYTES_MAX))
        .with_state(Pages { mailbox, ingress })
}

/// A reply as it was typed.
#[derive(Deserialize)]
struct Typed {
    text: String,
    /// The token of the form.
    #[serde(default)]
    token: String,
    /// The sender; empty: the recipient of the mail.
    #[serde(default)]
    from: String,
    /// Whether the sender counts as proved: `yes` or empty.
    #[serde(default)]
    proved: String,
    /// Whether a machine writes it: `yes` or empty.
    #[serde(default)]
    auto: String,
}

/// Returns the path of a mail's page.
fn page(kept: &SentMail) -> String {
    format!("/mail/{}", kept.id)
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

async fn list(State(pages): State<Pages>) -> Response {
    let all = pages.mailbox.all();
    let body = html! {
        h1 { (words::TITLE) }
        p.hint { (words::ABOUT) }
        @if all.is_empty() { p { (words::NO_MAIL) } } @else {
            table {
                thead { tr {
                    th scope="col" { (words::SENT) } th scope="col" { (words::TO) } th scope="col" { (words::SUBJECT) }
                } }
                tbody { @for kept in &all {
                    tr {
                        td.time { (time_text(kept.at)) }
                        td { (kept.mail.to) }
                        td { a href=(page(kept)) { (kept.mail.subject) } }
                    }
                } }
            }
        }
        @let seen = pages.ingress.seen();
        @if !seen.is_empty() { (came(&seen)) }
    };
    guarded(whole(words::TITLE, &body))
}

/// What came in, and what became of it.
fn came(seen: &[Seen]) -> Markup {
    html! {
        h2 { (words::RECEIVED_MAIL) }
        table {
            thead { tr {
                @for label in [words::RECEIVED_AT, words::FROM, words::SUBJECT, words::OUTCOME] {
                    th scope="col" { (label) }
                }
            } }
            tbody { @for message in seen {
                @let (what, why) = message.outcome.words();
                tr {
                    td.time { (time_text(message.at)) }
                    td { (message.from) }
                    td { (message.subject) }
                    td { (what) @if !why.is_empty() { ": " (why) } }
                }
            } }
        }
    }
}

/// The same for programs.
async fn listed(State(pages): State<Pages>) -> Response {
    let mail = |kept: &SentMail| {
        json!({
            "number": kept.number,
            "page": page(kept),
            "at": time_text(kept.at),
            "to": kept.mail.to,
            "from": kept.mail.author,
            "sender": kept.mail.from,
            "named": kept.mail.named,
            "subject": kept.mail.subject,
            "message_id": kept.mail.message_id,
            "reply_to": kept.mail.reply_to,
            "text": kept.mail.text,
        })
    };
    Json(pages.mailbox.all().iter().map(mail).collect::<Vec<_>>()).into_response()
}

async fn show(State(pages): State<Pages>, Path(id): Path<String>) -> Response {
    let Some(kept) = pages.mailbox.get(&id) else {
        let body = html! { h1 { (words::NO_SUCH_MAIL) } };
        return (StatusCode::NOT_FOUND, whole(words::TITLE, &body)).into_response();
    };
    let mail = &kept.mail;
    let body = html! {
        p { a href="/mail" { (words::ALL_MAIL) } }
        h1 { (mail.subject) }
        table.heads {
            tr { th scope="row" { (words::FROM) } td { (mail.author) } }
            @if mail.author != mail.from { tr { th scope="row" { (words::SENT_BY) } td { (mail.from) } } }
            tr { th scope="row" { (words::TO) } td { (mail.named.join(", ")) } }
            @if mail.named != [mail.to.clone()] { tr { th scope="row" { (words::DELIVERED_TO) } td { (mail.to) } } }
            @if let Some(reply) = &mail.reply_to { tr { th scope="row" { (words::REPLY_TO) } td { code { (reply) } } } }
            tr { th scope="row" { (words::SENT) } td { (time_text(kept.at)) } }
        }
        pre { (linked(&mail.text)) }
        details { summary { (words::RAW_MESSAGE) } pre { (String::from_utf8_lossy(&mail.raw)) } }
        @for (text, outcome) in &kept.replies {
            section.reply { h2 { (words::replied(outcome)) } pre { (text) } }
        }
        @if mail.reply_to.is_some() { (form(&kept)) }
    };
    guarded(whole(&mail.subject, &body))
}

fn form(kept: &SentMail) -> Markup {
    html! {
        form method="post" action={ (page(kept)) "/reply" } {
            input type="hidden" name="token" value=(kept.form.text());
            label for="text" { (words::REPLY) }
            textarea id="text" name="text" rows="5" required {}
            label for="from" { (words::WRITTEN_BY) }
            input id="from" name="from" value=(kept.mail.to);
            label.check { input type="checkbox" name="proved" value="yes" checked; (words::PROVE_SENDER) }
            label.check { input type="checkbox" name="auto" value="yes"; (words::MARK_AUTOMATIC) }
            button type="submit" { (words::SEND_REPLY) }
        }
    }
}

/// A text in which the decision page can be opened.
fn linked(text: &str) -> Markup {
    let label = page_line("");
    html! {
        @for (at, line) in text.lines().enumerate() {
            @if at > 0 { "\n" }
            @match line.split_once(&label) {
                Some((before, url)) if url.starts_with("http") => { (before) (label) a href=(url) { (url) } }
                _ => { (line) }
            }
        }
    }
}

async fn reply(State(pages): State<Pages>, Path(id): Path<String>, Form(typed): Form<Typed>) -> Response {
    let Some(kept) = pages.mailbox.get(&id) else { return StatusCode::NOT_FOUND.into_response() };
    if !kept.form.is(&typed.token) {
        return stale_form();
    }
    let Some(reply_to) = kept.mail.reply_to.clone() else { return StatusCode::CONFLICT.into_response() };
    let from = typed.from.trim();
    let from = if from.is_empty() { kept.mail.to.clone() } else { from.replace(char::is_control, "") };
    let raw = message(&kept, &from, &reply_to, &typed).into_bytes();
    let raw = if typed.proved == "yes" { signed(&pages.ingress, &from, &raw).unwrap_or(raw) } else { raw };
    let envelope = Envelope { sender: Some(from), recipients: vec![reply_to], peer: None };
    let end = match pages.ingress.ingest(&envelope, &raw).await {
        Outcome::Recorded(outcome) => ReplyEnd::Recorded { outcome: outcome.word() },
        Outcome::Bounced => ReplyEnd::Bounced,
        Outcome::Ignored(kind) => ReplyEnd::Ignored { kind },
        Outcome::Quarantined(why) => ReplyEnd::Quarantined { why },
        Outcome::Later => ReplyEnd::Later,
    };
    pages.mailbox.answered(&id, typed.text, words::reply_end(end));
    Redirect::to(&page(&kept)).into_response()
}

/// Signs the message as the mail server of its sender's domain would, with a key that is added to the ingress; `None` if the
/// sender has no domain.
fn signed(ingress: &MailIngress, from: &str, raw: &[u8]) -> Option<Vec<u8>> {
    let (_, domain) = from.rsplit_once('@')?;
    let signer = Signer::draw(domain, SELECTOR).ok()?;
    let (name, text) = signer.record();
    ingress.dns().add_record(&name, &text).ok()?;
    signer.signed(raw).ok()
}

/// What a mail program would send: the words above what they answer.
fn message(kept: &SentMail, from: &str, reply_to: &str, typed: &Typed) -> String {
    let mail = &kept.mail;
    let auto = if typed.auto == "yes" { "Auto-Submitted: auto-replied\r\n" } else { "" };
    let quoted: String = mail.text.lines().map(|line| format!("> {line}\r\n")).collect();
    let text = typed.text.replace("\r\n", "\n").replace('\n', "\r\n");
    format!(
        "{auto}From: {from}\r\nTo: {reply_to}\r\nSubject: Re: {subject}\r\n\
         Message-ID: <{number}.{reply}@{host}>\r\nIn-Reply-To: <{id}>\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
         {text}\r\n\r\n{quoting}\r\n{quoted}",
        subject = mail.subject.replace(char::is_control, " "),
        number = kept.number,
        reply = kept.replies.len() + 1,
        host = "people.switchward.localhost",
        id = mail.message_id,
        quoting = words::quoting(&time_text(kept.at), &mail.author),
    )
}

/// A page of a development server.
pub(crate) fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(LANGUAGE) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (server_pages::title(title)) }
                link rel="stylesheet" href="/mail/style.css";
            }
            body { main { (body) } }
        }
    }
}

/// A sentence with its emphasised words and its code.
pub(crate) fn worded(pieces: &[Piece<'_>]) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                Piece::Plain(text) => { (text) },
                Piece::Strong(text) => { strong { (text) } },
                Piece::Code(text) => { code { (text) } },
            }
        }
    }
}

/// The page as it is sent: nothing on it is run, kept or shown elsewhere.
pub(crate) fn guarded(page: Markup) -> Response {
    let mut response = page.into_response();
    let policy =
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    // With less, a browser would not say from which page a form comes.
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
