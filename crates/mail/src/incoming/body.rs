//! The part of a message that holds its text, and the sender's own words in it.

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{Message, MessagePart, MimeHeaders, PartType};

use super::own::{self, Own};
use super::{Unusable, html};
use crate::limits::{BOUNDARY_LINES_MAX, HTML_BYTES_MAX, NESTING_MAX, PARTS_MAX, TEXT_BYTES_MAX};

/// Returns true if too many lines could begin a part for the message to be parsed.
pub(super) fn too_many_boundaries(body: &[u8]) -> bool {
    let lines = body.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"--") && line.len() > 3).nth(BOUNDARY_LINES_MAX).is_some()
}

/// The sender's own words. `body` is the part after the header section.
pub(super) fn own_words(message: &Message<'_>, body: &[u8]) -> Result<Own, Unusable> {
    if message.parts.len() > PARTS_MAX {
        return Err(Unusable::TooManyParts);
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Unusable::NoBody);
    }
    let root = message.parts.first().ok_or(Unusable::NoBody)?;
    check_preamble(root, body)?;
    let mut found = BodyParts::default();
    look(message, 0, 0, &mut found)?;
    if found.doubtful || found.parts().any(|part| part.is_encoding_problem) {
        // What is shown depends on who reads it.
        return Ok(doubtful());
    }
    let plain = found.plain.map(|part| text_of(part).map(|text| unwrapped(part, text))).transpose()?;
    let plain = plain.filter(|text| found.html.is_none() || !text.trim().is_empty());
    let plain = plain.map(|text| own_of(Own { text, suspicious: false })).transpose()?;
    let html = found.html.map(|part| text_of(part).map(html::shown)).transpose()?;
    let html = html.map(own_of).transpose()?;
    match (plain, html) {
        (Some(plain), Some(html)) if !begin_alike(&plain.text, &html.text) => Ok(doubtful()),
        (Some(plain), _) => Ok(plain),
        (None, Some(html)) => Ok(html),
        (None, None) => Err(Unusable::NoText),
    }
}

/// Words of which it is not known whether a reader would see the same.
fn doubtful() -> Own {
    Own { text: String::new(), suspicious: true }
}

/// The sender's own words in the shown text.
fn own_of(shown: Own) -> Result<Own, Unusable> {
    if shown.suspicious && shown.text.is_empty() {
        return Ok(shown);
    }
    let own = own::words(&signed_text(&shown.text).ok_or(Unusable::Encrypted)?);
    Ok(Own { suspicious: own.suspicious || shown.suspicious, ..own })
}

/// Returns true if two texts have the same first line, as far as programs write the same in both forms: marks around bold
/// words and spaces do not matter, and the end of a wrapped line may be on the next one.
fn begin_alike(plain: &str, html: &str) -> bool {
    let first = |text: &str| {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let signs = line.chars().filter(|c| !c.is_whitespace() && !"*_\u{fffd}".contains(*c));
        signs.flat_map(char::to_lowercase).collect::<String>()
    };
    let (plain, html) = (first(plain), first(html));
    let (short, long) = if plain.len() < html.len() { (&plain, &html) } else { (&html, &plain) };
    short == long || (short.len() >= WRAPPED_BYTES_MIN && long.starts_with(short.as_str()))
}

/// Refuses text before the first part: if `Content-Type` is not signed, an attacker can change the boundary, and the former
/// parts end up there.
fn check_preamble(root: &MessagePart<'_>, body: &[u8]) -> Result<(), Unusable> {
    let boundary = root.content_type().and_then(|it| it.attribute("boundary"));
    let (PartType::Multipart(_), Some(boundary)) = (&root.body, boundary) else { return Ok(()) };
    let delimiter = format!("--{boundary}");
    for line in body.split(|byte| *byte == b'\n') {
        if line.starts_with(delimiter.as_bytes()) {
            return Ok(());
        }
        let lower = String::from_utf8_lossy(line).to_ascii_lowercase();
        let usual = PREAMBLES.iter().any(|beginning| lower.trim_start().starts_with(beginning));
        if !lower.trim().is_empty() && !usual {
            return Err(Unusable::HiddenPreamble);
        }
    }
    Ok(())
}

/// The text that programs write for readers without MIME support.
const PREAMBLES: &[&str] = &[
    "this is a multi",
    "this is a mime",
    "this is a s/mime",
    "this is an openpgp/mime",
    "this is a cryptographically signed",
    "this message is in mime",
    "if you are reading this",
    "if you see this",
];
/// A first line of at least this length, without its spaces, may have been wrapped.
const WRAPPED_BYTES_MIN: usize = 50;

/// The findings on the way down the first parts.
#[derive(Default)]
struct BodyParts<'m> {
    plain: Option<&'m MessagePart<'m>>,
    html: Option<&'m MessagePart<'m>>,
    /// Whether readers differ about what is shown.
    doubtful: bool,
}

impl<'m> BodyParts<'m> {
    fn parts(&self) -> impl Iterator<Item = &'m MessagePart<'m>> + use<'m> {
        [self.plain, self.html].into_iter().flatten()
    }
}

/// Descends into every alternative, else into the first part only: attachments are not the sender's text.
fn look<'m>(
    message: &'m Message<'m>,
    id: u32,
    depth: usize,
    found: &mut BodyParts<'m>,
) -> Result<(), Unusable> {
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
            found.doubtful |= kind.is("multipart", "related") && starts_elsewhere(message, part, parts);
            let alternative = kind.is("multipart", "alternative");
            for part in parts.iter().take(if alternative { PARTS_MAX } else { 1 }) {
                look(message, *part, depth + 1, found)?;
            }
        }
        _ if part.content_disposition().is_some_and(|it| it.ctype().eq_ignore_ascii_case("attachment")) => {}
        PartType::Text(_) if kind.is("text", "plain") => {
            check_charset(part)?;
            found.doubtful |= is_coded_oddly(part);
            found.plain = found.plain.or(Some(part));
        }
        PartType::Html(_) => {
            check_charset(part)?;
            found.doubtful |= is_coded_oddly(part);
            found.html = found.html.or(Some(part));
        }
        PartType::Binary(_) | PartType::InlineBinary(_) if kind.encrypted() => {
            return Err(Unusable::Encrypted);
        }
        PartType::Text(_) | PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Message(_) => {}
    }
    Ok(())
}

/// Returns true if parts that belong together begin with another than the first (RFC 2387, 3.2).
fn starts_elsewhere(message: &Message<'_>, part: &MessagePart<'_>, parts: &[u32]) -> bool {
    let Some(start) = part.content_type().and_then(|it| it.attribute("start")) else { return false };
    let first = parts.first().and_then(|id| message.parts.get(*id as usize));
    let id = |text: &str| text.trim().trim_matches(['<', '>']).to_owned();
    first.and_then(|first| first.content_id()).map(id) != Some(id(start))
}

/// Returns true if a part is coded in a way that readers do not know, or that hides words from what looks for them.
fn is_coded_oddly(part: &MessagePart<'_>) -> bool {
    let encoding = part.content_transfer_encoding().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = part.content_type().and_then(|it| it.attribute("charset")).unwrap_or_default();
    let known = ["", "7bit", "8bit", "binary", "quoted-printable", "base64"];
    !known.contains(&encoding.as_str()) || charset.to_ascii_lowercase().contains("utf-7")
}

/// The type of a part; `text/plain` if it has none.
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

/// Refuses an unknown character set: the text would be a guess.
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

/// Joins the lines of a `format=flowed` text (RFC 3676).
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

/// The text inside a signed one (RFC 9580 §7), or the text itself. `None` for an encrypted one.
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
