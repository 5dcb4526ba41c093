//! Most functions are short: 95 % of those outside tests.

use crate::checks::functions::{self, Function};
use crate::finding::Finding;
use crate::tree::Tree;

const RULE: &str = "function-p95";
/// Lines that 95 % of the functions may have, from the signature to the closing brace.
const LINES_MAX: usize = 31;

/// How long the functions outside tests are.
pub(crate) struct Lengths<'t> {
    /// Path and function, the shortest first.
    sorted: Vec<(&'t str, Function)>,
}

impl<'t> Lengths<'t> {
    /// Measures the functions of a repository.
    pub(crate) fn of(tree: &'t Tree) -> Self {
        let mut sorted = Vec::new();
        for source in &tree.sources {
            let functions = functions::of(source).into_iter();
            let product = functions.filter(|function| !source.is_test(function.first_line));
            sorted.extend(product.map(|function| (source.path.as_str(), function)));
        }
        sorted.sort_by(|(path, one), (other_path, other)| {
            (one.lines(), path, one.first_line).cmp(&(other.lines(), other_path, other.first_line))
        });
        Self { sorted }
    }

    /// The shortest function that 95 % of the functions are no longer than; `None` if there is no function.
    fn p95(&self) -> Option<&(&'t str, Function)> {
        self.sorted.get((self.sorted.len() * 95).div_ceil(100).checked_sub(1)?)
    }

    /// How many functions must become shorter for the rule to hold.
    fn too_many(&self) -> usize {
        let long = self.sorted.iter().filter(|(_, function)| function.lines() > LINES_MAX).count();
        long.saturating_sub(self.sorted.len() - (self.sorted.len() * 95).div_ceil(100))
    }

    /// Says how many functions there are, and their p95.
    pub(crate) fn summary(&self) -> String {
        let lines = self.p95().map_or(0, |(_, function)| function.lines());
        format!("{} functions, p95 {lines} lines\n", self.sorted.len())
    }
}

/// Reports the function at p95 if it is too long: with it, and those that are longer by less, most is gained.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let lengths = Lengths::of(tree);
    let Some((path, function)) = lengths.p95().filter(|(_, function)| function.lines() > LINES_MAX) else {
        return Vec::new();
    };
    let message = format!(
        "p95 of the functions' lines is {}, {LINES_MAX} are allowed; shorten {} of those that are longer, such as `{}`",
        function.lines(),
        lengths.too_many(),
        function.name
    );
    vec![Finding::new(path, function.first_line, RULE, message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/x/src/lib.rs";

    /// `count` functions of `lines` lines, signature and brace counted.
    fn functions(count: usize, lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2)).repeat(count)
    }

    fn findings(text: &str) -> Vec<String> {
        check(&Tree::of(&[(PATH, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn five_functions_of_a_hundred_may_be_longer() {
        let text = functions(95, 31) + &functions(5, 60);
        assert_eq!(findings(&text), Vec::<String>::new());
        assert_eq!(Lengths::of(&Tree::of(&[(PATH, &text)])).summary(), "100 functions, p95 31 lines\n");
    }

    #[test]
    fn one_more_is_reported_at_the_shortest_that_is_too_long() {
        assert_eq!(
            findings(&(functions(93, 10) + &functions(2, 32) + &functions(5, 60))),
            ["crates/x/src/lib.rs:963: function-p95: p95 of the functions' lines is 32, 31 are allowed; \
              shorten 2 of those that are longer, such as `f`"]
        );
    }

    #[test]
    fn tests_are_left_out_and_methods_and_macros_are_not() {
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", functions(9, 60));
        assert_eq!(findings(&test), Vec::<String>::new());
        for planted in ["impl A", "trait A", "mod a", "quoted!"] {
            let text = format!("{test}{planted} {{\n{}}}\n", functions(1, 32));
            assert_eq!(findings(&text).len(), 1, "{planted}");
        }
    }
}
