//! Plays the pages of `docs/` and the README: what they show is written, typed and sent, and what they promise is
//! compared. `docs/contributing.md` has the conventions.

mod compare;
mod examples;
mod hosts;
mod links;
mod needs;
mod page;
mod reader;
mod steps;
mod terminal;

use needs::Needs;
use page::blocks;
use reader::play;
use std::collections::BTreeSet;
use std::fs;

use crate::support::{Ended, program, repository};

/// Lines that the README has at most.
const README_LINES_MAX: usize = 150;

/// A test for each page, and the list of the pages.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                plays($page);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    index: "docs/README.md",
    api: "docs/api.md",
    approvals_by_mail: "docs/approvals-by-mail.md",
    cli: "docs/cli.md",
    cluster: "docs/cluster.md",
    concepts: "docs/concepts.md",
    configuration: "docs/configuration.md",
    contributing: "docs/contributing.md",
    conversations: "docs/conversations.md",
    errors: "docs/errors.md",
    features: "docs/features.md",
    findings: "docs/findings.md",
    first_process: "docs/first-process.md",
    formats_checkpoint: "docs/formats-checkpoint.md",
    formats_conversation_operations: "docs/formats-conversation-operations.md",
    formats_conversation: "docs/formats-conversation.md",
    formats_native: "docs/formats-native.md",
    glossary: "docs/glossary.md",
    limits: "docs/limits.md",
    operating: "docs/operating.md",
    policies: "docs/policies.md",
    scenarios: "docs/scenarios.md",
    webhooks: "docs/webhooks.md",
    workers: "docs/workers.md",
}

fn plays(page: &str) {
    let text = fs::read_to_string(repository(page)).expect("a page");
    if let Err(failure) = play(page, &text) {
        panic!("{failure}");
    }
}

/// The pages of `docs/`, as paths from the repository's root.
fn stored() -> BTreeSet<String> {
    let files = fs::read_dir(repository("docs")).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect()
}

#[test]
fn every_page_is_played() {
    let listed: BTreeSet<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    let mut stored = stored();
    stored.insert("README.md".to_owned());
    assert_eq!(listed, stored, "the list in tests/cli/docs.rs and the files of docs/ differ");
    assert_eq!(listed.len(), PAGES.len(), "a page is in the list twice");
}

#[test]
fn what_pages_need_is_played_before_their_blocks() {
    for page in needs::pages() {
        assert!(PAGES.contains(&page), "page-needs.md: no page {page}");
        let text = fs::read_to_string(repository(page)).expect("a page");
        let unused = Needs::of(page).unused(&blocks(&text).expect("blocks")).join("\n");
        assert!(unused.is_empty(), "page-needs.md: about no block of {page}: {unused}");
    }
}

#[test]
fn every_page_begins_with_its_title_and_whom_it_is_for() {
    for page in stored() {
        let text = fs::read_to_string(repository(&page)).expect("a page");
        let lines: Vec<&str> = text.lines().take(3).collect();
        let [title, "", paragraph] = lines[..] else { panic!("{page}:1: no title and paragraph: {lines:?}") };
        assert!(title.starts_with("# "), "{page}:1: no title: {title}");
        assert!(
            paragraph.starts_with(|c: char| c.is_ascii_uppercase()),
            "{page}:3: no paragraph: {paragraph}"
        );
    }
}

#[test]
fn the_readme_is_short_and_shows_its_two_commands() {
    let text = fs::read_to_string(repository("README.md")).expect("a page");
    let lines = text.lines().count();
    assert!(lines <= README_LINES_MAX, "{lines} lines; at most {README_LINES_MAX}");
    let shown: String = blocks(&text).expect("blocks").into_iter().map(|block| block.text).collect();
    assert!(shown.contains("make demo") && shown.contains("make test"), "{shown}");
}

