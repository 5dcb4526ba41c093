//! Dependencies between crates run only downward, and the pure crates use only what is listed here.
//!
//! Which other crates may use a library from outside, such as `openraft`, is in `.cargo/deny.toml`.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::{Tree, line_where};

const RULE: &str = "arrows";

/// A crate's folder under `crates/`, and what it may use.
struct CrateRule {
    folder: &'static str,
    /// Crates of this repository that its code may use.
    uses: &'static [&'static str],
    /// Crates from outside that its code may use; `None` means any.
    outside: Option<&'static [&'static str]>,
}

/// The crate that holds what tests share: tests of every crate may use it, and no other code.
const TESTKIT: &str = "testkit";
/// The same, for tests that need several servers.
const TESTNET: &str = "testnet";

/// Every crate, lowest first. A test may use any crate before its own in this list.
const CRATES: &[CrateRule] = &[
    CrateRule {
        folder: "expr",
        uses: &[],
        outside: Some(&[
            "minicbor",
            "minijinja",
            "pulldown-cmark",
            "regex",
            "serde_json",
            "thiserror",
            "unicode-segmentation",
        ]),
    },
    CrateRule {
        folder: "schema",
        uses: &[],
        outside: Some(&["jsonschema", "minicbor", "serde_json", "url"]),
    },
    CrateRule {
        folder: "machine",
        uses: &["expr", "schema"],
        outside: Some(&["minicbor", "sha2", "thiserror"]),
    },
    CrateRule {
        folder: "formats",
        uses: &["expr", "schema", "machine"],
        outside: Some(&["jsonc-parser", "saphyr-parser", "serde_json", "sha2", "strsim", "thiserror"]),
    },
    CrateRule { folder: "graph", uses: &["machine"], outside: Some(&["thiserror"]) },
    CrateRule {
        folder: "state",
        uses: &["machine"],
        outside: Some(&[
            "chacha20poly1305",
            "hmac",
            "jiff",
            "minicbor",
            "serde",
            "serde_json",
            "sha2",
            "smallvec",
            "zeroize",
        ]),
    },
    CrateRule { folder: "messages", uses: &["machine", "state"], outside: Some(&["serde_json"]) },
    CrateRule {
        folder: "engine",
        uses: &["expr", "machine", "state"],
        outside: Some(&["foldhash", "indexmap", "minicbor", "serde_json"]),
    },
    CrateRule {
        folder: "scenario",
        uses: &["expr", "machine", "formats", "state", "messages", "engine"],
        outside: Some(&["jiff", "saphyr-parser", "serde_json", "thiserror"]),
    },
    CrateRule {
        folder: TESTKIT,
        uses: &["machine", "formats", "state", "engine", "scenario"],
        outside: None,
    },
    CrateRule { folder: "api", uses: &[], outside: None },
    CrateRule { folder: "store", uses: &[], outside: None },
    CrateRule { folder: "bus", uses: &[], outside: None },
    CrateRule { folder: "peer", uses: &[], outside: None },
    CrateRule { folder: "shard", uses: &["machine", "state", "engine", "store"], outside: None },
    CrateRule { folder: "query", uses: &["machine", "state", "engine", "shard"], outside: None },
    CrateRule { folder: TESTNET, uses: &["state", "store", "shard"], outside: None },
    CrateRule {
        folder: "webhook",
        uses: &[],
        outside: Some(&["base64", "hmac", "jiff", "serde", "serde_json", "sha2", "subtle", "thiserror"]),
    },
    CrateRule {
        folder: "delivery",
        uses: &["bus", "machine", "mail", "messages", "state", "webhook"],
        outside: None,
    },
    CrateRule { folder: "mail", uses: &[], outside: None },
    CrateRule {
        folder: "gateway",
        uses: &[
            "expr", "api", "machine", "formats", "state", "messages", "engine", "shard", "query", "mail",
            "webhook",
        ],
        outside: None,
    },
    CrateRule {
        folder: "outbound",
        uses: &[
            "expr", "machine", "state", "messages", "engine", "bus", "shard", "query", "webhook", "delivery",
            "gateway",
        ],
        outside: None,
    },
    CrateRule {
        folder: "switchward",
        uses: &[
            "expr", "machine", "formats", "graph", "state", "messages", "engine", "scenario", "api", "store",
            "bus", "peer", "shard", "query", "webhook", "delivery", "mail", "gateway", "outbound",
        ],
        outside: None,
    },
    CrateRule { folder: "bench", uses: &["api"], outside: None },
    CrateRule {
        folder: "fuzz",
        uses: &[
            "api", "engine", "expr", "formats", "gateway", "machine", "mail", "scenario", "schema", "shard",
            "state", "webhook",
        ],
        outside: None,
    },
    CrateRule { folder: "xtask", uses: &[], outside: None },
];

/// Crates from outside that the tests of a pure crate may use in addition.
const PURE_TESTS_OUTSIDE: &[&str] = &["proptest", "serde_json"];

