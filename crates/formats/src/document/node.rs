//! The tree.

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// From 1. Lines end with a line feed, a carriage return, or both.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// Characters on that line; 1 for a list or a map.
    pub width: u32,
}

impl Span {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1, width: 1 };
}

/// A value and its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The value itself, or that it could not be read.
    pub value: Value,
    /// Where it begins.
    pub span: Span,
}

/// A key of a map and its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key as text, whatever it would be as a value: `yes`, `1`, `null`.
    pub text: String,
    /// Where it begins.
    pub span: Span,
}

/// A key and its value.
pub type Entry = (Key, Node);

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`, `~` or no value at all.
    Null,
    /// True or false.
    Bool(bool),
    /// A finite number as it is written; always a number of JSON's grammar.
    Number(String),
    /// A text.
    String(String),
    /// In the author's order.
    List(Vec<Node>),
    /// In the author's order; no key twice.
    Map(Vec<Entry>),
    /// A value that could not be read; the report says why. Only in a tree with errors.
    Unread,
}

impl Value {
    /// What it is, for sentences: `a number`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::String(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Unread => "unreadable",
        }
    }
}

impl Node {
    /// The entries, if it is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Unread => None,
        }
    }

    /// The items, if it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Map(_)
            | Value::Unread => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Unread => None,
        }
    }

    /// The number as written, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<&str> {
        match &self.value {
            Value::Number(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Unread => None,
        }
    }

    /// True or false, if it is one of them.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(value) => Some(*value),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Unread => None,
        }
    }

    /// Returns true if it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The entry of this key, if it is a map that has one.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_map()?.iter().find(|(known, _)| known.text == key)
    }

    /// The value of this key, if it is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|(_, node)| node)
    }
}

impl Node {
    /// The value as JSON. An unreadable value is null, and so is a number that no JSON reader takes.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null | Value::Unread => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(text) => serde_json::from_str(text).unwrap_or(serde_json::Value::Null),
            Value::String(text) => serde_json::Value::String(text.clone()),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.text.clone(), value.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }

    /// The key and the value at a JSON pointer (RFC 6901), as far as it leads: the last ones that exist.
    /// There is no key for the whole value and for an item of a list.
    #[must_use]
    pub fn at_pointer(&self, pointer: &str) -> (Option<&Key>, &Self) {
        let mut at = (None, self);
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &at.1.value {
                Value::Map(_) => at.1.entry(&step).map(|(key, value)| (Some(key), value)),
                Value::List(items) => {
                    step.parse::<usize>().ok().and_then(|index| items.get(index)).map(|item| (None, item))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unread => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use crate::Report;
    use crate::document::{Syntax, read};

    #[test]
    fn a_pointer_leads_as_far_as_the_tree_goes() {
        let source = b"a/b: [1, {c~d: 2}]\nx: 1.50\n";
        let root = read(source, Syntax::Yaml, &mut Report::new("x")).unwrap();
        let at = |pointer: &str| {
            let (key, node) = root.at_pointer(pointer);
            (key.map(|key| key.text.as_str()), node.to_json().to_string())
        };
        assert_eq!(at("/a~1b/1/c~0d"), (Some("c~d"), "2".to_owned()));
        assert_eq!(at("/a~1b/0"), (None, "1".to_owned()));
        assert_eq!(at("/a~1b/7/c"), (Some("a/b"), r#"[1,{"c~d":2}]"#.to_owned()));
        assert_eq!(at(""), (None, r#"{"a/b":[1,{"c~d":2}],"x":1.5}"#.to_owned()));
    }
}
