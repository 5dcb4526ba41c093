//! The page `docs/configuration.md`. Its text is in `reference.toml`; the keys, the defaults and the environment variables
//! come from the structures.

use figment::{
    Figment,
    error::Kind,
    providers::{Format as _, Serialized, Toml},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

use super::{Config, FROM_ENVIRONMENT, PREFIX, check};

/// A key, and a value, that no structure has.
const UNKNOWN: &str = "no such key";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    title: String,
    intro: String,
    sections: Vec<Section>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    about: String,
    keys: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    name: String,
    #[serde(rename = "type")]
    type_and_range: String,
    /// Whether its table cannot be used without it.
    #[serde(default)]
    required: bool,
    /// A value that is accepted and differs from the default.
    example: Value,
    about: String,
}

impl Page {
    fn read() -> Self {
        let text = Toml::string(include_str!("reference.toml"));
        Figment::from(text).extract().expect("reference.toml is a page")
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.sections.iter().flat_map(|section| &section.keys)
    }
}

/// Sets a key of a document. `[]` behind a name stands for a list with one entry.
fn set(document: &mut Value, key: &str, value: Value) {
    let mut at = document;
    for segment in key.split('.') {
        at = match segment.strip_suffix("[]") {
            Some(name) => {
                let list = &mut at[name];
                if list.is_null() {
                    *list = json!([{}]);
                }
                &mut list[0]
            }
            None => &mut at[segment],
        };
    }
    *at = value;
}

/// A configuration with the examples of these keys.
fn document<'a>(keys: impl Iterator<Item = &'a Key>) -> Value {
    let mut document = json!({});
    for key in keys {
        set(&mut document, &key.name, key.example.clone());
    }
    document
}

fn extract(document: &Value) -> Result<Config, Box<figment::Error>> {
    Figment::from(Serialized::defaults(document)).extract().map_err(Box::new)
}

/// The fields of the structure of a table, or `None` if there is no structure at this key.
fn fields(table: &str) -> Option<&'static [&'static str]> {
    let key = if table.is_empty() { UNKNOWN.to_owned() } else { format!("{table}.{UNKNOWN}") };
    let mut document = json!({});
    set(&mut document, &key, json!(1));
    let error = extract(&document).err()?;
    if let Kind::UnknownField(_, fields) = error.kind { Some(fields) } else { None }
}

/// Adds the keys of a table's structure, and of those inside it.
fn declare(table: &str, keys: &mut Vec<String>) {
    for field in fields(table).expect("it is a table") {
        let key = if table.is_empty() { (*field).to_owned() } else { format!("{table}.{field}") };
        let listed = format!("{key}[]");
        if fields(&key).is_some() {
            declare(&key, keys);
        } else if fields(&listed).is_some() {
            declare(&listed, keys);
        } else {
            keys.push(key);
        }
    }
}

#[test]
fn every_key_of_the_structures_is_described() {
    let page = Page::read();
    let described: BTreeSet<&str> = page.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(described.len(), page.keys().count(), "a key is described twice");
    let mut declared = Vec::new();
    declare("", &mut declared);
    assert!(declared.len() > 60, "{declared:?}");
    let declared: BTreeSet<&str> = declared.iter().map(String::as_str).collect();
    let missing: Vec<_> = declared.difference(&described).collect();
    let unknown: Vec<_> = described.difference(&declared).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}; unknown: {unknown:?}");
    let unread: Vec<_> = FROM_ENVIRONMENT.iter().filter(|key| !declared.contains(*key)).collect();
    assert!(unread.is_empty(), "the environment sets keys that do not exist: {unread:?}");
}

#[test]
fn examples_are_accepted_and_only_required_keys_are_missed() {
    let page = Page::read();
    let config = extract(&document(page.keys())).unwrap();
    check(&config).unwrap();
    for key in page.keys() {
        let without = extract(&document(page.keys().filter(|other| other.name != key.name)));
        assert_eq!(without.is_err(), key.required, "{}: {without:?}", key.name);
    }
}

#[test]
fn the_values_of_closed_lists_are_described() {
    let page = Page::read();
    let mut lists = 0;
    for key in page.keys() {
        let mut document = document(page.keys());
        set(&mut document, &key.name, json!(UNKNOWN));
        let Err(error) = extract(&document) else { continue };
        if let Kind::UnknownVariant(_, values) = error.kind {
            lists += 1;
            for value in values {
                assert!(key.type_and_range.contains(&format!("`{value}`")), "{}: {value}", key.name);
            }
        }
    }
    assert!(lists > 3, "{lists}");
}

/// A default as the page shows it.
fn shown(default: &Value) -> String {
    match default {
        Value::Null => "–".to_owned(),
        Value::String(text) if text.is_empty() => "–".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(list) if list.is_empty() => "empty".to_owned(),
        Value::Object(table) if table.is_empty() => "empty".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("`{}`", default.to_string().replace(',', ", "))
        }
    }
}

/// The row of a key, with its default of these.
fn row(key: &Key, defaults: &Value) -> String {
    let Key { name, type_and_range, required, about, .. } = key;
    let default = name.split('.').fold(defaults, |at, segment| &at[segment]);
    let default = if *required { "required".to_owned() } else { shown(default) };
    let variable = if FROM_ENVIRONMENT.contains(&name.as_str()) {
        format!("`{PREFIX}{}`", name.replace('.', "__").to_uppercase())
    } else {
        "file only".to_owned()
    };
    format!("| `{name}` | {type_and_range} | {default} | {variable} | {about} |\n")
}

/// The text of `docs/configuration.md`.
fn text(page: &Page) -> String {
    let config = extract(&document(page.keys().filter(|key| key.required))).unwrap();
    let defaults = serde_json::to_value(config).unwrap();
    let mut text = format!("# {}\n\n{}\n\n", page.title, page.intro.trim());
    for section in &page.sections {
        text.push_str(&format!("## {}\n\n{}\n\n", section.title, section.about.trim()));
        text.push_str(
            "| Key | Type and range | Default | Environment variable | Meaning |\n|---|---|---|---|---|\n",
        );
        section.keys.iter().for_each(|key| text.push_str(&row(key, &defaults)));
        text.push('\n');
    }
    text.push_str("<!-- Generated; the text is in crates/switchward/src/config/reference.toml. -->\n");
    text
}

#[test]
fn the_page_is_the_one_that_is_published() {
    let text = text(&Page::read());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let published = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(published == text, "docs/configuration.md is out of date; run this test with BLESS=1");
}
