//! Measures what checks hold the tree to: how long functions are, and parameters whose meaning cannot be read at the call.

use std::collections::BTreeMap;

use crate::checks::function_p95::Lengths;
use crate::checks::parameters;
use crate::tree::Tree;

/// Files of each list that is printed.
const WORST: usize = 10;

/// Describes the lengths of the functions outside tests, how many of them take a tuple, and how many take a `bool` and
/// are visible outside their file, each with the files that have the most.
pub(crate) fn functions(tree: &Tree) -> String {
    let mut text = Lengths::of(tree).summary();
    let found = parameters::check(tree);
    for (what, rule) in
        [("take a tuple", parameters::TUPLE), ("take a bool, visible outside their file", parameters::BOOL)]
    {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in found.iter().filter(|finding| finding.rule == rule) {
            *counts.entry(&finding.path).or_default() += 1;
        }
        text.push_str(&format!("{} functions {what}\n", counts.values().sum::<usize>()));
        let mut worst: Vec<_> = counts.into_iter().collect();
        worst.sort_by_key(|(path, count)| (usize::MAX - *count, *path));
        for (path, count) in worst.iter().take(WORST) {
            text.push_str(&format!("{count:5} {path}\n"));
        }
    }
    text
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
            functions(&tree),
            "4 functions, p95 1 lines\n\
             2 functions take a tuple\n    2 crates/x/src/lib.rs\n\
             2 functions take a bool, visible outside their file\n    2 crates/x/src/lib.rs\n"
        );
    }
}
