//! The journeys of `crates/README.md` are short, and each of their steps is called by the step that it names.
//!
//! A journey is a numbered list whose steps begin with a function, `path.rs::name`. The paragraph before it says how many
//! calls and forms it has; a form is announced in bold: `**2, words**`. A step is called by the file of the step before it, or of
//! the step that it names: `From 3:`, or `From 3 above:` for a step of the first journey. `through` names what is between
//! the two: a file, or a word that both of them use, such as a library.

use super::{MAP, RULE, is_path};
use crate::finding::Finding;
use crate::scan;
use crate::source::{Source, TokenKind};
use crate::tree::Tree;

/// The most steps of a journey.
pub(super) const STEPS_MAX: usize = 25;
/// The most forms that a message has on any journey.
const FORMS_MAX: usize = 8;
/// The most forms on the journeys of the page, each by what the paragraph before it begins with.
const FORMS: [(&str, usize); 3] =
    [("**An answer to a checkpoint**", FORMS_MAX), ("**A reply by mail**", 3), ("**A mail**", 4)];

struct Journey {
    /// The paragraph before it.
    heading: String,
    steps: Vec<Step>,
}

struct Step {
    /// Where it begins on the page, from 1.
    line: usize,
    text: String,
}

/// What a step says of a call.
struct Call<'s> {
    /// The number of the step that calls it, if that is not the one before, and whether that is a step of the first journey.
    from: Option<(usize, bool)>,
    through: Option<&'s str>,
    path: &'s str,
    function: &'s str,
}

/// Counts the steps and the forms of each journey, and looks for the calls.
pub(super) fn check(tree: &Tree, map: &str) -> Vec<Finding> {
    let journeys = journeys(map);
    let mut findings = Vec::new();
    for journey in &journeys {
        findings.extend(miscounted(journey));
        for (index, step) in journey.steps.iter().enumerate() {
            if let Err(message) = check_step(tree, &journeys, journey, index) {
                findings.push(Finding::new(MAP, step.line, RULE, message));
            }
        }
    }
    findings
}

/// The numbered lists whose first step names a function. A list begins with `1.`.
fn journeys(map: &str) -> Vec<Journey> {
    let mut lists: Vec<Journey> = Vec::new();
    let (mut paragraph, mut in_list) = (String::new(), false);
    for (index, line) in map.lines().enumerate() {
        if let Some((number, text)) = numbered(line) {
            in_list = true;
            if number == 1 {
                lists.push(Journey { heading: std::mem::take(&mut paragraph), steps: Vec::new() });
            }
            if let Some(list) = lists.last_mut() {
                list.steps.push(Step { line: index + 1, text: text.to_owned() });
            }
            continue;
        }
        in_list &= line.starts_with("   ");
        match lists.last_mut().and_then(|list| list.steps.last_mut()).filter(|_| in_list) {
            Some(step) => step.text.extend([" ", line.trim()]),
            None => paragraph = after(&paragraph, line),
        }
    }
    lists.retain(|list| list.steps.first().is_some_and(|step| call(&step.text).is_some()));
    lists
}

/// The last paragraph, with one more line. A paragraph ends where the next one begins.
fn after(paragraph: &str, line: &str) -> String {
    match (paragraph.ends_with('\n'), line.is_empty()) {
        (_, true) => format!("{}\n", paragraph.trim_end()),
        (true, false) => line.to_owned(),
        (false, false) => format!("{paragraph} {line}"),
    }
}

fn numbered(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, text))
}

/// Returns what is wrong with the length of a journey, and with what the page says of it, at its last step.
fn miscounted(journey: &Journey) -> Option<Finding> {
    let steps = journey.steps.len();
    let announced: Vec<usize> = journey.steps.iter().flat_map(|step| forms(&step.text)).collect();
    let forms = announced.len();
    let said = (said(&journey.heading, "calls"), said(&journey.heading, "forms"));
    let forms_max = forms_max(&journey.heading);
    let message = if steps > STEPS_MAX || forms > forms_max {
        format!(
            "the journey has {steps} steps and {forms} forms, at most {STEPS_MAX} and {forms_max} are allowed"
        )
    } else if announced.iter().enumerate().any(|(index, number)| *number != index + 1) {
        "the forms of the journey are not numbered in order".to_owned()
    } else if said != (Some(steps), Some(forms)) {
        format!(
            "the journey has {steps} calls and {forms} forms, and the paragraph before it does not say so"
        )
    } else {
        return None;
    };
    Some(Finding::new(MAP, journey.steps.last()?.line, RULE, message))
}

/// The most forms on the journey after this paragraph.
fn forms_max(heading: &str) -> usize {
    let of_page = FORMS.into_iter().find(|(begin, _)| heading.starts_with(begin));
    of_page.map_or(FORMS_MAX, |(_, most)| most)
}

/// The numbers of the forms that a step announces.
fn forms(text: &str) -> impl Iterator<Item = usize> {
    text.split("**").skip(1).step_by(2).filter_map(|bold| bold.split_once(", ")?.0.parse().ok())
}

