//! Brace templates, used everywhere except in bodies: `{gathered.name}` and `{gathered_data.name.inner}` in a text.

use minicbor::{CborLen, Decode, Decoder, Encode, Encoder, encode::Write};
use serde_json::Value;

use crate::limits::PATH_BYTES_MAX;
use crate::mention::{Mention, Name, NameKind};
use crate::path::Path;
use crate::value;

/// A text with references to gathered data. See `docs/formats-conversation-operations.md#templates`.
///
/// Braces that hold no such reference are text, so JSON and other code survives. Its stored form is its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Braces {
    source: String,
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Stands for itself.
    Text(String),
    /// Stands for a value of the data.
    Reference(Path),
}

/// The rendered text exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("produces a text of more than {limit} bytes")]
pub struct TooLong {
    /// The limit, bytes.
    pub limit: usize,
}

/// The names of the data, with the dot that must follow; the longer first.
const ROOTS: [&str; 2] = ["gathered_data.", "gathered."];

impl Braces {
    /// Parses a template. Every text is a valid template.
    #[must_use]
    pub fn parse(source: &str) -> Self {
        Self { source: source.to_owned(), parts: parts(source, &reference) }
    }

    /// The template as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The paths that it refers to, below the data, in order and with duplicates.
    pub fn references(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Reference(path) => Some(path),
        })
    }

    /// Renders the template over this data. A template that is exactly one reference gives the value itself, whatever
    /// its type and size, and null if it is absent (`tests/corpus/conversation/sentences.tsv#7c-6`). Any other gives a
    /// text: absent references and null as the empty text, texts as they are, the rest as compact JSON.
    ///
    /// # Errors
    /// The text would be longer than `limit` bytes.
    pub fn render(&self, lookup: &dyn Fn(&Path) -> Option<Value>, limit: usize) -> Result<Value, TooLong> {
        if let [Part::Reference(path)] = self.parts.as_slice() {
            return Ok(lookup(path).unwrap_or(Value::Null));
        }
        let mut made = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => push(&mut made, text, limit)?,
                Part::Reference(path) => {
                    let found = lookup(path).unwrap_or(Value::Null);
                    push(&mut made, &value::text(&found), limit)?;
                }
            }
        }
        Ok(Value::String(made))
    }
}

/// Cuts a template into pieces. `reference` reads what a text begins with, if it is a reference, and gives what
/// follows.
pub(crate) fn parts(source: &str, reference: &dyn Fn(&str) -> Option<(Path, &str)>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((path, after)) = reference(rest) {
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Reference(path));
            rest = after;
        } else {
            text.push('{');
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    parts
}

/// Adds to a text that is made.
pub(crate) fn push(made: &mut String, text: &str, limit: usize) -> Result<(), TooLong> {
    if made.len().saturating_add(text.len()) > limit {
        return Err(TooLong { limit });
    }
    made.push_str(text);
    Ok(())
}

/// The reference that a text begins with, and what follows it.
fn reference(text: &str) -> Option<(Path, &str)> {
    let inner = text.strip_prefix('{')?;
    let inner = ROOTS.iter().find_map(|root| inner.strip_prefix(root))?;
    let end = inner.bytes().take(PATH_BYTES_MAX + 1).position(|byte| byte == b'}')?;
    Some((Path::new(&inner[..end]).ok()?, &inner[end + 1..]))
}

/// The references in a text as written, each with its byte offset.
pub(crate) fn written(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.match_indices('{').filter_map(|(at, _)| {
        let (_, after) = reference(&source[at..])?;
        Some((at, &source[at..source.len() - after.len()]))
    })
}

/// What a text mentions in braces: values of the data, texts that only look like a reference, unknown roots, and single
/// words.
#[must_use]
pub fn braces_mentions(source: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices('{') {
        if let Some((path, after)) = reference(&source[at..]) {
            let first = source.len() - after.len() - 1 - path.as_str().len();
            let name = |name: &str| {
                let offset = name.as_ptr().addr() - path.as_str().as_ptr().addr();
                Name { text: name.to_owned(), at: first + offset }
            };
            found.push(Mention::Data(path.names().map(name).collect()));
        } else {
            found.extend(odd(source, at));
        }
    }
    found
}

/// The content of the braces that begin at `at`, if it is no reference but its author may have meant one.
fn odd(source: &str, at: usize) -> Option<Mention> {
    let (before, inner) = (&source[..at], &source[at + 1..]);
    let end = inner.bytes().take(PATH_BYTES_MAX + 1).position(|byte| matches!(byte, b'{' | b'}' | b'"'))?;
    // `${x}` is a shell variable; a brace after a backslash belongs to a pattern.
    let escaped = before.ends_with(['$', '\\']) || before.ends_with("\\p") || before.ends_with("\\P");
    if escaped || inner.as_bytes().get(end) != Some(&b'}') {
        return None;
    }
    let text = &inner[..end];
    let name = |part: &str| {
        let offset = part.as_ptr().addr() - source.as_ptr().addr();
        Name { text: part.to_owned(), at: offset }
    };
    let trimmed = text.trim();
    if ROOTS.iter().any(|root| trimmed.starts_with(root) || trimmed == root.trim_end_matches('.')) {
        return Some(Mention::Literal(name(trimmed)));
    }
    let mut words = text.split('.');
    if !words.clone().all(is_word) {
        return None;
    }
    let first = name(words.next()?);
    Some(match words.next() {
        None => Mention::Word(first),
        Some(_) => {
            let known = ROOTS.map(|root| root.trim_end_matches('.').to_owned()).into();
            Mention::Unknown { kind: NameKind::Variable, name: first, known }
        }
    })
}

