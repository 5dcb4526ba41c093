//! The HTML of a decision page.

use maud::{DOCTYPE, Markup, html};
use switchward_engine::GateView;
use switchward_messages::{
    EmptyPage, GateFacts, LANGUAGE, Medium, PageAbsence, PageLabel, PageProblem, PageState, Piece, code_hint,
    code_label, commented, confirm_by_code, gate_kind, page_absence, page_heading, page_problem, page_state,
    page_text, prose, request, sign_in_as,
};
use switchward_state::approval::OpenGate;
use switchward_state::catalogue::LinkAuth;

use super::find::ApproverLink;
use super::forms::{self, form_id};
use crate::hide::without;

/// The style sheet: the reader's own colours, one column, large targets, and nothing that moves.
pub(super) const STYLE: &str = include_str!("style.css");

fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(LANGUAGE) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex, nofollow";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href="/a/style.css";
            }
            body { main { (body) } }
        }
    }
}

/// A page that only says why there is nothing to show.
pub(super) fn nothing(absence: PageAbsence) -> Markup {
    let EmptyPage { title, why } = page_absence(absence);
    short(title, why)
}

/// A page that says one or two sentences, and shows no request.
pub(super) fn short(title: &str, why: Option<&str>) -> Markup {
    let body = html! {
        h1 { (title) }
        @if let Some(why) = why { p { (why) } }
    };
    whole(title, &body)
}

/// The request and its outcome; `problem` says why a form was not accepted.
pub(super) fn asked(asked: &ApproverLink, problem: Option<&str>) -> Markup {
    let alert =
        problem.map(|problem| html! { strong { (page_text(PageLabel::NothingRecorded)) " " } (problem) });
    request_page(asked, alert.as_ref())
}

/// The same after a form of which the server does not know whether it was recorded.
pub(super) fn uncertain(asked: &ApproverLink) -> Markup {
    request_page(asked, Some(&html! { (page_problem(&PageProblem::Uncertain)) }))
}

fn request_page(asked: &ApproverLink, alert: Option<&Markup>) -> Markup {
    let open = asked.gate.open();
    let subject = subject(open);
    let body = html! {
        p.kicker { (gate_kind(open.body.kind)) " · " (asked.session.definition) }
        h1 { (subject) }
        @if let Some(alert) = alert { div.problem role="alert" { p { (alert) } } }
        (state(asked))
        (words(open))
        (facts(asked))
        (said(asked))
        @if let GateView::Open(open, machine, _) = &asked.gate {
            @if !asked.old && !asked.own && !asked.lost && asked.visit.requester.is_none() {
                @if asked.visit.by.is_none() { (stranger(asked)) }
                @else if let Some(spec) = machine.gate(open.body.spec) { (forms::decision(asked, open, spec)) }
            }
        }
    };
    whole(&subject, &body)
}

fn subject(open: &OpenGate) -> String {
    let asked = open.body.asked.as_ref().map(|asked| request(&asked.subject));
    match (asked, &open.body.call) {
        (Some(subject), _) if !subject.is_empty() => authored(&subject),
        (_, call) => page_heading(call.as_ref().map(|call| call.capability.as_str())),
    }
}

/// Whether it is still open, as text and a symbol, not by colour alone.
fn state(asked: &ApproverLink) -> Markup {
    let person = asked.caller.actor.subject.as_str();
    let state = match &asked.gate {
        GateView::Open(..) if asked.old => PageState::Newer,
        GateView::Open(..) if asked.own => PageState::Own { person },
        GateView::Open(..) if asked.lost => PageState::NotListed { person },
        GateView::Open(..) if let Some(requester) = &asked.visit.requester => {
            PageState::OwnBrowser { requester }
        }
        GateView::Open(..) if asked.visit.by.is_none() => PageState::Unrecognised { person },
        GateView::Open(..) if let Some(vote) = &asked.vote => {
            PageState::Approved { person, at: vote.at, comment: &vote.comment }
        }
        GateView::Open(..) => PageState::Waiting { person },
        GateView::Closed(closed, _) => {
            return html! {
                div.state.closed { p { "■ " (switchward_messages::outcome(closed, asked.session.status)) } }
            };
        }
    };
    let class = match state {
        PageState::Newer
        | PageState::Own { .. }
        | PageState::NotListed { .. }
        | PageState::OwnBrowser { .. } => "state closed",
        PageState::Unrecognised { .. } | PageState::Approved { .. } | PageState::Waiting { .. } => {
            "state open"
        }
    };
    html! { div class=(class) { p { (worded(&page_state(&state))) } } }
}

