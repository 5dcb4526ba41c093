//! Strict templates: `{{name.inner}}` in a text stands for a value that must be there.

use serde_json::Value;

use crate::brace::{Part, TooLong, parts, push};
use crate::limits::PATH_BYTES_MAX;
use crate::mention::{Mention, Name};
use crate::path::Path;
use crate::value;

/// A text with references to data, none of which may be absent. See [`Strict::parse`] for what a reference
/// is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strict(Vec<Part>);

/// Why a strict template has no value over some data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// The data have nothing there, or null.
    #[error("{path} has no value")]
    Absent {
        /// The reference's path, as it was written.
        path: String,
    },
    /// The text would be too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl Strict {
    /// Reads a template. Every text is valid: two braces around anything but a path are text. White space
    /// between the braces and the path is left out.
    #[must_use]
    pub fn parse(source: &str) -> Self {
        Self(parts(source, &reference))
    }

    /// The paths that it reads, in order and with duplicates.
    pub fn references(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Reference(path) => Some(path),
        })
    }

    /// Renders the template over this data. A template that is exactly one reference gives the value itself,
    /// of any type and size. Any other gives a text, in which texts stand as they are and all else as compact
    /// JSON.
    ///
    /// # Errors
    /// A reference finds no value, or null; the text would be longer than `limit` bytes.
    pub fn render(
        &self,
        lookup: &dyn Fn(&Path) -> Option<Value>,
        limit: usize,
    ) -> Result<Value, StrictError> {
        let read = |path: &Path| {
            let value = lookup(path).filter(|value| !value.is_null());
            value.ok_or_else(|| StrictError::Absent { path: path.as_str().to_owned() })
        };
        if let [Part::Reference(path)] = self.0.as_slice() {
            return read(path);
        }
        let mut made = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => push(&mut made, text, limit)?,
                Part::Reference(path) => push(&mut made, &value::text(&read(path)?), limit)?,
            }
        }
        Ok(Value::String(made))
    }
}

/// The reference that a text begins with, and what follows it.
fn reference(text: &str) -> Option<(Path, &str)> {
    let (inner, after) = inner(text)?;
    Some((Path::new(inner.trim()).ok()?, after))
}

/// What stands between the two braces that a text begins with and the next two, and what follows those.
fn inner(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.bytes().take(2 * PATH_BYTES_MAX).position(|byte| matches!(byte, b'{' | b'}'))?;
    let after = inner[end..].strip_prefix("}}")?;
    Some((&inner[..end], after))
}