/// The number before a word: 25 in `25 calls, 8 forms.`
fn said(text: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|it| it.trim_end_matches(['.', ',', ':']) == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

/// Reads a step. `None` if it names no function first.
fn call(text: &str) -> Option<Call<'_>> {
    let is_led = text.starts_with("From ") || text.starts_with("Through ");
    let (lead, rest) = if is_led { text.split_once(": ")? } else { ("", text) };
    let from = lead.strip_prefix("From ").map(|lead| {
        let end = lead.find(|c: char| !c.is_ascii_digit()).unwrap_or(lead.len());
        (lead[..end].parse().unwrap_or(0), lead[end..].starts_with(" above"))
    });
    let (path, function) = rest.strip_prefix('`')?.split_once('`')?.0.split_once("::")?;
    is_path(path).then_some(Call { from, through: lead.split('`').nth(1), path, function })
}

fn check_step(tree: &Tree, journeys: &[Journey], journey: &Journey, index: usize) -> Result<(), String> {
    let step = call(&journey.steps[index].text).ok_or("a step of a journey names a function first")?;
    let caller = match step.from {
        None if index == 0 => return Ok(()),
        None => journey.steps.get(index - 1),
        Some((number, true)) => journeys.first().and_then(|first| first.steps.get(number.checked_sub(1)?)),
        Some((number, false)) => {
            number.checked_sub(1).filter(|at| *at < index).and_then(|at| journey.steps.get(at))
        }
    };
    let caller = caller.and_then(|caller| call(&caller.text)).ok_or("the step is not from an earlier one")?;
    let Some(through) = step.through else {
        let holds = calls(tree, caller.path, step.function);
        return holds
            .then_some(())
            .ok_or_else(|| format!("`{}` does not call `{}`", caller.path, step.function));
    };
    for end in [caller.path, step.path] {
        if !meet(tree, end, through) {
            return Err(format!("neither `{end}` nor `{through}` names the other"));
        }
    }
    Ok(())
}

/// Returns true if a file calls a function of this name.
fn calls(tree: &Tree, path: &str, function: &str) -> bool {
    let Some(source) = source(tree, path) else { return false };
    ["(", ": : <"].iter().any(|open| {
        let row = format!("{function} {open}");
        scan::find(&source.tokens, &row).any(|at| {
            let is_definition = at.checked_sub(1).is_some_and(|before| source.tokens[before].text == "fn");
            !is_definition && !source.is_test(source.tokens[at].line)
        })
    })
}

/// Returns true if a file and what a call goes through are connected: one of two files names the other's module, or the
/// file uses the word.
fn meet(tree: &Tree, end: &str, through: &str) -> bool {
    let path = through.split_once("::").map_or(through, |(path, _)| path);
    if !is_path(path) {
        return uses(tree, end, path);
    }
    end == path || uses(tree, end, module(path)) || uses(tree, path, module(end))
}

