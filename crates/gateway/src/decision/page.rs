//! The HTML of a decision page.

use maud::{DOCTYPE, Markup, html};
use switchward_engine::GateView;
use switchward_machine::{Decision, GateSpec};
use switchward_messages::{GateFacts, Medium, at, clean, prose, request};
use switchward_state::approval::OpenGate;
use switchward_state::catalogue::LinkAuth;
use switchward_state::limits::{PAGE_CODE_DIGITS, PAGE_CODE_MS};

use super::find::Asked;
use crate::hide::without;

/// The style sheet: the reader's own colours, one column, large targets, and nothing that moves.
pub(super) const STYLE: &str = include_str!("style.css");

fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
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
pub(super) fn nothing(title: &str, why: Option<&str>) -> Markup {
    let body = html! {
        h1 { (title) }
        @if let Some(why) = why { p { (why) } }
    };
    whole(title, &body)
}

/// The request and its outcome; `problem` says why a form was not accepted.
pub(super) fn asked(asked: &Asked, problem: Option<&str>) -> Markup {
    let open = asked.gate.open();
    let subject = subject(open);
    let body = html! {
        p.kicker { (kind(&asked.gate)) " · " (asked.session.definition) }
        h1 { (subject) }
        @if let Some(problem) = problem {
            div.problem role="alert" { p { strong { "Nothing was recorded. " } (problem) } }
        }
        (state(asked))
        (words(open))
        (facts(asked))
        (said(asked))
        @if let GateView::Open(open, machine, _) = &asked.gate {
            @if !asked.old && !asked.own && asked.visit.requester.is_none() {
                @if asked.visit.by.is_none() { (stranger(asked)) }
                @else if let Some(spec) = machine.gate(open.body.spec) { (form(asked, open, spec)) }
            }
        }
    };
    whole(&subject, &body)
}

fn subject(open: &OpenGate) -> String {
    let asked = open.body.asked.as_ref().map(|asked| request(&asked.subject));
    match (asked, &open.body.call) {
        (Some(subject), _) if !subject.is_empty() => worded(&subject),
        (_, Some(call)) => format!("May {} be called?", clean(&call.capability)),
        (_, None) => "A decision is needed".to_owned(),
    }
}

fn kind(gate: &GateView) -> &'static str {
    match gate.open().body.kind {
        switchward_machine::GateKind::Notify => "Review",
        switchward_machine::GateKind::ToolAsk => "Tool call",
        switchward_machine::GateKind::Approval => "Approval",
        switchward_machine::GateKind::Task => "Task",
    }
}

/// Whether it is still open, as text and a symbol, not by colour alone.
fn state(asked: &Asked) -> Markup {
    match &asked.gate {
        GateView::Open(..) if asked.old => html! {
            div.state.closed { p { "■ There is a newer mail about this. Please use the link in the newest mail." } }
        },
        GateView::Open(..) if asked.own => html! {
            div.state.closed {
                p { "■ You, " strong { (asked.caller.actor.subject) } ", asked for this yourself. Somebody else must decide." }
            }
        },
        GateView::Open(..) if let Some(person) = &asked.visit.requester => html! {
            div.state.closed {
                p { "■ This browser is known as " strong { (person) } ", who asked for this. Somebody else must decide." }
            }
        },
        GateView::Open(..) if asked.visit.by.is_none() => html! {
            div.state.open {
                p { "● Waiting for a decision by " strong { (asked.caller.actor.subject) } ". This page does not know you yet." }
            }
        },
        GateView::Open(..) if let Some(vote) = &asked.vote => html! {
            div.state.open {
                p {
                    "✓ You, " strong { (asked.caller.actor.subject) } ", approved at " (at(vote.at))
                    (quoted(&vote.comment)) ". More approvals are needed."
                }
            }
        },
        GateView::Open(..) => html! {
            div.state.open { p { "● Waiting for a decision. You are " strong { (asked.caller.actor.subject) } "." } }
        },
        GateView::Closed(closed, _) => {
            html! { div.state.closed { p { "■ " (switchward_messages::outcome(closed, asked.session.status)) } } }
        }
    }
}

/// A comment in quotation marks after a decision, if there is one.
fn quoted(comment: &str) -> String {
    if comment.is_empty() { String::new() } else { format!(" “{}”", prose(comment)) }
}

/// Texts that do not come from the engine, marked as such.
fn words(open: &OpenGate) -> Markup {
    let Some(asked) = open.body.asked.as_ref().filter(|asked| !asked.body.trim().is_empty()) else {
        return html! {};
    };
    html! {
        section {
            h2 { "The request, as the process wrote it" }
            blockquote { (worded(&asked.body)) }
        }
    }
}

/// The text of a process, without reply tokens, which the holder of the link must not read.
fn worded(text: &str) -> String {
    prose(without(text).as_deref().unwrap_or(text))
}