#[test]
fn the_refund_of_the_page_is_the_gallerys() {
    let page = fs::read_to_string(repository("docs/conversations.md")).expect("a page");
    let stored = fs::read_to_string(repository("tests/gallery/refund/refund.yaml")).expect("a file");
    assert!(blocks(&page).expect("blocks").iter().any(|block| block.text == stored), "they differ");
}

/// The picture is drawn by `tests/scripts/demo-picture.py`. Times and sizes may differ.
#[test]
fn the_picture_of_the_demo_shows_what_it_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let contexts = folder.path().join("contexts");
    let ended = Ended::of(program().arg("demo").env("SWITCHWARD_CONTEXTS", contexts)).with_code(0);
    let without_digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let printed = without_digits(&ended.out);
    let picture = fs::read_to_string(repository("docs/images/demo.svg")).expect("a picture");
    let spans = picture.split("<tspan ").skip(1);
    let texts: Vec<&str> = spans.filter_map(|it| it.split(['<', '>']).nth(1)).collect();
    assert!(texts.len() >= 20, "{texts:?}");
    for text in texts {
        let mut shown = text.to_owned();
        for (escaped, c) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")]
        {
            shown = shown.replace(escaped, c);
        }
        assert!(printed.contains(&without_digits(&shown)), "the demo does not print {shown:?} any more");
    }
}

#[test]
fn a_failure_names_the_page_the_line_and_the_command() {
    for (text, failure) in [
        (
            "\n```sh\nswitchward --version\nfalse\n```\n",
            "p.md:4: false\nexit code 1, the page says 0; it printed:\n",
        ),
        ("```sh\ntrue # exits 2\n```\n", "p.md:2: true\nexit code 0, the page says 2; it printed:\n"),
        (
            "```sh\necho a b\n```\n```text output\na\nc\n```\n",
            "p.md:2: echo a b\nit did not print: c\nit printed:\na b\n",
        ),
        ("```sh\necho SESSION\n```\n", "p.md:2: echo SESSION\nno command has printed ses_..."),
        ("```text output\na\n```\n", "p.md:1: ```text output\nno commands are directly before this output"),
        ("```\na\n```\n", "p.md:1: fence\nno convention for the fence ```"),
    ] {
        let failed = play("p.md", text).expect_err(text);
        assert_eq!(failed.to_string(), failure);
    }
    for (text, begins) in [
        ("```json a.json\n{\"a\":}\n```\n", "p.md:1: ```json a.json\n"),
        ("```yaml fragment\na: [\n```\n", "p.md:1: ```yaml fragment\n"),
        ("```toml a.toml\na=\n```\n", "p.md:1: ```toml a.toml\n"),
        ("```python a.py\na(\n```\n", "p.md:1: ```python a.py\n"),
        (
            "```json a.json\n{\"name\":\"a\",\"initial\":\"b\",\"states\":{}}\n```\n",
            "p.md:1: ```json a.json\n",
        ),
    ] {
        let failed = play("p.md", text).expect_err(text).to_string();
        assert!(failed.starts_with(begins), "{failed}");
    }
}

#[test]
fn what_a_page_shows_is_typed_in_its_folder() {
    let text = "\
```json sub/a.json\n{\"b\": 1}\n```\n\
```json fragment\n\"policy\": {}\n```\n\
```sh\nexport NAME=sub/a\ncat $NAME.json   # shows it\necho id ses_0abc, gat_1_2; exit 7 # exits 7: why\n```\n\
```sh\ncd sub\necho SESSION GATE \\\n  NO_SESSION 127.0.0.1:7400\n```\n\
```text output\nses_0abc gat_1_2 NO_SESSION 127...\n```\n\
```sh\nunset NAME\nls $NAME\n```\n```text output\na.json\n```\n\
```sh\nswitchward watch x --address http://127.0.0.1:1 --api-key swk_1 # exits 69\n```\n";
    assert_eq!(play("p.md", text), Ok(()));
}
