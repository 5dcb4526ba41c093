//! Each citation of a rule leads to a page of this repository, or names a public standard.
//!
//! A page is cited by its path from the root, such as `docs/policies.md#capabilities`. After `#` is a heading of the page,
//! written as GitHub writes anchors, or the id of a row in a table of sentences. A number after `§` or `section`, and the
//! text after `Source:`, belong to a public standard that is named in the same line.

use crate::finding::Finding;
use crate::tree::Tree;

const RULE: &str = "citations";
/// Files whose comments are read, and how a comment begins in them.
const COMMENTS: &[(&str, &str)] =
    &[(".rs", "//"), (".proto", "//"), (".py", "#"), (".sh", "#"), (".toml", "#"), (".yaml", "#")];
/// Files that are read as a whole.
const PAGE: &str = ".md";
/// Tables of sentences: the second column cites where a sentence comes from.
const TABLE: &str = "/sentences.tsv";
/// In that column: the rule is the project's own, and is stated in no other page.
const OWN: &str = "own rule";
/// The folders and the endings of pages that can be cited.
const FOLDERS: &[&str] = &["docs/", "proto/", "crates/", "tests/"];
const ENDINGS: &[&str] = &[PAGE, ".tsv"];
/// How the names of public standards and of public pages begin.
const STANDARDS: &[&str] = &["RFC ", "YAML 1.", "W3C ", "OpenID ", "GitHub"];
/// What is before the number or the name of a rule. Each is written in two parts, so that this file has none.
const NUMBERED: &[&str] =
    &[concat!("sec", "tion "), concat!("rul", "ing "), concat!("rul", "ings "), concat!("sem", "antics ")];
/// What is before a source.
const SOURCES: &[&str] = &[concat!("Sour", "ce: "), concat!("Sour", "ces: ")];

/// Looks at each comment, each page and each table of sentences.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let mark = COMMENTS.iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, mark)| *mark);
        for (line, text) in text.lines().enumerate().map(|(index, text)| (index + 1, text)) {
            let messages = match mark {
                Some(mark) => comment(text, mark).map(|text| wrong(tree, text)).unwrap_or_default(),
                None if path.ends_with(PAGE) => wrong(tree, text),
                None if path.ends_with(TABLE) && line > 1 => wrong_origin(tree, text),
                None => Vec::new(),
            };
            findings.extend(messages.into_iter().map(|message| Finding::new(path, line, RULE, message)));
        }
    }
    findings
}

/// The comment of a line, if it has one. A mark behind an odd number of quotes is in a string.
fn comment<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let start = line.find(mark)?;
    let quotes = line[..start].matches('"').count() - line[..start].matches("\\\"").count();
    let in_string = quotes % 2 == 1;
    (!in_string).then(|| &line[start..])
}

/// What is wrong with the citations in a text.
fn wrong(tree: &Tree, text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = paths(text).filter_map(|path| broken(tree, path)).collect();
    let standard = STANDARDS.iter().any(|name| text.contains(name));
    if !standard && let Some(citation) = numbered(text) {
        wrong.push(format!("`{citation}` is on no page here: cite a page, or state the rule"));
    }
    let source = SOURCES.iter().find_map(|mark| text.split_once(mark)).map(|(_, source)| source);
    if source.is_some_and(|source| !STANDARDS.iter().any(|name| source.starts_with(name))) {
        wrong.push("a source is a public standard; cite a page of this repository by its path".to_owned());
    }
    wrong
}

/// What is wrong with the second column of a row.
fn wrong_origin(tree: &Tree, row: &str) -> Vec<String> {
    let origin = row.split('\t').nth(1).unwrap_or_default();
    if origin == OWN || STANDARDS.iter().any(|name| origin.starts_with(name)) {
        return Vec::new();
    }
    match paths(origin).next() {
        Some(path) if path == origin => broken(tree, path).into_iter().collect(),
        Some(_) | None => vec![format!("`{origin}` is no page here: cite one, or write `{OWN}`")],
    }
}

/// The paths of pages in a text, each with its anchor.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| {
        !(character.is_alphanumeric() || matches!(character, '/' | '.' | '#' | '-' | '_'))
    });
    words.map(|word| word.trim_end_matches('.')).filter(|word| {
        let page = word.split('#').next().unwrap_or_default();
        FOLDERS.iter().any(|folder| page.starts_with(folder)) && ENDINGS.iter().any(|it| page.ends_with(it))
    })
}

