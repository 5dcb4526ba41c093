//! The parts of a message to show to a person who handles quarantined mail: none of it is believed or rendered.

use mail_parser::{MessageParser, PartType};

use super::headers::{self, Headers, cut};
use super::{Envelope, Settings, address, body, html, tokens, unbroken};
use crate::limits::{LEGIBLE_HEADERS_BYTES_MAX, LEGIBLE_TEXT_BYTES_MAX, PARTS_MAX};

/// The summary of a message's header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The claimed sender; empty if unreadable.
    pub from: String,
    /// Its subject, decoded and on one line.
    pub subject: String,
    /// Possible tokens of ours, the likeliest first.
    pub tokens: Vec<String>,
}

/// Reads the head of a message, as far as it can be read.
#[must_use]
pub fn head(raw: &[u8], envelope: &Envelope, settings: &Settings) -> Head {
    unbroken::run(|| head_unguarded(raw, envelope, settings)).unwrap_or_default()
}

fn head_unguarded(raw: &[u8], envelope: &Envelope, settings: &Settings) -> Head {
    let lines = headers::with_line_ends(raw);
    let Ok(headers) = Headers::of(&lines) else { return Head::default() };
    let written = || headers.first("from").map(|field| field.bare()).unwrap_or_default();
    let from = address::the_sender(&headers).map_or_else(|_| written(), |from| from.text);
    let tokens = tokens::of(&headers, envelope, settings).unwrap_or_default();
    let tokens = tokens.into_iter().map(|token| token.text).collect();
    Head { from, subject: headers.subject(), tokens }
}

/// The claimed sender of a message; empty if unreadable.
pub(crate) fn sender_of(raw: &[u8]) -> String {
    let sender = || {
        let lines = headers::with_line_ends(raw);
        let headers = Headers::of(&lines).ok()?;
        address::the_sender(&headers).ok().map(|from| from.text.to_ascii_lowercase())
    };
    unbroken::run(sender).flatten().unwrap_or_default()
}

/// A message as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Legible {
    /// Its header section as it came, at most [`LEGIBLE_HEADERS_BYTES_MAX`] bytes of it.
    pub headers: String,
    /// Its texts, of HTML the visible words, at most [`LEGIBLE_TEXT_BYTES_MAX`] bytes of them.
    pub text: String,
}

/// Reads a message, as far as it can be read.
#[must_use]
pub fn legible(raw: &[u8]) -> Legible {
    let lines = headers::with_line_ends(raw);
    let raw: &[u8] = &lines;
    let whole = |bytes: &[u8], most| cut(&String::from_utf8_lossy(&bytes[..bytes.len().min(most)]), most);
    let Ok(headers) = Headers::of(raw) else {
        // Without a header section all of it is text.
        return Legible { headers: String::new(), text: whole(raw, LEGIBLE_TEXT_BYTES_MAX) };
    };
    let below = &raw[headers.body_at..];
    let shown = whole(&raw[headers.begins_at..headers.body_at], LEGIBLE_HEADERS_BYTES_MAX);
    let text = unbroken::run(|| words(&raw[headers.begins_at..], below)).flatten();
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(below).into_owned());
    Legible { headers: shown, text: cut(&text, LEGIBLE_TEXT_BYTES_MAX) }
}

/// The concatenated texts of a message; empty if it is not worth parsing.
fn words(message: &[u8], below: &[u8]) -> Option<String> {
    if body::too_many_boundaries(below) {
        return None;
    }
    let message = MessageParser::new().parse(message).filter(|message| message.parts.len() <= PARTS_MAX)?;
    let mut text = String::new();
    for part in &message.text_body {
        match message.part(*part).map(|part| &part.body) {
            Some(PartType::Text(plain)) => text.push_str(plain),
            Some(PartType::Html(source)) => {
                let source = cut(source, crate::limits::HTML_BYTES_MAX);
                text.push_str(&html::shown(&source).text);
            }
            Some(
                PartType::Binary(_)
                | PartType::InlineBinary(_)
                | PartType::Message(_)
                | PartType::Multipart(_),
            )
            | None => {}
        }
        if text.len() > LEGIBLE_TEXT_BYTES_MAX {
            break;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_html_only_the_visible_words_are_shown() {
        let raw = b"From: ann@a.example\r\nContent-Type: text/html\r\n\r\n<p>Pay <b>now</b></p><script>x()</script>";
        let read = legible(raw);
        assert_eq!(read.text.trim(), "Pay now");
        assert_eq!(read.headers, "From: ann@a.example\r\nContent-Type: text/html\r\n\r\n");
    }

    #[test]
    fn what_cannot_be_read_is_shown_as_it_is_and_never_more_than_so_much() {
        assert_eq!(legible(b"\xff no mail").text, "\u{fffd} no mail");
        assert_eq!(legible(b""), Legible::default());
        let long =
            [b"From: a@b.example\r\n\r\n".as_slice(), &vec![b'x'; 2 * LEGIBLE_TEXT_BYTES_MAX]].concat();
        assert_eq!(legible(&long).text.len(), LEGIBLE_TEXT_BYTES_MAX);
        let long = [b"A: ".as_slice(), &vec![b'x'; 2 * LEGIBLE_HEADERS_BYTES_MAX]].concat();
        assert!(legible(&long).headers.len() <= LEGIBLE_HEADERS_BYTES_MAX);
    }

    #[test]
    fn a_head_yields_the_sender_and_the_token_whatever_wrote_it() {
        let raw = b"From: Ann <ann@a.example>\r\nTo: r+abc@reply.example\r\nSubject: Hi\r\nAuto-Submitted: auto-replied\r\n\r\nAway.";
        let head = head(raw, &Envelope::default(), &Settings::of("reply.example"));
        assert_eq!((head.from.as_str(), head.subject.as_str()), ("ann@a.example", "Hi"));
        assert_eq!(head.tokens, ["abc"]);
    }
}
