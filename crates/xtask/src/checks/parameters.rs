//! A call says what it passes: no parameter is a tuple, and none that other files pass is a `bool`.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

/// The rule against tuples, in every function.
pub(crate) const TUPLE: &str = "tuple-parameter";
/// The rule against `bool`, in functions that are visible outside their file.
pub(crate) const BOOL: &str = "bool-parameter";

/// Looks at the signature of every function, method and trait method outside tests. A method that implements a trait
/// is left out: its signature is the trait's, which is checked in its own file if it is ours.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let mut visited = Parameters { source, trait_is_visible: true, findings: &mut findings };
        visited.visit_file(&source.syntax);
    }
    findings
}

struct Parameters<'s> {
    source: &'s Source,
    /// True if the trait that is visited is visible outside the file.
    trait_is_visible: bool,
    findings: &'s mut Vec<Finding>,
}

impl Parameters<'_> {
    fn look(&mut self, signature: &syn::Signature, visible: bool) {
        let line = signature.span().start().line;
        if self.source.is_test(line) {
            return;
        }
        let types: Vec<&syn::Type> = signature.inputs.iter().filter_map(type_of).collect();
        let name = &signature.ident;
        if types.iter().any(|it| is_tuple(it)) {
            let message =
                format!("`{name}` takes a tuple; take two parameters, or a struct with named fields");
            self.findings.push(Finding::new(&self.source.path, line, TUPLE, message));
        }
        if visible && types.iter().any(|it| is_bool(it)) {
            let message =
                format!("`{name}` takes a bool from other files; take an enum, or write two functions");
            self.findings.push(Finding::new(&self.source.path, line, BOOL, message));
        }
    }
}

impl<'ast> Visit<'ast> for Parameters<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.look(&item.sig, is_visible(&item.vis));
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            return visit::visit_item_impl(self, item);
        }
        for it in &item.items {
            if let syn::ImplItem::Fn(method) = it {
                self.visit_block(&method.block);
            }
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look(&item.sig, is_visible(&item.vis));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.trait_is_visible = is_visible(&item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.look(&item.sig, self.trait_is_visible);
        visit::visit_trait_item_fn(self, item);
    }
}

fn is_visible(visibility: &syn::Visibility) -> bool {
    !matches!(visibility, syn::Visibility::Inherited)
}

/// Returns `None` for `self`.
fn type_of(input: &syn::FnArg) -> Option<&syn::Type> {
    match input {
        syn::FnArg::Typed(typed) => Some(&typed.ty),
        syn::FnArg::Receiver(_) => None,
    }
}

fn is_tuple(kind: &syn::Type) -> bool {
    matches!(referred(kind), syn::Type::Tuple(tuple) if !tuple.elems.is_empty())
}

fn is_bool(kind: &syn::Type) -> bool {
    matches!(referred(kind), syn::Type::Path(path) if path.path.is_ident("bool"))
}

/// The type without the references to it.
fn referred(kind: &syn::Type) -> &syn::Type {
    if let syn::Type::Reference(reference) = kind { referred(&reference.elem) } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/x/src/y.rs";

    fn found(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn a_tuple_is_reported_in_every_function() {
        for planted in [
            "fn a((b, c): (u8, u8)) {}\n",
            "pub fn a(b: &(u8, u8)) {}\n",
            "impl D { fn a(&self, b: u8, c: &mut (u8, u8)) {} }\n",
            "trait D { fn a(b: (u8, u8)); }\n",
            "fn e() { fn a(b: (u8, u8)) {} }\n",
            "impl Clone for D { fn clone(&self) -> D { fn a(b: (u8, u8)) {} } }\n",
        ] {
            assert_eq!(found(PATH, planted), [(TUPLE, 1)], "{planted}");
        }
    }

    #[test]
    fn a_bool_is_reported_if_other_files_can_pass_it() {
        for planted in [
            "pub fn a(b: bool) {}\n",
            "pub(crate) fn a(b: u8, c: bool) {}\n",
            "pub(super) fn a(b: &bool) {}\n",
            "impl D { pub fn a(&self, b: bool) {} }\n",
            "pub trait D { fn a(b: bool); }\n",
        ] {
            assert_eq!(found(PATH, planted), [(BOOL, 1)], "{planted}");
        }
    }

    #[test]
    fn private_bools_implemented_traits_closures_and_tests_are_left_out() {
        for text in [
            "fn a(b: bool) {}\nimpl D { fn a(&self, b: bool) {} }\ntrait D { fn a(b: bool); }\n",
            "impl From<(u8, bool)> for D { fn from((a, b): (u8, bool)) -> D { D } }\n",
            "pub fn a(b: &[(u8, u8)], c: ()) { b.iter().map(|(d, e): &(u8, u8)| d + e) }\n",
            "#[cfg(test)]\nmod tests { pub fn a(b: bool, c: (u8, u8)) {} }\n",
        ] {
            assert_eq!(found(PATH, text), [], "{text}");
        }
        assert_eq!(found("crates/x/tests/it/y.rs", "pub fn a(b: bool, c: (u8, u8)) {}\n"), []);
    }

    #[test]
    fn a_finding_names_the_function_and_the_remedy() {
        let findings = check(&Tree::of(&[(PATH, "\npub fn a(b: bool, c: (u8, u8)) {}\n")]));
        assert_eq!(
            findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "crates/x/src/y.rs:2: tuple-parameter: `a` takes a tuple; take two parameters, or a struct with named fields",
                "crates/x/src/y.rs:2: bool-parameter: `a` takes a bool from other files; take an enum, or write two functions",
            ]
        );
    }
}