/// What is wrong with the path of a page; `None` if it leads to a page, and to a heading or a row if it names one.
fn broken(tree: &Tree, citation: &str) -> Option<String> {
    let (path, anchor) = citation.split_once('#').map_or((citation, None), |(path, it)| (path, Some(it)));
    let Some(text) = tree.text(path) else { return Some(format!("there is no page `{path}`")) };
    let anchor = anchor?;
    let found = if path.ends_with(PAGE) {
        headings(text).any(|heading| slug(heading) == anchor)
    } else {
        text.lines().skip(1).any(|row| row.split('\t').next() == Some(anchor))
    };
    (!found).then(|| format!("`{path}` has no `{anchor}`"))
}

/// The headings of a page, without what looks like one in its blocks of code.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter_map(move |line| {
        in_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        (!in_code && heading.len() < line.len()).then(|| heading.strip_prefix(' ')).flatten()
    })
}

/// The anchor of a heading, as GitHub makes it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// The number or the quoted name of a rule, with the word before it.
fn numbered(text: &str) -> Option<&str> {
    if let Some(start) = text.find('§') {
        return text[start..].split_whitespace().next();
    }
    let lower = text.to_ascii_lowercase();
    NUMBERED.iter().find_map(|mark| {
        lower.match_indices(mark).find_map(|(start, _)| {
            let after = start + mark.len();
            let whole = !lower[..start].ends_with(|it: char| it.is_alphanumeric() || it == '-' || it == '_');
            let number = text[after..].starts_with(|it: char| it.is_ascii_digit() || it == '"');
            (whole && number)
                .then(|| text[start..].split(' ').take(2).map(str::len).sum::<usize>())
                .map(|length| &text[start..=start + length])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [(&str, &str); 3] = [
        ("docs/gates.md", "# Gates\n\n## Who decides, and when\n\n```sh\n# no heading\n```\n"),
        ("tests/corpus/policy/sentences.tsv", "id\tsource\tsentence\tscenario\n7-1a\town rule\tx\ty\n"),
        ("proto/README.md", "# The API\n"),
    ];

    fn findings(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[PAGES.as_slice(), &[(path, text)]].concat());
        check(&tree).iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn a_citation_of_a_page_a_heading_or_a_row_that_is_not_here_is_reported() {
        let text = [
            "fn a() {}\n",
            "//! See `docs/gone.md`.\n",
            "/// As in docs/gates.md#no-heading.\n",
            "let b = 1; // `docs/gates.md#gone`\n",
            "// (`tests/corpus/policy/sentences.tsv#7-1b`)\n",
        ];
        assert_eq!(
            findings("crates/x/src/lib.rs", &text.concat()),
            [
                "2: there is no page `docs/gone.md`",
                "3: `docs/gates.md` has no `no-heading`",
                "4: `docs/gates.md` has no `gone`",
                "5: `tests/corpus/policy/sentences.tsv` has no `7-1b`",
            ]
        );
        assert_eq!(
            findings("docs/other.md", "See `docs/gone.md`.\n"),
            ["1: there is no page `docs/gone.md`"]
        );
    }

    #[test]
    fn a_rule_of_a_page_that_is_elsewhere_is_reported() {
        for cited in [
            ["sem", "antics §4a"],
            ["arch", "itecture §2.7"],
            ["rul", "ing 18"],
            ["rul", "ings \"own text\""],
            ["Sec", "tion 7, (1)"],
            ["Sour", "ce: workflows, *Guards*"],
        ] {
            let found = findings("tests/x.yaml", &format!("a: 1\n# Held ({}).\n", cited.concat()));
            assert_eq!(found.len(), 1, "{cited:?}: {found:?}");
        }
    }

    #[test]
    fn the_origin_of_a_sentence_is_a_page_a_standard_or_the_project() {
        let path = "tests/corpus/other/sentences.tsv";
        let table = "id\tsource\tsentence\tscenario\n1\town rule\tx\ty\n2\tRFC 8259\tx\ty\n3\tdocs/gates.md#gates\tx\ty\n\
                     4\tan old page\tx\ty\n5\tdocs/gates.md#gone\tx\ty\n";
        assert_eq!(
            findings(path, table),
            [
                "5: `an old page` is no page here: cite one, or write `own rule`",
                "6: `docs/gates.md` has no `gone`",
            ]
        );
    }

    #[test]
    fn pages_and_standards_that_exist_are_fine() {
        let text = [
            "/// See `docs/gates.md#who-decides-and-when`, proto/README.md and docs/gates.md.\n",
            "// Row `tests/corpus/policy/sentences.tsv#7-1a`; RFC 5321 §4.5.5; RFC 2045 section 6.7.\n",
            "//! The ruling party. Source: RFC 9112, 2.2.\n",
            "let c = \"// docs/gone.md\";\n",
        ];
        assert_eq!(findings("crates/x/src/lib.rs", &text.concat()), Vec::<String>::new());
    }
}
