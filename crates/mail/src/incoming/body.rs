//! The part of a message that holds its text, and the sender's own words in it.

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{Message, MessagePart, MimeHeaders, PartType};

use super::own::{self, Own};
use super::{Unusable, html};
use crate::limits::{BOUNDARY_LINES_MAX, HTML_BYTES_MAX, NESTING_MAX, PARTS_MAX, TEXT_BYTES_MAX};

/// Whether so many lines could begin a part that the message is not worth parsing.
pub(super) fn too_many_boundaries(body: &[u8]) -> bool {
    let lines = body.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"--") && line.len() > 3).nth(BOUNDARY_LINES_MAX).is_some()
}

/// The sender's own words. `body` is what stands below the header section.
pub(super) fn own_words(message: &Message<'_>, body: &[u8]) -> Result<Own, Unusable> {
    if message.parts.len() > PARTS_MAX {
        return Err(Unusable::TooManyParts);
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Unusable::NoBody);
    }
    let root = message.parts.first().ok_or(Unusable::NoBody)?;
    check_preamble(root, body)?;
    let mut found = Found::default();
    look(message, 0, 0, &mut found)?;
    let shown = match (found.plain, found.html) {
        (Some(part), html) => match text_of(part)? {
            text if text.trim().is_empty() && html.is_some() => shown(html)?,
            text => Own { text: unwrapped(part, text), suspicious: false },
        },
        (None, html) => shown(html)?,
    };
    if shown.suspicious && shown.text.is_empty() {
        return Ok(shown);
    }
    let broken = [found.plain, found.html].into_iter().flatten().any(|part| part.is_encoding_problem);
    if broken {
        // What is shown depends on who mends it.
        return Ok(Own { text: String::new(), suspicious: true });
    }
    let own = own::words(&signed_text(&shown.text).ok_or(Unusable::Encrypted)?);
    Ok(Own { suspicious: own.suspicious || shown.suspicious, ..own })
}

fn shown(part: Option<&MessagePart<'_>>) -> Result<Own, Unusable> {
    Ok(html::shown(text_of(part.ok_or(Unusable::NoText)?)?))
}

/// Refuses text in front of the first part: whoever changes the boundary of a message whose `Content-Type` nobody has
/// signed leaves what was a part before standing there.
fn check_preamble(root: &MessagePart<'_>, body: &[u8]) -> Result<(), Unusable> {
    let boundary = root.content_type().and_then(|it| it.attribute("boundary"));
    let (PartType::Multipart(_), Some(boundary)) = (&root.body, boundary) else { return Ok(()) };
    let delimiter = format!("--{boundary}");
    for line in body.split(|byte| *byte == b'\n') {
        if line.starts_with(delimiter.as_bytes()) {
            return Ok(());
        }
        let told = String::from_utf8_lossy(line).to_ascii_lowercase();
        let usual = ["mime", "multi-part", "multipart"].iter().any(|word| told.contains(word));
        if !told.trim().is_empty() && !usual {
            return Err(Unusable::HiddenPreamble);
        }
    }
    Ok(())
}

/// What was found on the way down the first parts.
#[derive(Default)]
struct Found<'m> {
    plain: Option<&'m MessagePart<'m>>,
    html: Option<&'m MessagePart<'m>>,
}

