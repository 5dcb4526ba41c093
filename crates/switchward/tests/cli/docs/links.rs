//! The links of the pages: every page is reached from the README, every link leads to a file, every anchor to a heading.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::stored;
use crate::support::repository;

/// Where the reader begins.
const FIRST: &str = "README.md";

/// A relative link.
#[derive(Debug)]
struct Link {
    /// `docs/policies.md:12`.
    at: String,
    /// The file, as a path from the repository's root.
    file: String,
    anchor: Option<String>,
}

/// The pages that are reached from the README, breadth first, with their links.
fn reached() -> BTreeMap<String, Vec<Link>> {
    let (mut pages, mut next) = (BTreeMap::new(), VecDeque::from([FIRST.to_owned()]));
    while let Some(page) = next.pop_front() {
        let path = repository(".").join(&page);
        if pages.contains_key(&page) || !page.ends_with(".md") || !path.is_file() {
            continue;
        }
        let links = links(&page, &fs::read_to_string(path).expect("a page"));
        for link in &links {
            next.push_back(link.file.clone());
            // A folder shows its README.
            next.push_back(format!("{}/README.md", link.file));
        }
        pages.insert(page, links);
    }
    pages
}

/// A page without its fenced blocks and code spans: its lines with their numbers.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (line, at) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.push((at, line.to_owned()));
        }
    }
    found
}

/// A line without the content of its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn links(page: &str, text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        let line = without_code(&line);
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let sources = line.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let defined =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        for target in inline.chain(sources).chain(defined) {
            // Absolute links have a scheme.
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = match target.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor.to_owned())),
                None => (target, None),
            };
            let file = if file.is_empty() { page.to_owned() } else { beside(page, file) };
            found.push(Link { at: format!("{page}:{at}"), file, anchor });
        }
    }
    found
}

/// A path relative to a page, from the repository's root.
fn beside(page: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(page).parent().expect("a folder").join(path).components() {
        match part {
            Component::ParentDir => assert!(whole.pop(), "{page}: {path} leads out of the repository"),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut times) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title.trim().to_lowercase().replace(' ', "-");
        let slug: String = slug.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        let before = times.entry(slug.clone()).or_default();
        found.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    found
}

#[test]
fn every_page_is_reached_from_the_readme() {
    let reached = reached();
    let missing: Vec<String> = stored().into_iter().filter(|page| !reached.contains_key(page)).collect();
    assert!(missing.is_empty(), "README.md does not lead to {missing:?}");
    let index = reached.get("docs/README.md").expect("the index");
    let listed: BTreeSet<&str> = index.iter().map(|link| link.file.as_str()).collect();
    for page in stored().iter().filter(|page| *page != "docs/README.md") {
        assert!(listed.contains(page.as_str()), "docs/README.md does not list {page}");
    }
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let root = repository(".");
    let links = reached().into_values().flatten().collect::<Vec<_>>();
    assert!(links.len() >= 20, "{links:?}");
    let broken: Vec<String> = links
        .iter()
        .filter(|link| !root.join(&link.file).exists())
        .map(|link| format!("{}: there is no {}", link.at, link.file))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_anchor_is_a_heading() {
    let root = repository(".");
    let mut broken = Vec::new();
    for link in reached().into_values().flatten() {
        let Some(anchor) = link.anchor else { continue };
        let text = fs::read_to_string(root.join(&link.file)).unwrap_or_default();
        if link.file.ends_with(".md") && !anchors(&text).contains(&anchor) {
            broken.push(format!("{}: {} has no heading #{anchor}", link.at, link.file));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn links_and_anchors_are_read_as_they_are_shown() {
    let text = "# A `b` c!\n\n## A b c\n\n[`x](y)`](../z.md#a-b-c) `[no](no.md)` [w](https://a.example/b.md)\n\
                ![p](images/p.svg) [here](#a-b-c-1)\n```sh\n# no heading [no](no.md)\n```\n[r]: q.md\n";
    let found: Vec<String> = links("docs/page.md", text)
        .into_iter()
        .map(|it| format!("{} {} {:?}", it.at, it.file, it.anchor))
        .collect();
    assert_eq!(
        found,
        [
            "docs/page.md:5 z.md Some(\"a-b-c\")",
            "docs/page.md:6 docs/images/p.svg None",
            "docs/page.md:6 docs/page.md Some(\"a-b-c-1\")",
            "docs/page.md:10 docs/q.md None",
        ]
    );
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
}
