//! A browser, as far as decision pages need one.

use std::collections::BTreeMap;

use crate::decision_page::{form_of, get, hidden, text};
use crate::harness::Harness;
use crate::protocols::{Answer, Raw};

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Browser {
    /// Its cookies: the name, the value, and the path prefix for which each is sent.
    pub(crate) cookies: BTreeMap<String, (String, String)>,
}

impl Browser {
    /// Returns the page of a path.
    pub(crate) async fn look(&mut self, harness: &Harness, path: &str) -> String {
        text(&self.open(harness, path).await)
    }

    /// Returns the answer to a path.
    pub(crate) async fn open(&mut self, harness: &Harness, path: &str) -> Answer {
        self.send(harness, get(path)).await
    }

    /// Opens a page, and sends one of its forms, or one that it does not have, with these fields.
    pub(crate) async fn say(&mut self, harness: &Harness, path: &str, words: &str) -> Answer {
        let page = self.look(harness, path).await;
        let fields = if words.contains("&shown=") { format!("&form={:032x}", 7) } else { hidden(&page) };
        self.send(harness, form_of(path, &format!("{words}{fields}"))).await
    }

    async fn send(&mut self, harness: &Harness, mut raw: Raw) -> Answer {
        let sent = |(name, (value, path)): (&String, &(String, String))| {
            raw.path.starts_with(path).then(|| format!("{name}={value}"))
        };
        let cookies: Vec<String> = self.cookies.iter().filter_map(sent).collect();
        if !cookies.is_empty() {
            raw.headers.push(("cookie", cookies.join("; ")));
        }
        let answer = harness.node.line.send(raw).await;
        for set in answer.headers.get_all("set-cookie") {
            self.keep(set.to_str().expect("text"));
        }
        answer
    }

    fn keep(&mut self, set: &str) {
        let mut parts = set.split("; ");
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie");
        let path = parts.clone().find_map(|part| part.strip_prefix("Path=")).expect("a path");
        if parts.any(|part| part == "Max-Age=0") {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), (value.to_owned(), path.to_owned()));
        }
    }
}