/// Goes down: into every alternative, else into the first part only. What is attached is not what was written.
fn look<'m>(message: &'m Message<'m>, id: u32, depth: usize, found: &mut Found<'m>) -> Result<(), Unusable> {
    if depth > NESTING_MAX {
        return Err(Unusable::TooManyParts);
    }
    let Some(part) = message.parts.get(id as usize) else { return Ok(()) };
    let kind = Kind::of(part);
    match &part.body {
        PartType::Multipart(parts) => {
            if kind.is("multipart", "encrypted") {
                return Err(Unusable::Encrypted);
            }
            let alternative = kind.is("multipart", "alternative");
            for part in parts.iter().take(if alternative { PARTS_MAX } else { 1 }) {
                look(message, *part, depth + 1, found)?;
            }
        }
        _ if part.content_disposition().is_some_and(|it| it.ctype().eq_ignore_ascii_case("attachment")) => {}
        PartType::Text(_) if kind.is("text", "plain") => {
            check_charset(part)?;
            found.plain = found.plain.or(Some(part));
        }
        PartType::Html(_) => {
            check_charset(part)?;
            found.html = found.html.or(Some(part));
        }
        PartType::Binary(_) | PartType::InlineBinary(_) if kind.encrypted() => {
            return Err(Unusable::Encrypted);
        }
        PartType::Text(_) | PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Message(_) => {}
    }
    Ok(())
}

/// The type of a part; `text/plain` where it says none.
struct Kind(String, String);

impl Kind {
    fn of(part: &MessagePart<'_>) -> Self {
        let lower = |text: &str| text.trim().to_ascii_lowercase();
        match part.content_type() {
            Some(it) => Self(lower(it.ctype()), lower(it.subtype().unwrap_or_default())),
            None => Self("text".into(), "plain".into()),
        }
    }

    fn is(&self, kind: &str, sub: &str) -> bool {
        self.0 == kind && self.1 == sub
    }

    fn encrypted(&self) -> bool {
        let sealed = ["pkcs7-mime", "x-pkcs7-mime", "pgp-encrypted", "pgp"];
        self.0 == "application" && sealed.contains(&self.1.as_str())
    }
}

/// Refuses a character set that nobody knows: what it says would be guessed.
fn check_charset(part: &MessagePart<'_>) -> Result<(), Unusable> {
    let Some(charset) = part.content_type().and_then(|it| it.attribute("charset")) else { return Ok(()) };
    let charset = charset.trim().to_ascii_lowercase();
    let plain = ["", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"];
    let known = plain.contains(&charset.as_str()) || charset_decoder(charset.as_bytes()).is_some();
    if known { Ok(()) } else { Err(Unusable::UnknownCharset) }
}

fn text_of<'m>(part: &'m MessagePart<'m>) -> Result<&'m str, Unusable> {
    let (text, bytes_max) = match &part.body {
        PartType::Text(text) => (text.as_ref(), TEXT_BYTES_MAX),
        PartType::Html(text) => (text.as_ref(), HTML_BYTES_MAX),
        PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Message(_) | PartType::Multipart(_) => {
            return Err(Unusable::NoText);
        }
    };
    if text.len() > bytes_max { Err(Unusable::TextTooLarge) } else { Ok(text) }
}

/// A text whose lines were wrapped so that they can be put together again (RFC 3676), with whole lines.
fn unwrapped(part: &MessagePart<'_>, text: &str) -> String {
    let format = part.content_type().and_then(|it| it.attribute("format"));
    if !format.is_some_and(|format| format.eq_ignore_ascii_case("flowed")) {
        return text.to_owned();
    }
    let mut whole = String::with_capacity(text.len());
    for line in text.lines() {
        whole.push_str(line);
        let goes_on = line.ends_with(' ') && !line.starts_with('>') && line.trim() != "--";
        if !goes_on || line.trim().is_empty() {
            whole.push('\n');
        }
    }
    whole
}

/// The text inside a signed one (RFC 9580 §7), or the text itself. Nothing for an encrypted one.
fn signed_text(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    match lines.next().map(str::trim) {
        Some("-----BEGIN PGP MESSAGE-----") => None,
        Some("-----BEGIN PGP SIGNED MESSAGE-----") => {
            let inside = lines.skip_while(|line| !line.trim().is_empty());
            Some(
                inside
                    .take_while(|line| !line.starts_with("-----BEGIN PGP SIG"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        }
        Some(_) | None => Some(text.to_owned()),
    }
}
