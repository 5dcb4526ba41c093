//! Renders the HTML part of a mail: no remote images, no scripts, tables that screen readers read as text, and the colour
//! scheme of the reader.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use switchward_messages::{
    DECISION_PAGE, DETAILS, LANGUAGE, Piece, REPLY_ABOVE, instruction, origin, other_words, page_label,
};

use super::compose::answer;
use super::{OutboundMail, Purpose};

const STYLE: &str = ":root{color-scheme:light dark}\
    body{margin:0;padding:16px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\
    .line{color:#6b7280;font-size:13px;margin:0 0 16px}\
    h1{font-size:20px;line-height:1.3;margin:0 0 16px}\
    h2{font-size:14px;color:#6b7280;margin:20px 0 6px}\
    .said{border-left:3px solid #9ca3af;padding:2px 0 2px 12px;margin:0}\
    td,th{padding:4px 16px 4px 0;vertical-align:top;text-align:left;font-weight:400}\
    th{color:#6b7280;white-space:nowrap}\
    td{white-space:pre-wrap;word-break:break-word}\
    .go{display:inline-block;min-height:44px;line-height:44px;padding:0 24px;border-radius:6px;\
    background:#1d4ed8;color:#ffffff;text-decoration:none;font-weight:600}\
    .rule{color:#6b7280;font-size:14px}";

/// Renders the whole part.
pub(super) fn page(outbound: &OutboundMail, page: Option<&str>) -> String {
    let body = match outbound.purpose {
        Purpose::Say => body_html(outbound),
        Purpose::Inform => html! { (line()) p { (body_html(outbound)) } (button(page, DECISION_PAGE)) },
        Purpose::Ask => asked(outbound, page),
    };
    let whole = html! {
        (DOCTYPE) "\n"
        html lang=(LANGUAGE) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta name="color-scheme" content="light dark";
                title { (outbound.subject) }
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body { (body) }
        }
        "\n"
    };
    whole.into_string()
}

/// The body: the definition's own HTML, or its text with its lines.
fn body_html(outbound: &OutboundMail) -> Markup {
    if outbound.html {
        return PreEscaped(outbound.body.clone());
    }
    html! {
        @for (count, line) in outbound.body.split('\n').enumerate() {
            @if count > 0 { br; "\n" }
            (line)
        }
    }
}

fn line() -> Markup {
    html! { p.line { (REPLY_ABOVE) } "\n" }
}

fn button(page: Option<&str>, label: &str) -> Markup {
    html! {
        @if let Some(page) = page { p { a.go href=(page) { (label) } } "\n" }
    }
}

fn asked(outbound: &OutboundMail, page: Option<&str>) -> Markup {
    let answer = answer(outbound, page);
    let choice = answer.choice.as_ref();
    html! {
        (line())
        h1 { (outbound.subject) } "\n"
        @if !outbound.body.trim().is_empty() {
            h2 { (origin(&answer)) } "\n"
            blockquote.said { (body_html(outbound)) } "\n"
        }
        @if !outbound.facts.is_empty() {
            h2 { (DETAILS) } "\n"
            table role="presentation" {
                "\n"
                @for fact in &outbound.facts {
                    tr { th scope="row" { (fact.name) } td { (fact.value) } } "\n"
                }
            }
            "\n"
        }
        @if let Some(instruction) = instruction(&answer) {
            h2 { (instruction.heading) } "\n"
            p { @for piece in &instruction.text { (worded(piece)) } } "\n"
        }
        (button(page, page_label(&answer)))
        @if let Some(words) = choice.and_then(other_words) { p.rule { (words) } "\n" }
        @if let Some(choice) = choice { p.rule { (choice.rule) } "\n" }
    }
}

fn worded(piece: &Piece<'_>) -> Markup {
    match piece {
        Piece::Plain(text) => html! { (text) },
        Piece::Strong(text) => html! { strong { (text) } },
        Piece::Code(text) => html! { code { (text) } },
    }
}

/// Extracts the text of HTML, roughly, for the plain text part.
pub(super) fn visible(html: &str) -> String {
    let (mut out, mut inside, mut tag) = (String::with_capacity(html.len()), false, String::new());
    for char in html.chars() {
        match (inside, char) {
            (false, '<') => {
                inside = true;
                tag.clear();
            }
            (true, '>') => {
                inside = false;
                let name: String =
                    tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
                let name = name.to_ascii_lowercase();
                let breaks =
                    ["br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "ul", "ol", "table", "blockquote"];
                if breaks.contains(&name.as_str()) && !out.ends_with("\n\n") {
                    out.push('\n');
                }
            }
            (true, char) => {
                if tag.len() < 16 {
                    tag.push(char);
                }
            }
            (false, char) => out.push(char),
        }
    }
    let text =
        ["&lt;<", "&gt;>", "&quot;\"", "&#39;'", "&nbsp; ", "&amp;&"].iter().fold(out, |text, pair| {
            let at = pair.len() - pair.chars().next_back().map_or(0, char::len_utf8);
            text.replace(&pair[..at], &pair[at..])
        });
    text.trim().to_owned()
}