/// What the engine knows.
fn facts(asked: &Asked) -> Markup {
    let unreached = match &asked.gate {
        GateView::Open(..) => Some(asked.gate.unreached()),
        GateView::Closed(..) => None,
    };
    let gate = GateFacts { open: asked.gate.open(), machine: asked.gate.machine(), unreached };
    let facts = switchward_messages::facts(&asked.session, asked.token.session, &gate, Medium::Page);
    html! {
        section {
            h2 { "Details" }
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
fn said(asked: &Asked) -> Markup {
    html! {
        @if !asked.said.is_empty() {
            section {
                h2 { "Comments so far" }
                @for one in &asked.said {
                    p.hint { (one.by) " at " (at(one.at)) }
                    blockquote { (prose(&one.comment)) }
                }
            }
        }
    }
}

/// The form. No decision is preselected.
fn form(asked: &Asked, open: &OpenGate, spec: &GateSpec) -> Markup {
    let shown = open.body.shown().map(|digest| digest.to_string()).unwrap_or_default();
    let word = |decision: Decision| capital(decision.word());
    let answers = spec.resolve(Decision::Answer).is_some();
    let offered =
        [("approve", Decision::Approve), ("reject", Decision::Refuse)].into_iter().filter(|(_, decision)| {
            spec.resolve(*decision).is_some() && (asked.vote.is_none() || *decision != Decision::Approve)
        });
    let mut rule = if spec.resolve(Decision::Approve).is_some() {
        switchward_messages::rule(open)
    } else {
        String::new()
    };
    rule.push_str(" Your decision and your comment are recorded with your address and cannot be withdrawn.");
    html! {
        form method="post" action={ "/a/" (asked.token) } {
            input type="hidden" name="shown" value=(shown);
            input type="hidden" name="form" value=(form_id());
            @if answers {
                input type="hidden" name="decision" value="answer";
                label for="comment" { "Your answer" }
                textarea id="comment" name="comment" rows="6" required {}
                button type="submit" { "Send the answer" }
            } @else {
                fieldset {
                    legend { "Your decision" }
                    @for (value, decision) in offered {
                        label.choice { input type="radio" name="decision" value=(value) required; (word(decision)) }
                    }
                    label.choice {
                        input type="radio" name="decision" value="discuss";
                        "Neither: ask a question or comment"
                    }
                }
                label for="comment" { "Comment" span.hint { " (required for a question, otherwise optional)" } }
                textarea id="comment" name="comment" rows="4" {}
                button type="submit" { "Record the decision" }
                p.hint { (rule.trim_start()) }
            }
        }
    }
}

/// How the person is recognised, before anything can be decided.
fn stranger(asked: &Asked) -> Markup {
    match asked.visit.wanted {
        LinkAuth::Link => html! {},
        LinkAuth::Code => codes(asked),
        LinkAuth::Oidc => sign_in(asked),
    }
}

/// A link and no form: browsers do not follow the answer to a form to another site.
fn sign_in(asked: &Asked) -> Markup {
    html! {
        @if asked.visit.signs_in {
            div.step {
                p { "To decide here, sign in as " strong { (asked.caller.actor.subject) } "." }
                a.button href={ "/a/" (asked.token) "/sign-in" } rel="nofollow noreferrer" { "Sign in" }
                p.hint { "You come back to this page. Signing in decides nothing." }
            }
        } @else {
            div.step {
                p { "This page requires a sign-in, but this server has no OpenID provider." }
            }
        }
    }
}

fn codes(asked: &Asked) -> Markup {
    let person = &asked.caller.actor.subject;
    let action = format!("/a/{}", asked.token);
    let send = if asked.visit.coded { "Send another code" } else { "Send the code" };
    html! {
        @if asked.visit.coded {
            form method="post" action=(action) {
                input type="hidden" name="form" value=(form_id());
                input type="hidden" name="decision" value="enter_code";
                label for="code" { "The code that was sent to " (person) }
                input #code.code name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="16" required;
                p.hint { (PAGE_CODE_DIGITS) " digits, valid for " (PAGE_CODE_MS / 60_000) " minutes. Entering it decides nothing." }
                button type="submit" { "Continue" }
            }
        }
        form method="post" action=(action) {
            input type="hidden" name="form" value=(form_id());
            input type="hidden" name="decision" value="send_code";
            @if !asked.visit.coded {
                p { "To decide here, confirm that you are " strong { (person) } ": a code is mailed to that address." }
            }
            button.other[asked.visit.coded] type="submit" { (send) }
        }
    }
}

/// An id for one form as it was shown, so that it is accepted once however often it is sent: 32 hexadecimal digits.
fn form_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn capital(word: &str) -> String {
    let mut signs = word.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}
