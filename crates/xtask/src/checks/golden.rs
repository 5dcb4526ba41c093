//! Everything that is stored or sent today can be read tomorrow: every stored form has a golden file, and every
//! golden file has a version in its name and a test that reads it.
//!
//! A type or a constant says that it is a stored form by the words `Stored form.` in its docs. Then a golden test of
//! its crate must build it: a test source that names a golden file and the form. A crate that derives an encoding and
//! marks nothing is asked which of its types are stored. What is sent is a package of `proto/`: it needs a golden file
//! named after it. A form that changes gets a new file with the next version; the old file stays, and with it the
//! test that still reads it.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::scan;
use crate::source::{Source, TokenKind, flatten};
use crate::tree::{Tree, inner_path};

const RULE: &str = "golden";
const FOLDER: &str = "golden";
const PROTO: &str = "proto";
const MARK: &str = "Stored form.";
/// The derive that gives a type its encoding.
const ENCODING: &str = "Encode";

/// Checks golden files against tests, and marked types against golden files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let files: Vec<(&str, &str)> =
        tree.files().filter_map(|(path, _)| Some((path, golden_name(path)?))).collect();
    let names: BTreeSet<&str> = files.iter().map(|(_, name)| *name).collect();
    // The golden files that each source's tests name.
    let named_by: Vec<(&Source, BTreeSet<&str>)> = tree
        .sources
        .iter()
        .map(|source| (source, names.iter().copied().filter(|name| names_file(source, name)).collect()))
        .collect();
    for (path, name) in &files {
        if !has_version(name) {
            let message = "the name must have the form and its version: <form>.v<number>.<ending>";
            findings.push(Finding::new(path, 1, RULE, message));
        }
        if !named_by.iter().any(|(_, named)| named.contains(name)) {
            findings.push(Finding::new(path, 1, RULE, "no test names this file"));
        }
    }
    let golden_tests: Vec<&Source> =
        named_by.iter().filter(|(_, named)| !named.is_empty()).map(|(source, _)| *source).collect();
    for (home, forms) in forms_by_crate(tree) {
        check_forms(home, &forms, &golden_tests, &mut findings);
    }
    for (package, path) in packages(tree) {
        if !names.iter().any(|name| inner_name(name).starts_with(&format!("{package}."))) {
            let message = format!("`{package}` is sent, but there is no golden file {package}.<ending>");
            findings.push(Finding::new(path, 1, RULE, message));
        }
    }
    findings
}

/// The packages of the API, each with its first file: `proto/switchward/v1/a.proto` is of `switchward.v1`.
fn packages(tree: &Tree) -> BTreeMap<String, &str> {
    let mut packages = BTreeMap::new();
    for path in tree.below(PROTO).filter(|path| path.ends_with(".proto")) {
        if let Some((package, _)) = inner_path(path, PROTO).and_then(|inner| inner.rsplit_once('/')) {
            packages.entry(package.replace('/', ".")).or_insert(path);
        }
    }
    packages
}

/// A name without the folders below the golden folder.
fn inner_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn check_forms(home: &str, forms: &[(&Source, Form)], golden_tests: &[&Source], findings: &mut Vec<Finding>) {
    let in_reach = |test: &&&Source| crate_of(&test.path) == Some(home) || test.path.starts_with("tests/");
    for (source, form) in forms.iter().filter(|(_, form)| form.is_marked) {
        if !golden_tests.iter().filter(in_reach).any(|test| tests_mention(test, &form.name)) {
            let message = format!("`{}` is a stored form, but no golden test of {home} builds it", form.name);
            findings.push(Finding::new(&source.path, form.line, RULE, message));
        }
    }
    if forms.iter().any(|(_, form)| form.is_marked) {
        return;
    }
    if let Some((source, form)) = forms.iter().find(|(_, form)| form.is_encoded) {
        let message = format!("{home} derives {ENCODING} but marks no type with `{MARK}` in its docs");
        findings.push(Finding::new(&source.path, form.line, RULE, message));
    }
}

/// The name of a file below a golden folder: the path after that folder.
fn golden_name(path: &str) -> Option<&str> {
    let (_, name) = path.rsplit_once(&format!("/{FOLDER}/"))?;
    Some(name)
}

/// Returns true if a name is `<form>.v<number>.<ending>`.
fn has_version(name: &str) -> bool {
    let parts: Vec<&str> = inner_name(name).split('.').collect();
    let is_version = |part: &&str| part.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
    parts.len() >= 3 && !parts[0].is_empty() && parts[1..parts.len() - 1].iter().any(is_version)
}

/// Returns true if test code names a golden file, with or without its ending.
fn names_file(source: &Source, name: &str) -> bool {
    let short = name.rsplit_once('.').map(|(short, _)| short).filter(|short| short.contains(".v"));
    scan::test_literals(source).any(|literal| literal.contains(short.unwrap_or(name)))
}

fn tests_mention(source: &Source, name: &str) -> bool {
    let words = source.tokens.iter().filter(|token| token.kind == TokenKind::Word && token.text == name);
    words.into_iter().any(|token| source.is_test(token.line))
}

/// The folder under `crates/` that a source belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(folder, _)| folder)
}

/// A type or a constant that is, or may be, a stored form.
struct Form {
    name: String,
    line: usize,
    is_marked: bool,
    is_encoded: bool,
}

