//! Measures what no check refuses yet: parameters whose meaning cannot be read at the call.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::Source;
use crate::tree::Tree;

/// Files of each list that is printed.
const WORST: usize = 10;

/// Describes how many functions outside tests take a tuple, and how many take a `bool` and are visible outside their
/// file, each with the files that have the most.
pub(crate) fn parameters(tree: &Tree) -> String {
    let (mut tuples, mut bools) = (BTreeMap::new(), BTreeMap::new());
    for source in &tree.sources {
        let mut found = Parameters { source, shared: true, tuples: 0, bools: 0 };
        found.visit_file(&source.syntax);
        tuples.insert(source.path.as_str(), found.tuples);
        bools.insert(source.path.as_str(), found.bools);
    }
    let mut text = String::new();
    for (what, counts) in [("take a tuple", tuples), ("take a bool, visible outside their file", bools)] {
        let all: usize = counts.values().sum();
        text.push_str(&format!("{all} functions {what}\n"));
        let mut worst: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        worst.sort_by_key(|(path, count)| (usize::MAX - *count, *path));
        for (path, count) in worst.iter().take(WORST) {
            text.push_str(&format!("{count:5} {path}\n"));
        }
    }
    text
}

struct Parameters<'s> {
    source: &'s Source,
    /// Whether a method of the trait that is visited is visible outside the file.
    shared: bool,
    tuples: usize,
    bools: usize,
}

impl Parameters<'_> {
    fn count(&mut self, signature: &syn::Signature, shared: bool) {
        if self.source.is_test(signature.span().start().line) {
            return;
        }
        let types = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(&*typed.ty),
            syn::FnArg::Receiver(_) => None,
        });
        let types: Vec<&syn::Type> = types.collect();
        self.tuples += usize::from(types.iter().any(|it| is_tuple(it)));
        self.bools += usize::from(shared && types.iter().any(|it| is_bool(it)));
    }
}

impl<'ast> Visit<'ast> for Parameters<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.count(&item.sig, !matches!(item.vis, syn::Visibility::Inherited));
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // A trait's own signature is counted where it stands.
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.count(&item.sig, !matches!(item.vis, syn::Visibility::Inherited));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.shared = !matches!(item.vis, syn::Visibility::Inherited);
        visit::visit_item_trait(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.count(&item.sig, self.shared);
        visit::visit_trait_item_fn(self, item);
    }
}

fn is_tuple(kind: &syn::Type) -> bool {
    if let syn::Type::Reference(reference) = kind {
        return is_tuple(&reference.elem);
    }
    matches!(kind, syn::Type::Tuple(tuple) if !tuple.elems.is_empty())
}

fn is_bool(kind: &syn::Type) -> bool {
    matches!(kind, syn::Type::Path(path) if path.path.is_ident("bool"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_counted_once_and_only_where_others_call_them() {
        let text = "fn a(b: bool, (c, d): (u8, u8)) {}\npub(crate) fn e(f: bool, g: bool) {}\n\
                    impl H {\n    pub fn i(&self, j: &(u8, u8)) {}\n}\nimpl K for H {\n    fn l(m: bool) {}\n}\n\
                    pub trait K {\n    fn l(m: bool);\n}\n#[cfg(test)]\nmod tests {\n    pub fn n(o: (bool, bool)) {}\n}\n";
        let tree = Tree::of(&[("crates/x/src/lib.rs", text)]);
        assert_eq!(
            parameters(&tree),
            "2 functions take a tuple\n    2 crates/x/src/lib.rs\n\
             2 functions take a bool, visible outside their file\n    2 crates/x/src/lib.rs\n"
        );
    }
}
