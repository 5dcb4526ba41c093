//! Removes the parts of a message that hold a secret in encoded form, so that it does not show in their bytes.

use mail_parser::{Encoding, MessageParser, MessagePart, PartType};

use super::headers::{Headers, with_line_ends};
use super::{body, unbroken};
use crate::limits::{NESTED_MESSAGES_MAX, PARTS_MAX};

/// The replacement for a part.
const WITHHELD: &[u8] = b"[withheld: this part holds a reply address or the link of a page]\r\n";

/// Returns the message with a note instead of the content of each part that is encoded, or a message of its own, and holds
/// what `holds` looks for once decoded. A message with too many parts keeps only its header. Anything else is returned as it
/// is.
#[must_use]
pub fn withholding(raw: &[u8], holds: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let raw = with_line_ends(raw);
    let Ok(headers) = Headers::of(&raw) else { return raw.into_owned() };
    let whole = vec![(headers.body_at, raw.len())];
    let cuts = if body::too_many_boundaries(&raw) {
        whole
    } else {
        unbroken::run(|| cuts(&raw, holds)).unwrap_or(whole)
    };
    let mut left = Vec::with_capacity(raw.len());
    let mut at = 0;
    for (from, to) in cuts {
        // Nested parts are inside of a part that is cut out already.
        if from >= at && to <= raw.len() {
            left.extend_from_slice(&raw[at..from]);
            left.extend_from_slice(WITHHELD);
            at = to;
        }
    }
    left.extend_from_slice(&raw[at..]);
    left
}

/// The byte ranges of the contents of such parts.
fn cuts(raw: &[u8], holds: &dyn Fn(&str) -> bool) -> Vec<(usize, usize)> {
    let Some(message) = MessageParser::new().parse(raw) else { return Vec::new() };
    let index = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
    let cut = |part: &MessagePart<'_>| (index(part.raw_body_offset()), index(part.raw_end_offset()));
    if message.parts.len() > PARTS_MAX {
        return message.parts.first().map(cut).into_iter().collect();
    }
    let hidden = message.parts.iter().filter(|part| !is_plain(part) && opens(part, holds, 0));
    let mut cuts: Vec<_> = hidden.map(cut).collect();
    cuts.sort_unstable();
    cuts
}

/// Returns true if a part's bytes are its text.
fn is_plain(part: &MessagePart<'_>) -> bool {
    part.encoding == Encoding::None && !matches!(part.body, PartType::Message(_))
}

fn opens(part: &MessagePart<'_>, holds: &dyn Fn(&str) -> bool, depth: usize) -> bool {
    match &part.body {
        PartType::Text(text) | PartType::Html(text) => holds(text),
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => holds(&String::from_utf8_lossy(bytes)),
        // Too deeply nested parts are not searched, and so not shown.
        PartType::Message(_) if depth == NESTED_MESSAGES_MAX => true,
        PartType::Message(inner) => {
            holds(&String::from_utf8_lossy(inner.raw_message()))
                || inner.parts.iter().any(|part| opens(part, holds, depth + 1))
        }
        PartType::Multipart(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "t0ken";

    fn left(raw: &str) -> String {
        String::from_utf8(withholding(raw.as_bytes(), &|text| text.contains(SECRET))).unwrap()
    }

    #[test]
    fn a_part_whose_decoded_content_holds_it_is_left_out_and_others_are_not() {
        let part = |encoding: &str, text: &str| {
            format!(
                "--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{text}\r\n"
            )
        };
        let mail = |parts: &[String]| {
            let head =
                "From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n";
            format!("{head}{}--b--\r\n", parts.concat())
        };
        let plain = part("7bit", "nothing in it, or t0ken as it is");
        let quoted = mail(&[plain.clone(), part("quoted-printable", "go to t0=\r\nken")]);
        let shown = left(&quoted);
        assert!(
            shown.contains("t0ken as it is") && !shown.contains("t0=") && shown.contains("[withheld"),
            "{shown}"
        );
        assert!(shown.ends_with("--b--\r\n"), "{shown}");
        // "see t0ken" and "see token", as base64.
        let encoded = mail(&[part("base64", "c2VlIHQwa2Vu"), part("base64", "c2VlIHRva2Vu")]);
        let shown = left(&encoded);
        assert!(!shown.contains("c2VlIHQwa2Vu") && shown.contains("c2VlIHRva2Vu"), "{shown}");
        let inner = format!(
            "--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: c@d.example\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
            "c2VlIHQwa2Vu"
        );
        let shown = left(&mail(&[inner, plain]));
        assert!(!shown.contains("c2VlIHQwa2Vu") && shown.contains("nothing in it"), "{shown}");
    }

    #[test]
    fn a_message_that_is_one_part_keeps_its_head() {
        let head = "From: a@b.example\r\nContent-Transfer-Encoding: base64\r\n\r\n";
        let shown = left(&format!("{head}c2VlIHQwa2Vu\r\n"));
        assert!(shown.starts_with(head) && shown[head.len()..].starts_with("[withheld"), "{shown}");
        let other = format!("{head}c2VlIHRva2Vu\r\n");
        assert_eq!(left(&other), other);
        assert_eq!(left("no mail"), "no mail");
        assert_eq!(left(""), "");
    }
}
