//! The paths that a file uses, and the names that it imports and declares.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, Token, TokenKind};

/// What a source file says of its imports.
pub(super) struct Module {
    /// The file, relative to the repository.
    pub(super) file: String,
    /// Names that `use` makes known in the whole file, with their paths.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Items that the file declares.
    pub(super) declares: BTreeSet<String>,
    /// Every path of at least two parts in its code, and what it imports for use in itself.
    pub(super) used: BTreeSet<Vec<String>>,
}

/// A module's path by its file below `src`; empty for the root.
pub(super) fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// One name of a `use` item.
struct Leaf {
    path: Vec<String>,
    name: String,
}

impl Module {
    pub(super) fn read(source: &Source) -> Self {
        let tokens: Vec<&Token> = source.tokens.iter().filter(|token| !source.is_test(token.line)).collect();
        let mut module = Self {
            file: source.path.clone(),
            imports: BTreeMap::new(),
            declares: BTreeSet::new(),
            used: BTreeSet::new(),
        };
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(token) = tokens.get(at) {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" if token.kind == TokenKind::Word && starts_item(&tokens, at) => {
                    at = module.import(&tokens, at, depth);
                    continue;
                }
                _ => {}
            }
            at = module.word(&tokens, at);
        }
        module
    }

    /// Reads the `use` item at `at`; returns where it ends.
    fn import(&mut self, tokens: &[&Token], at: usize, depth: usize) -> usize {
        let mut leaves = Vec::new();
        let end = tree(tokens, at + 1, &[], &mut leaves);
        let public = at > 0 && matches!(tokens[at - 1].text.as_str(), "pub" | ")");
        for Leaf { path, name } in leaves {
            // What is only passed on is the business of who uses it.
            if !public {
                self.used.insert(path.clone());
            }
            if depth == 0 {
                self.imports.insert(name, path);
            }
        }
        end
    }

    /// Reads a declaration or a path at `at`; returns where to go on.
    fn word(&mut self, tokens: &[&Token], at: usize) -> usize {
        let declares = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
        if tokens[at].kind != TokenKind::Word {
            return at + 1;
        }
        if declares.contains(&tokens[at].text.as_str()) {
            let name = tokens[at + 1..].iter().take(2).find(|token| token.kind == TokenKind::Word);
            self.declares.extend(name.map(|name| name.text.clone()));
        }
        let before = |back: usize| at.checked_sub(back).map(|at| tokens[at].text.as_str());
        let mut path = vec![tokens[at].text.clone()];
        let mut end = at + 1;
        while is_colons(tokens, end) && tokens.get(end + 2).is_some_and(|next| next.kind == TokenKind::Word) {
            path.push(tokens[end + 2].text.clone());
            end += 3;
        }
        if path.len() > 1 && before(1) != Some(":") {
            self.used.insert(path);
        }
        end
    }
}

/// Returns true if the word `use` begins an item here; it is also a word in captures such as `impl Trait + use<'a>`.
fn starts_item(tokens: &[&Token], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| next.text != "<")
}

fn is_colons(tokens: &[&Token], at: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    colon(at) && colon(at + 1)
}

/// Reads a tree of a `use` item, such as `a::{b, c as d}`; returns where what follows it begins.
fn tree(tokens: &[&Token], from: usize, before: &[String], leaves: &mut Vec<Leaf>) -> usize {
    let (mut path, mut at) = (before.to_vec(), from);
    if is_colons(tokens, at) {
        at += 2;
    }
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            at += 1;
            while tokens.get(at).is_some_and(|token| token.text != "}") {
                at = tree(tokens, at, &path, leaves);
                if tokens.get(at).is_some_and(|token| token.text == ",") {
                    at += 1;
                }
            }
            return at + 1;
        }
        path.push(token.text.clone());
        at += 1;
        if !is_colons(tokens, at) {
            break;
        }
        at += 2;
    }
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if tokens.get(at).is_some_and(|token| token.text == "as") {
        name = tokens.get(at + 1).map(|token| token.text.clone()).unwrap_or_default();
        at += 2;
    }
    leaves.push(Leaf { path, name });
    at
}