fn forms_by_crate(tree: &Tree) -> BTreeMap<&str, Vec<(&Source, Form)>> {
    let mut by_crate: BTreeMap<&str, Vec<(&Source, Form)>> = BTreeMap::new();
    for source in &tree.sources {
        let Some(home) = crate_of(&source.path) else { continue };
        let mut forms = Forms::default();
        forms.visit_file(&source.syntax);
        let product = forms.found.into_iter().filter(|form| !source.is_test(form.line));
        by_crate.entry(home).or_default().extend(product.map(|form| (source, form)));
    }
    by_crate
}

#[derive(Default)]
struct Forms {
    found: Vec<Form>,
}

impl Forms {
    fn add(&mut self, name: &syn::Ident, attributes: &[syn::Attribute]) {
        let is_marked = attributes.iter().filter_map(doc_line).any(|line| line.contains(MARK));
        let is_encoded = attributes.iter().any(derives_encoding);
        if is_marked || is_encoded {
            let line = name.span().start().line;
            self.found.push(Form { name: name.to_string(), line, is_marked, is_encoded });
        }
    }
}

impl<'ast> Visit<'ast> for Forms {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_const(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_enum(self, item);
    }
}

fn doc_line(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| text.value())
}

fn derives_encoding(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let mut tokens = Vec::new();
    flatten(list.tokens.clone(), &mut tokens);
    list.path.is_ident("derive") && tokens.iter().any(|token| token.text == ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: (&str, &str) = (
        "crates/x/src/lib.rs",
        "/// A record.\n///\n/// Stored form.\n#[derive(Encode)]\npub struct Record;\n",
    );
    const FILE: (&str, &str) = ("crates/x/tests/golden/record.v1.hex", "00");

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_form_with_its_file_and_test_is_fine() {
        let test = "#[test]\nfn a() { same(include_str!(\"golden/record.v1.hex\"), Record); }\n";
        assert_eq!(findings(&[FORM, FILE, ("crates/x/tests/stored.rs", test)]), Vec::<String>::new());
    }

    #[test]
    fn a_constant_can_be_a_form_and_a_test_may_leave_out_the_ending() {
        let form = "/// Stored form.\nconst ROW: u8 = 1;\n";
        let test = "#[test]\nfn a() { same(\"record.v1\", ROW); }\n";
        assert_eq!(
            findings(&[("crates/x/src/lib.rs", form), FILE, ("crates/x/src/tests.rs", test)]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_form_that_no_golden_test_builds_is_reported_at_the_type() {
        let other = "#[test]\nfn a() { same(\"record.v1.hex\", Other); }\n";
        let elsewhere = "#[test]\nfn a() { same(\"record.v1.hex\", Record); }\n";
        assert_eq!(
            findings(&[
                FORM,
                FILE,
                ("crates/x/tests/stored.rs", other),
                ("crates/y/tests/stored.rs", elsewhere)
            ]),
            ["crates/x/src/lib.rs:5: golden: `Record` is a stored form, but no golden test of x builds it"]
        );
    }

    #[test]
    fn a_file_without_a_test_or_a_version_is_reported() {
        let product = "const A: &str = \"record.v1.hex\";\n";
        let test = "#[test]\nfn a() { same(\"reply.hex\"); }\n";
        let files = [
            FILE,
            ("crates/x/src/lib.rs", product),
            ("crates/x/tests/golden/reply.hex", "00"),
            ("crates/x/tests/stored.rs", test),
        ];
        assert_eq!(
            findings(&files),
            [
                "crates/x/tests/golden/record.v1.hex:1: golden: no test names this file",
                "crates/x/tests/golden/reply.hex:1: golden: the name must have the form and its version: <form>.v<number>.<ending>",
            ]
        );
    }

    #[test]
    fn a_crate_that_encodes_and_marks_nothing_is_asked() {
        let text = "#[derive(Debug, minicbor::Encode)]\npub enum A {}\n#[cfg(test)]\nmod tests {\n    /// Stored form.\n    struct B;\n}\n";
        assert_eq!(
            findings(&[("crates/x/src/a.rs", text)]),
            [
                "crates/x/src/a.rs:2: golden: x derives Encode but marks no type with `Stored form.` in its docs"
            ]
        );
    }

    #[test]
    fn a_package_that_is_sent_needs_its_golden_file() {
        let proto = ("proto/acme/v1/a.proto", "");
        assert_eq!(
            findings(&[proto]),
            [
                "proto/acme/v1/a.proto:1: golden: `acme.v1` is sent, but there is no golden file acme.v1.<ending>"
            ]
        );
        let test = "#[test]\nfn a() { same(\"golden/acme.v1.txt\"); }\n";
        let golden = ("crates/x/tests/golden/acme.v1.txt", "");
        assert_eq!(findings(&[proto, golden, ("crates/x/tests/api.rs", test)]), Vec::<String>::new());
    }

    #[test]
    fn a_version_stands_between_the_form_and_the_ending() {
        for name in ["record.v1.hex", "record.v12.bin.hex", "a/record.v1.hex"] {
            assert!(has_version(name), "{name}");
        }
        for name in ["record.hex", "record.v.hex", "v1.hex", "record.v1", "v1/record.hex", ".v1.hex"] {
            assert!(!has_version(name), "{name}");
        }
    }
}