/// A sentence with its emphasised words.
fn worded(pieces: &[Piece<'_>]) -> Markup {
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

/// Texts that do not come from the engine, marked as such.
fn words(open: &OpenGate) -> Markup {
    let Some(asked) = open.body.asked.as_ref().filter(|asked| !asked.body.trim().is_empty()) else {
        return html! {};
    };
    html! {
        section {
            h2 { (page_text(PageLabel::Request)) }
            blockquote { (authored(&asked.body)) }
        }
    }
}

/// The text of a process, without reply tokens, which the holder of the link must not read.
fn authored(text: &str) -> String {
    prose(without(text).as_deref().unwrap_or(text))
}

/// What the engine knows.
fn facts(asked: &ApproverLink) -> Markup {
    let unreached = match &asked.gate {
        GateView::Open(..) => Some(asked.gate.unreached()),
        GateView::Closed(..) => None,
    };
    let gate = GateFacts { open: asked.gate.open(), machine: asked.gate.machine(), unreached };
    let facts = switchward_messages::facts(&asked.session, asked.token.session, &gate, Medium::Page);
    html! {
        section {
            h2 { (page_text(PageLabel::Details)) }
            table {
                @for fact in facts {
                    tr {
                        th scope="row" { (fact.name) }
                        @if !fact.code { td { (fact.value) } }
                        @else if fact.value.contains('\n') { td { pre { (fact.value) } } }
                        @else { td { code { (fact.value) } } }
                    }
                }
            }
        }
    }
}

/// The comments so far.
fn said(asked: &ApproverLink) -> Markup {
    html! {
        @if !asked.said.is_empty() {
            section {
                h2 { (page_text(PageLabel::Comments)) }
                @for one in &asked.said {
                    p.hint { (commented(&one.by, one.at)) }
                    blockquote { (prose(&one.comment)) }
                }
            }
        }
    }
}

/// How the person is recognised, before anything can be decided.
fn stranger(asked: &ApproverLink) -> Markup {
    match asked.visit.wanted {
        LinkAuth::Link => html! {},
        LinkAuth::Code => codes(asked),
        LinkAuth::Oidc => sign_in(asked),
    }
}

/// A link and no form: browsers do not follow the answer to a form to another site.
fn sign_in(asked: &ApproverLink) -> Markup {
    html! {
        @if asked.visit.signs_in {
            div.step {
                p { (worded(&sign_in_as(&asked.caller.actor.subject))) }
                a.button href={ "/a/" (asked.token) "/sign-in" } rel="nofollow noreferrer" { (page_text(PageLabel::SignIn)) }
                p.hint { (page_text(PageLabel::SignInHint)) }
            }
        } @else {
            div.step { p { (page_text(PageLabel::NoProvider)) } }
        }
    }
}

fn codes(asked: &ApproverLink) -> Markup {
    let person = &asked.caller.actor.subject;
    let action = format!("/a/{}", asked.token);
    let send = if asked.visit.coded { PageLabel::SendAnotherCode } else { PageLabel::SendCode };
    html! {
        @if asked.visit.coded {
            form method="post" action=(action) {
                input type="hidden" name="form" value=(form_id());
                input type="hidden" name="decision" value="enter_code";
                label for="code" { (code_label(person)) }
                input #code.code name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="16" required;
                p.hint { (code_hint()) }
                button type="submit" { (page_text(PageLabel::Continue)) }
            }
        }
        form method="post" action=(action) {
            input type="hidden" name="form" value=(form_id());
            input type="hidden" name="decision" value="send_code";
            @if !asked.visit.coded {
                p { (worded(&confirm_by_code(person))) }
            }
            button.other[asked.visit.coded] type="submit" { (page_text(send)) }
        }
    }
}
