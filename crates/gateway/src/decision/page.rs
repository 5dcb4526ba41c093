//! What is seen of a decision page.

use maud::{DOCTYPE, Markup, html};
use switchward_engine::{Closed, GateView, Open, Resolution, Voting, time_text};
use switchward_machine::{Decision, GateSpec};

use super::find::Asked;

/// How it looks: the reader's own colours, one column, large targets, and nothing that moves.
pub(super) const STYLE: &str = include_str!("style.css");

/// The arguments of a call that are shown, bytes; there is no use in more for a person.
const ARGS_SHOWN_BYTES: usize = 64 * 1024;

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

/// A page that says why there is nothing else.
pub(super) fn nothing(title: &str, why: Option<&str>) -> Markup {
    let body = html! {
        h1 { (title) }
        @if let Some(why) = why { p { (why) } }
    };
    whole(title, &body)
}

/// What is asked, and what became of it; `problem` says why a form was not taken.
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
        @if let GateView::Open(open, machine, _) = &asked.gate {
            @if !asked.old && let Some(spec) = machine.gate(open.gate.spec) { (form(asked, open, spec)) }
        }
    };
    whole(&subject, &body)
}

fn subject(open: &Open) -> String {
    match (&open.gate.asked, &open.gate.call) {
        (Some(asked), _) if !asked.subject.is_empty() => asked.subject.clone(),
        (_, Some(call)) => format!("May {} be called?", call.capability),
        (_, None) => "A decision is waiting".to_owned(),
    }
}

fn kind(gate: &GateView) -> &'static str {
    match gate.open().gate.kind {
        switchward_machine::GateKind::Notify => "Review",
        switchward_machine::GateKind::ToolAsk => "Tool call",
        switchward_machine::GateKind::Approval => "Approval",
        switchward_machine::GateKind::Task => "Task",
    }
}

/// Whether it still waits, in words and a sign, not in colour alone.
fn state(asked: &Asked) -> Markup {
    match &asked.gate {
        GateView::Open(..) if asked.old => html! {
            div.state.closed { p { "■ You were asked anew since. Please use the link in the newest mail." } }
        },
        GateView::Open(..) => html! {
            div.state.open { p { "● Waiting for a decision. You are " strong { (asked.caller.actor.subject) } "." } }
            @if let Some(voting) = voting(asked.gate.open()) {
                p { (voting.so_far()) "." }
            }
        },
        GateView::Closed(closed, _) => html! { div.state.closed { p { "■ " (outcome(closed)) } } },
    }
}

/// How a gate was closed.
fn outcome(closed: &Closed) -> String {
    let at = time_text(closed.at);
    let said = |comment: &str| if comment.is_empty() { String::new() } else { format!(" “{comment}”") };
    match &closed.resolution {
        Resolution::Decided { decision, by, comment, .. } => {
            let all = closed.open.gate.approved_by().join(", ");
            let all = if all.is_empty() { all } else { format!(" Approved by {all}.") };
            format!("{by} decided at {at}: {}.{}{all}", decision.word(closed.open.gate.kind), said(comment))
        }
        Resolution::Answered { by, .. } => format!("{by} answered at {at}."),
        Resolution::Voided => format!("Closed at {at}: the process has moved on."),
        Resolution::Lapsed => format!("Closed at {at}: nobody had decided in time."),
    }
}

/// What others than the engine say, marked as theirs.
fn words(open: &Open) -> Markup {
    let Some(asked) = open.gate.asked.as_ref().filter(|asked| !asked.body.trim().is_empty()) else {
        return html! {};
    };
    html! {
        section {
            h2 { "In the words of the process" }
            blockquote { (asked.body) }
        }
    }
}

/// What the engine knows.
fn facts(asked: &Asked) -> Markup {
    let open = asked.gate.open();
    let session = asked.session.key.clone().unwrap_or_else(|| asked.token.session.to_string());
    let state = asked.gate.node().map_or("", |node| node.name.as_str());
    html! {
        section {
            h2 { "What the engine knows" }
            table {
                @if let Some(call) = &open.gate.call {
                    tr { th scope="row" { "Call" } td { code { (call.capability) } } }
                    tr { th scope="row" { "With" } td { pre { (arguments(&call.args)) } } }
                    tr { th scope="row" { "Digest" } td { code { "sha256 " (call.digest.to_string()) } } }
                }
                tr { th scope="row" { "Process" } td { (asked.session.definition) " v" (asked.session.version) ", " (state) } }
                tr { th scope="row" { "Session" } td { (session) } }
                tr { th scope="row" { "Asked by" } td { (open.gate.requester) " at " (time_text(open.at)) } }
                @if let Some(due) = open.gate.asked.as_ref().and_then(|asked| asked.due) {
                    tr { th scope="row" { "Until" } td { (time_text(due)) ", then others are asked or it lapses" } }
                }
            }
        }
    }
}

fn arguments(args: &[u8]) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(args) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_default(),
        Err(_) => String::from_utf8_lossy(args).into_owned(),
    };
    let shown = &text[..text.floor_char_boundary(ARGS_SHOWN_BYTES)];
    if shown.len() == text.len() { text } else { format!("{shown}\n… ({} bytes in all)", text.len()) }
}

/// Nothing is chosen beforehand.
fn form(asked: &Asked, open: &Open, spec: &GateSpec) -> Markup {
    let shown = open.gate.shown().map(|digest| digest.to_string()).unwrap_or_default();
    let word = |decision: Decision| capital(decision.word(spec.kind));
    let answers = spec.resolve(Decision::Answer).is_some();
    html! {
        form method="post" action={ "/a/" (asked.token) } {
            input type="hidden" name="shown" value=(shown);
            @if answers {
                input type="hidden" name="decision" value="answer";
                label for="comment" { "Your answer" }
                textarea id="comment" name="comment" rows="6" required {}
                button type="submit" { "Send the answer" }
            } @else {
                fieldset {
                    legend { "Your decision" }
                    @for (value, decision) in [("approve", Decision::Approve), ("refuse", Decision::Refuse)] {
                        @if spec.resolve(decision).is_some() {
                            label.choice { input type="radio" name="decision" value=(value) required; (word(decision)) }
                        }
                    }
                    label.choice {
                        input type="radio" name="decision" value="discuss";
                        "Neither: ask or say something"
                    }
                }
                label for="comment" { "Comment" span.hint { " (needed for a question, else optional)" } }
                textarea id="comment" name="comment" rows="4" {}
                button type="submit" { "Record the decision" }
                p.hint { (rule(open)) " It is recorded with your address and cannot be taken back." }
            }
        }
    }
}

/// What one person's decision does.
fn rule(open: &Open) -> &'static str {
    if voting(open).is_some() {
        "Your approval counts once; a rejection by anybody ends the request."
    } else {
        "The first decision counts."
    }
}

fn voting(open: &Open) -> Option<&Voting> {
    open.gate.asked.as_ref().and_then(|asked| asked.voting.as_ref())
}

fn capital(word: &str) -> String {
    let mut signs = word.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}