/// What a text mentions in double braces: values of the data, and what only looks like a reference.
#[must_use]
pub fn strict_mentions(source: &str) -> Vec<Mention> {
    let mut mentions = Vec::new();
    for (at, _) in source.match_indices('{') {
        let Some((inner, _)) = inner(&source[at..]) else { continue };
        let begin = at + 2 + (inner.len() - inner.trim_start().len());
        let written = inner.trim();
        let name = |text: &str| {
            let offset = text.as_ptr().addr() - written.as_ptr().addr();
            Name { text: text.to_owned(), at: begin + offset }
        };
        mentions.push(match Path::new(written) {
            Ok(_) => Mention::Data(written.split('.').map(name).collect()),
            Err(_) => Mention::Literal(name(written)),
        });
    }
    mentions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rendered(source: &str) -> Result<Value, StrictError> {
        let data = json!({
            "name": "Ann", "amount": 12.5, "no": null, "yes": false, "empty": "",
            "items": [{"name": "first"}, 2, null], "deep": {"x": {"y": true}},
        });
        Strict::parse(source).render(&|path| path.get(&data).cloned(), 1000)
    }

    fn absent(path: &str) -> Result<Value, StrictError> {
        Err(StrictError::Absent { path: path.to_owned() })
    }

    #[test]
    fn exactly_one_reference_keeps_its_type() {
        assert_eq!(rendered("{{amount}}"), Ok(json!(12.5)));
        assert_eq!(rendered("{{ deep.x }}"), Ok(json!({"y": true})));
        assert_eq!(rendered("{{items.0.name}}"), Ok(json!("first")));
        assert_eq!(rendered("{{items.1}}"), Ok(json!(2)));
        assert_eq!(rendered("{{yes}}"), Ok(json!(false)));
        assert_eq!(rendered("{{empty}}"), Ok(json!("")));
    }

    #[test]
    fn everything_else_is_text() {
        assert_eq!(rendered("Hello {{name}}!"), Ok(json!("Hello Ann!")));
        assert_eq!(rendered(" {{amount}}"), Ok(json!(" 12.5")));
        assert_eq!(rendered("{{yes}}{{deep.x}}"), Ok(json!("false{\"y\":true}")));
        assert_eq!(rendered("{\"a\":{{amount}}}"), Ok(json!("{\"a\":12.5}")));
        assert_eq!(rendered("{{{name}}}"), Ok(json!("{Ann}")));
        assert_eq!(rendered("{{name}"), Ok(json!("{{name}")));
        for text in
            ["", "{}", "{{}}", "{{ }}", "{name}", "{{a..b}}", "{{a{b}}", "{{.}}", "}}{{", "{gathered.name}"]
        {
            assert_eq!(rendered(text), Ok(json!(text)), "{text}");
        }
    }

    #[test]
    fn an_absent_value_is_an_error_with_its_path() {
        for path in ["nobody", "name.x", "items.3", "items.01", "items.2", "no", "no.x", "deep.y", "#if name"]
        {
            assert_eq!(rendered(&format!("{{{{{path}}}}}")), absent(path));
            assert_eq!(rendered(&format!("{{{{name}}}} {{{{ {path} }}}}")), absent(path));
        }
        assert_eq!(rendered("{{nobody}}").unwrap_err().to_string(), "nobody has no value");
    }

    #[test]
    fn references_are_listed() {
        let template = Strict::parse("{{a}} {b} {{ c.0.d }}{{a}} {{}}");
        assert_eq!(template.references().map(Path::as_str).collect::<Vec<_>>(), ["a", "c.0.d", "a"]);
    }

    #[test]
    fn mentions_are_listed_with_their_offsets() {
        let source = "é {{größe}} {{ c.d }} {{ a..b }} {{}} {x}";
        let name = |text: &str, at: usize| Name { text: text.to_owned(), at };
        let at = |text: &str| source.find(text).unwrap();
        assert_eq!(
            strict_mentions(source),
            [
                Mention::Data(vec![name("größe", at("größe"))]),
                Mention::Data(vec![name("c", at("c.d")), name("d", at("d }}"))]),
                Mention::Literal(name("a..b", at("a..b"))),
                Mention::Literal(name("", at("{{}}") + 2)),
            ]
        );
    }

    #[test]
    fn a_long_text_is_refused() {
        let template = Strict::parse("ab{{x}}");
        let read = |_: &Path| Some(json!("cd"));
        assert_eq!(template.render(&read, 4), Ok(json!("abcd")));
        assert_eq!(template.render(&read, 3), Err(TooLong { limit: 3 }.into()));
    }

    proptest! {
        #[test]
        fn a_text_without_double_braces_is_itself(text in "([a-z}. ]|\\{ ){0,60}") {
            let template = Strict::parse(&text);
            prop_assert_eq!(template.render(&|_| None, 1000), Ok(json!(text)));
        }

        #[test]
        fn no_text_is_too_odd(text in "([a-z.é]|\\{|\\}){0,60}") {
            let template = Strict::parse(&text);
            let made = template.render(&|_| Some(json!(1)), 1000);
            prop_assert!(made.is_ok());
            let mentioned = strict_mentions(&text);
            let data = mentioned.iter().filter(|mention| matches!(mention, Mention::Data(_))).count();
            prop_assert_eq!(data, template.references().count(), "{}", text);
        }
    }
}