/// The crates without IO, async, clock, randomness, threads, environment and hash order.
pub(crate) fn pure_crates() -> impl Iterator<Item = &'static str> {
    CRATES.iter().filter(|rule| rule.outside.is_some()).map(|rule| rule.folder)
}

/// The kind of code that needs a dependency.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Code,
    Tests,
}

/// A dependency as declared by a manifest.
pub(super) struct Dependency {
    /// Its name in this manifest.
    pub(super) key: String,
    /// The package behind it.
    pub(super) name: String,
    /// The kind of code that needs it.
    pub(super) need: Need,
    /// The requested features, here or in the root manifest.
    pub(super) features: Vec<String>,
}

/// Reads every manifest below `crates/`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let shared = tree.text("Cargo.toml").and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    let mut findings = Vec::new();
    let mut manifests = BTreeMap::new();
    for folder in tree.folders_in("crates") {
        let path = format!("crates/{folder}/Cargo.toml");
        let Some(text) = tree.text(&path) else { continue };
        match text.parse::<Table>() {
            Ok(manifest) => {
                manifests.insert(folder, (path, text, manifest));
            }
            Err(error) => {
                findings.push(Finding::new(&path, 1, RULE, format!("cannot be read: {}", error.message())))
            }
        }
    }
    let folders: BTreeMap<String, &str> =
        manifests.iter().map(|(folder, (.., manifest))| (package_name(manifest, folder), *folder)).collect();
    for (folder, (path, text, manifest)) in &manifests {
        let Some(rank) = CRATES.iter().position(|rule| rule.folder == *folder) else {
            let message = "this crate has no entry yet: add it to crates/xtask/src/checks/arrows.rs and crates/README.md";
            findings.push(Finding::new(path, 1, RULE, message));
            continue;
        };
        for dependency in dependencies(manifest, &shared) {
            if let Some(message) = refused(rank, &dependency.name, dependency.need, &folders) {
                findings.push(Finding::new(path, line_of(text, &dependency.key), RULE, message));
            }
        }
    }
    findings
}

/// The message if the crate at `rank` may not use `name`.
fn refused(rank: usize, name: &str, need: Need, folders: &BTreeMap<String, &str>) -> Option<String> {
    let rule = &CRATES[rank];
    if let Some(target) = folders.get(name) {
        let below = CRATES[..rank].iter().any(|lower| lower.folder == *target);
        return match need {
            Need::Code if !rule.uses.contains(target) => {
                Some(format!("{} may use {}, not {target}", rule.folder, listed(rule.uses)))
            }
            // A crate's tests may turn its own features for tests on.
            Need::Tests if !below && ![TESTKIT, TESTNET, rule.folder].contains(target) => {
                Some(format!("tests of {} may not use {target}, which is not below it", rule.folder))
            }
            Need::Code | Need::Tests => None,
        };
    }
    let known = rule.outside?;
    if known.contains(&name) || (need == Need::Tests && PURE_TESTS_OUTSIDE.contains(&name)) {
        return None;
    }
    Some(format!("{} is pure: of external crates it may use only {}, not {name}", rule.folder, listed(known)))
}

/// Every dependency of a manifest; `shared` is the root's.
pub(super) fn dependencies(manifest: &Table, shared: &Table) -> Vec<Dependency> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(targets.into_iter().flat_map(Table::values).filter_map(Value::as_table));
    let sections =
        [("dependencies", Need::Code), ("build-dependencies", Need::Code), ("dev-dependencies", Need::Tests)];
    let mut found = Vec::new();
    for table in tables {
        for (section, need) in sections {
            let entries = table.get(section).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(key, value)| Dependency {
                key: key.clone(),
                name: package_behind(key, value, shared),
                need,
                features: features_of(key, value, shared),
            }));
        }
    }
    found
}

/// The root manifest's entry for a dependency.
fn in_root<'a>(key: &str, shared: &'a Table) -> Option<&'a Value> {
    shared.get("workspace").and_then(|it| it.get("dependencies")).and_then(|it| it.get(key))
}