/// The name of a file's module: the file's, or the folder's of a `mod.rs`.
fn module(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Returns true if the code of a file contains a word; that of its tests does not count.
fn uses(tree: &Tree, path: &str, word: &str) -> bool {
    source(tree, path).is_some_and(|source| {
        let mut words = source.tokens.iter().filter(|token| token.kind == TokenKind::Word);
        words.any(|token| token.text == word && !source.is_test(token.line))
    })
}

fn source<'t>(tree: &'t Tree, path: &str) -> Option<&'t Source> {
    tree.sources.iter().find(|source| source.path.strip_prefix("crates/") == Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(journey: &str) -> Vec<String> {
        let map = format!("# Map\n\nBefore.\n\n{journey}");
        let tree = Tree::of(&[
            (MAP, &map),
            ("crates/a/src/one.rs", "use tower::Service;\nfn begin() { two::go(); queue.put(); }\n"),
            ("crates/a/src/two.rs", "fn go() { three::<u8>(); }\n#[test]\nfn tests() { begin(); }\n"),
            ("crates/a/src/three.rs", "fn three<T>() {}\n"),
            ("crates/a/src/queue.rs", "fn put() {}\n"),
            ("crates/a/src/taker.rs", "use tower::Layer;\nfn take() { queue.take(); }\n"),
            ("crates/a/src/kinds/mod.rs", "fn run() { wait::run(); }\n"),
            ("crates/a/src/kinds/wait.rs", "fn run() { /* tower */ }\n"),
        ]);
        check(&tree, &map).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_step_is_called_by_the_file_of_the_one_before_or_of_the_one_that_it_names() {
        let right = "**A way**, of 3 calls\nand 2 forms.\n\n1. `a/src/one.rs::begin`: **1, bytes**\n\
                     2. `a/src/two.rs::go` goes on\n   in two lines: **2, words**.\n3. `a/src/three.rs::three`\n";
        assert_eq!(findings(right), Vec::<String>::new());
        let again = format!(
            "{right}\n4 calls, 0 forms:\n\n1. `a/src/two.rs::go`\n2. From 1 above: `a/src/two.rs::go`\n\
                     3. From 1: `a/src/three.rs::three`\n4. From 4: `a/src/two.rs::go`\n"
        );
        assert_eq!(findings(&again), ["crates/README.md:18: paths: the step is not from an earlier one"]);
        let wrong = right.replace("2. `", "2. From 3: `").replace("3. `", "3. From 1: `");
        assert_eq!(
            findings(&wrong),
            [
                "crates/README.md:9: paths: the step is not from an earlier one",
                "crates/README.md:11: paths: `a/src/one.rs` does not call `three`",
            ]
        );
        // The definition of a function is no call of it, and calls of tests do not count.
        let back = "2 calls, 0 forms\n\n1. `a/src/two.rs::go`\n2. `a/src/one.rs::begin`\n";
        assert_eq!(findings(back), ["crates/README.md:8: paths: `a/src/two.rs` does not call `begin`"]);
        let nameless = "2 calls, 0 forms\n\n1. `a/src/two.rs::go`\n2. and `a/src/three.rs::three`\n";
        assert_eq!(
            findings(nameless),
            ["crates/README.md:8: paths: a step of a journey names a function first"]
        );
    }

    #[test]
    fn what_is_between_two_steps_is_known_to_both() {
        let way = |through: &str, to: &str| {
            findings(&format!(
                "2 calls, 0 forms\n\n1. `a/src/one.rs::begin`\n2. Through `{through}`: `{to}`\n"
            ))
        };
        for (through, to) in [
            ("tower", "a/src/taker.rs::take"),
            ("a/src/queue.rs", "a/src/taker.rs::take"),
            ("a/src/queue.rs::put", "a/src/queue.rs::put"),
        ] {
            assert_eq!(way(through, to), Vec::<String>::new(), "{through}");
        }
        assert_eq!(
            way("tower", "a/src/kinds/wait.rs::run"),
            ["crates/README.md:8: paths: neither `a/src/kinds/wait.rs` nor `tower` names the other"]
        );
        assert_eq!(
            way("a/src/kinds/mod.rs", "a/src/kinds/wait.rs::run"),
            ["crates/README.md:8: paths: neither `a/src/one.rs` nor `a/src/kinds/mod.rs` names the other"]
        );
    }

    #[test]
    fn a_journey_that_is_too_long_or_miscounted_is_reported_at_its_last_step() {
        let steps = |count: usize| {
            let step = |at: usize| format!("{at}. From 1: `a/src/two.rs::go`\n   of two lines\n");
            let first = "1. `a/src/one.rs::begin`\n".to_owned();
            std::iter::once(first).chain((2..=count).map(step)).collect::<String>()
        };
        let said = |count: usize, list: &str| findings(&format!("{count} calls, 0 forms\n\n{list}"));
        assert_eq!(said(STEPS_MAX, &steps(STEPS_MAX)), Vec::<String>::new());
        // The steps are counted, whatever numbers they have.
        let long = steps(STEPS_MAX + 1).replace("26. ", "25. ");
        let too_long = "the journey has 26 steps and 0 forms, at most 25 and 8 are allowed";
        assert_eq!(said(25, &long), [format!("crates/README.md:56: paths: {too_long}")]);
        let message = "the journey has 3 calls and 0 forms, and the paragraph before it does not say so";
        assert_eq!(said(2, &steps(3)), [format!("crates/README.md:10: paths: {message}")]);
        let formed =
            |forms: &str| findings(&format!("1 calls, 1 forms\n\n1. `a/src/one.rs::begin` {forms}\n"));
        assert_eq!(formed("**1, bytes**"), Vec::<String>::new());
        assert_eq!(
            formed("**2, bytes**"),
            ["crates/README.md:7: paths: the forms of the journey are not numbered in order"]
        );
        // Any other list is none.
        assert_eq!(findings("1. one\n2. `a/src/two.rs::go`\n"), Vec::<String>::new());
    }

    #[test]
    fn every_journey_of_the_page_has_its_own_most_forms() {
        let page = journeys(include_str!("../../../../README.md"));
        assert_eq!(page.len(), FORMS.len());
        for (journey, (begin, most)) in page.iter().zip(FORMS) {
            assert!(journey.heading.starts_with(begin), "{}", journey.heading);
            let formed = |heading: &str, count: usize| {
                let forms: String = (1..=count).map(|form| format!("**{form}, it** ")).collect();
                findings(&format!("{heading}: 1 calls, {count} forms.\n\n1. `a/src/one.rs::begin` {forms}\n"))
            };
            assert_eq!(formed(begin, most), Vec::<String>::new());
            let message =
                format!("the journey has 1 steps and {} forms, at most 25 and {most} are allowed", most + 1);
            assert_eq!(formed(begin, most + 1), [format!("crates/README.md:7: paths: {message}")]);
            assert_eq!(formed("**Any other**", FORMS_MAX + 1).len(), 1);
        }
    }
}
