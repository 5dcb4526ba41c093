//! Renders the HTML part of a mail: no remote images, no scripts, tables that screen readers read as text, and the colour
//! scheme of the reader.

use super::compose::{REPLY_ABOVE, TOO_LONG, also, anything_else, body_html, wrote};
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

/// Escapes text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Renders the whole part.
pub(super) fn page(outbound: &OutboundMail, page: Option<&str>) -> String {
    let body = match outbound.purpose {
        Purpose::Say => body_html(outbound),
        Purpose::Inform => {
            format!("{}<p>{}</p>{}", line(), body_html(outbound), button(page, "Decision page"))
        }
        Purpose::Ask => asked(outbound, page),
    };
    let title = escaped(&outbound.subject);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )
}

fn line() -> String {
    format!("<p class=\"line\">{REPLY_ABOVE}</p>\n")
}

fn button(page: Option<&str>, label: &str) -> String {
    page.map_or_else(String::new, |page| {
        format!("<p><a class=\"go\" href=\"{}\">{label}</a></p>\n", escaped(page))
    })
}

fn asked(outbound: &OutboundMail, page: Option<&str>) -> String {
    let mut out = format!("{}<h1>{}</h1>\n", line(), escaped(&outbound.subject));
    if !outbound.body.trim().is_empty() {
        out.push_str(&format!(
            "<h2>{}</h2>\n<blockquote class=\"said\">{}</blockquote>\n",
            wrote(outbound),
            body_html(outbound)
        ));
    }
    if !outbound.facts.is_empty() {
        out.push_str("<h2>Details</h2>\n<table role=\"presentation\">\n");
        for fact in &outbound.facts {
            let (name, value) = (escaped(&fact.name), escaped(&fact.value));
            out.push_str(&format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>\n"));
        }
        out.push_str("</table>\n");
    }
    match (&outbound.choice, &outbound.reply_token) {
        (Some(choice), Some(_)) if choice.page_only => out.push_str(&format!(
            "<h2>To decide</h2>\n<p>{TOO_LONG} To reject, answer this mail with <strong>{}</strong> on the first line. {}</p>\n",
            escaped(&choice.refuse.to_uppercase()),
            anything_else(choice)
        )),
        (Some(choice), Some(_)) => out.push_str(&format!(
            "<h2>To decide</h2>\n<p>Answer this mail with one word on the first line: <strong>{}</strong> or \
             <strong>{}</strong>. A comment may follow on the next lines. {}</p>\n",
            escaped(&choice.approve.to_uppercase()),
            escaped(&choice.refuse.to_uppercase()),
            anything_else(choice)
        )),
        (None, Some(_)) => {
            out.push_str("<h2>To answer</h2>\n<p>Reply to this mail; your text is the answer.</p>\n");
        }
        (_, None) => {}
    }
    out.push_str(&button(
        page,
        if outbound.choice.is_some() { "Open the decision page" } else { "Answer on a page" },
    ));
    if let Some(also) = outbound.choice.as_ref().filter(|choice| !choice.page_only).and_then(also) {
        out.push_str(&format!("<p class=\"rule\">{}</p>\n", escaped(&also)));
    }
    if let Some(choice) = &outbound.choice {
        out.push_str(&format!("<p class=\"rule\">{}</p>\n", escaped(&choice.rule)));
    }
    out
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