fn features_of(key: &str, value: &Value, shared: &Table) -> Vec<String> {
    let lists = [Some(value), in_root(key, shared)].into_iter().flatten();
    let features = lists.filter_map(|it| it.get("features")?.as_array()).flatten();
    features.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The package that a dependency's key stands for: renamed here, renamed in the root manifest, or the key itself.
fn package_behind(key: &str, value: &Value, shared: &Table) -> String {
    let renamed = [Some(value), in_root(key, shared)].into_iter().flatten().find_map(|it| it.get("package"));
    renamed.and_then(Value::as_str).unwrap_or(key).to_owned()
}

fn package_name(manifest: &Table, folder: &str) -> String {
    let name = manifest.get("package").and_then(|it| it.get("name")).and_then(Value::as_str);
    name.unwrap_or(folder).to_owned()
}

/// The line of a dependency in a manifest.
pub(super) fn line_of(text: &str, key: &str) -> usize {
    line_where(text, |line| {
        let line = line.trim_start();
        let entry = line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        entry || (line.starts_with('[') && line.trim_end().ends_with(&format!(".{key}]")))
    })
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no other crate here".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    const MACHINE: (&str, &str) = ("crates/machine/Cargo.toml", "[package]\nname = \"switchward-machine\"\n");
    const FORMATS: (&str, &str) = (
        "crates/formats/Cargo.toml",
        "[package]\nname = \"switchward-formats\"\n[dependencies]\nswitchward-machine.workspace = true\n",
    );

    #[test]
    fn an_arrow_downward_is_fine() {
        assert_eq!(findings(&[MACHINE, FORMATS]), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_upward_is_reported_at_its_line() {
        let engine = "[package]\nname = \"switchward-engine\"\n\n[dependencies]\nswitchward-formats.workspace = true\n";
        assert_eq!(
            findings(&[MACHINE, FORMATS, ("crates/engine/Cargo.toml", engine)]),
            ["crates/engine/Cargo.toml:5: arrows: engine may use expr, machine, state, not formats"]
        );
    }

    #[test]
    fn a_renamed_arrow_is_still_an_arrow() {
        let expr = "[package]\nname = \"switchward-expr\"\n[dependencies]\nf = { path = \"../formats\", package = \"switchward-formats\" }\n";
        assert_eq!(
            findings(&[MACHINE, FORMATS, ("crates/expr/Cargo.toml", expr)]),
            ["crates/expr/Cargo.toml:4: arrows: expr may use no other crate here, not formats"]
        );
    }

    #[test]
    fn tests_may_use_what_is_lower_and_nothing_higher() {
        let engine = "[package]\nname = \"switchward-engine\"\n[dev-dependencies]\nswitchward-formats.workspace = true\nproptest.workspace = true\n";
        let machine = "[package]\nname = \"switchward-machine\"\n[dev-dependencies]\nswitchward-engine.workspace = true\n";
        assert_eq!(
            findings(&[
                FORMATS,
                ("crates/engine/Cargo.toml", engine),
                ("crates/machine/Cargo.toml", machine),
            ]),
            [
                "crates/machine/Cargo.toml:4: arrows: tests of machine may not use engine, which is not below it"
            ]
        );
    }

    #[test]
    fn tests_may_turn_on_features_of_their_own_crate_and_code_may_not_use_itself() {
        let machine = |section: &str| {
            format!(
                "[package]\nname = \"switchward-machine\"\n[{section}]\nswitchward-machine = {{ path = \".\" }}\n"
            )
        };
        let found = |text: &str| findings(&[("crates/machine/Cargo.toml", text)]);
        assert_eq!(found(&machine("dev-dependencies")), Vec::<String>::new());
        assert_eq!(found(&machine("dependencies")).len(), 1);
    }

    #[test]
    fn tests_of_every_crate_may_use_the_testkit_and_no_other_code_may() {
        let testkit = ("crates/testkit/Cargo.toml", "[package]\nname = \"switchward-testkit\"\n");
        let section = |section: &str| {
            format!(
                "[package]\nname = \"switchward-engine\"\n[{section}]\nswitchward-testkit.workspace = true\n"
            )
        };
        let found = |text: &str| findings(&[testkit, ("crates/engine/Cargo.toml", text)]);
        assert_eq!(found(&section("dev-dependencies")), Vec::<String>::new());
        assert_eq!(
            found(&section("dependencies")),
            ["crates/engine/Cargo.toml:4: arrows: engine may use expr, machine, state, not testkit"]
        );
    }

    #[test]
    fn a_pure_crate_uses_only_what_is_listed() {
        let engine = "[package]\nname = \"switchward-engine\"\n[dependencies]\nrand = \"0.9\"\n[target.'cfg(unix)'.dependencies]\ntokio = \"1\"\n";
        assert_eq!(
            findings(&[("crates/engine/Cargo.toml", engine)]),
            [
                "crates/engine/Cargo.toml:4: arrows: engine is pure: of external crates it may use only foldhash, indexmap, minicbor, serde_json, not rand",
                "crates/engine/Cargo.toml:6: arrows: engine is pure: of external crates it may use only foldhash, indexmap, minicbor, serde_json, not tokio",
            ]
        );
    }

    #[test]
    fn a_picture_is_drawn_from_a_machine_and_nothing_else() {
        let graph = "[package]\nname = \"switchward-graph\"\n[dependencies]\nswitchward-machine.workspace = true\nswitchward-formats.workspace = true\nserde_json = \"1\"\n[dev-dependencies]\nswitchward-formats.workspace = true\n";
        assert_eq!(
            findings(&[MACHINE, FORMATS, ("crates/graph/Cargo.toml", graph)]),
            [
                "crates/graph/Cargo.toml:6: arrows: graph is pure: of external crates it may use only thiserror, not serde_json",
                "crates/graph/Cargo.toml:5: arrows: graph may use machine, not formats",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_reported() {
        let found = findings(&[("crates/misc/Cargo.toml", "[package]\nname = \"misc\"\n")]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/misc/Cargo.toml:1: arrows: this crate has no entry yet"),
            "{found:?}"
        );
    }
}