/// Returns true for a name of letters, digits and underscores that does not begin with a digit.
fn is_word(text: &str) -> bool {
    let begins = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl<C> Encode<C> for Braces {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(&self.source)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Braces {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        d.str().map(Self::parse)
    }
}

impl<C> CborLen<C> for Braces {
    fn cbor_len(&self, context: &mut C) -> usize {
        self.source.cbor_len(context)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rendered(source: &str) -> Value {
        let data =
            json!({"name": "Ann", "amount": 12.5, "list": [1, "a"], "no": null, "deep": {"x": {"y": true}}});
        Braces::parse(source).render(&|path| path.get(&data).cloned(), 1000).unwrap()
    }

    #[test]
    fn exactly_one_reference_keeps_its_type() {
        assert_eq!(rendered("{gathered.amount}"), json!(12.5));
        assert_eq!(rendered("{gathered_data.list}"), json!([1, "a"]));
        assert_eq!(rendered("{gathered_data.deep.x.y}"), json!(true));
        assert_eq!(rendered("{gathered.absent}"), json!(null));
    }

    #[test]
    fn everything_else_is_text() {
        assert_eq!(rendered("Hello {gathered.name}!"), json!("Hello Ann!"));
        assert_eq!(rendered(" {gathered.amount}"), json!(" 12.5"));
        assert_eq!(rendered("{gathered.list}{gathered.deep.x}"), json!("[1,\"a\"]{\"y\":true}"));
        assert_eq!(rendered("[{gathered.absent}{gathered.no}]"), json!("[]"));
        assert_eq!(rendered(""), json!(""));
    }

    #[test]
    fn other_braces_are_text() {
        for text in [
            "{}",
            "{name}",
            "{gathered}",
            "{gathered.}",
            "{gathered. name}",
            "{gathered.a",
            "{ gathered.name }",
            "{Gathered.name}",
            "{gathered.a..b}",
            "{\"a\": {\"b\": 1}}",
            "{{x}}",
        ] {
            assert_eq!(rendered(text), json!(text));
        }
        assert_eq!(rendered("{\"a\":{\"b\":{gathered.amount}}}"), json!("{\"a\":{\"b\":12.5}}"));
        assert_eq!(rendered("{gathered.{gathered.name}"), json!("{gathered.Ann"));
    }

    #[test]
    fn references_are_listed() {
        let braces = Braces::parse("{gathered.a} {b} {gathered_data.c.d}{gathered.a}");
        assert_eq!(braces.references().map(Path::as_str).collect::<Vec<_>>(), ["a", "c.d", "a"]);
    }

    #[test]
    fn mentions_are_listed_with_their_offsets() {
        let described = |source: &str| -> Vec<String> {
            let name = |name: &Name| {
                assert!(source[name.at..].starts_with(&name.text), "{source}: {name:?}");
                name.text.clone()
            };
            let one = |mention: &Mention| match mention {
                Mention::Data(names) => names.iter().map(name).collect::<Vec<_>>().join("/"),
                Mention::Unknown { name: it, .. } => format!("no {}", name(it)),
                Mention::Literal(it) => format!("text {}", name(it)),
                Mention::Word(it) => format!("word {}", name(it)),
            };
            braces_mentions(source).iter().map(one).collect()
        };
        assert_eq!(described("é {gathered.größe} {gathered_data.c.d}"), ["größe", "c/d"]);
        assert_eq!(described("{gatered.nam} {item} {a.b.c}"), ["no gatered", "word item", "no a"]);
        assert_eq!(
            described("{ gathered.x } {gathered.a..b} {gathered}"),
            ["text gathered.x", "text gathered.a..b", "text gathered"]
        );
        for text in ["{}", "{1,3}", "{\"a\": 1}", "${HOME}", "\\p{Lu}", "{a b}", "{x", "{a.}", "{-x}"] {
            assert_eq!(described(text), [""; 0], "{text}");
        }
        assert_eq!(described("{\"a\": {\"b\": {gathered.amount}}}"), ["amount"]);
    }

    #[test]
    fn a_long_text_is_refused() {
        let braces = Braces::parse("ab{gathered.x}");
        let found = |_: &Path| Some(json!("cd"));
        assert_eq!(braces.render(&found, 4), Ok(json!("abcd")));
        assert_eq!(braces.render(&found, 3), Err(TooLong { limit: 3 }));
    }

    proptest! {
        #[test]
        fn a_text_without_references_is_itself(text in "[^g]{0,80}") {
            let braces = Braces::parse(&text);
            prop_assert_eq!(braces.render(&|_| None, 1000), Ok(json!(text)));
            prop_assert_eq!(braces.references().count(), 0);
        }

        #[test]
        fn the_stored_form_is_the_source(text in "([a-z{}. ]|\\{gathered\\.[a-z]{1,3}\\}){0,20}") {
            let braces = Braces::parse(&text);
            let bytes = minicbor::to_vec(&braces).unwrap();
            prop_assert_eq!(bytes.len(), minicbor::len(&braces));
            prop_assert_eq!(minicbor::decode::<Braces>(&bytes).unwrap(), braces);
            prop_assert_eq!(minicbor::decode::<String>(&bytes).unwrap(), text);
        }
    }
}
