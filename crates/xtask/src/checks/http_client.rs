//! Requests go out through the one guarded client of `delivery`, which alone checks their destinations.
//!
//! A rule in `arrows` ensures that only `delivery` uses the crate behind that client. The other rules are here: no
//! crate uses another HTTP client, none is named outside `delivery`, and the servers' HTTP library is not used as a
//! client except by tests, which call servers of their own. gRPC to addresses that operators configure is outside
//! this rule.

use toml::Table;

use crate::checks::arrows::{Need, dependencies, line_of};
use crate::finding::Finding;
use crate::scan;
use crate::tree::{Tree, inner_path};

const RULE: &str = "http-client";
const HOME: &str = "crates/delivery";
const GUARDED: &str = "reqwest";
/// Packages that are HTTP clients, or that build one.
const OTHERS: &[&str] = &[
    "attohttpc",
    "awc",
    "curl",
    "ehttp",
    "gloo-net",
    "http_req",
    "hyper-openssl",
    "hyper-rustls",
    "hyper-tls",
    "isahc",
    "minreq",
    "reqwest-middleware",
    "rquest",
    "surf",
    "ureq",
    "wreq",
];
/// Packages that are a client if a feature with this prefix is requested.
const LIBRARIES: &[&str] = &["hyper", "hyper-util"];
const CLIENT_FEATURE: &str = "client";
const LIBRARY_ROWS: &[(&str, &str)] =
    &[("hyper : : client", "hyper::client"), ("hyper_util : : client", "hyper_util::client")];

/// Reads every manifest below `crates/`, and every source.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = in_manifests(tree);
    findings.extend(in_sources(tree));
    findings
}

fn in_manifests(tree: &Tree) -> Vec<Finding> {
    let read = |path: &str| tree.text(path).and_then(|text| text.parse::<Table>().ok());
    let shared = read("Cargo.toml").unwrap_or_default();
    let mut findings = Vec::new();
    for folder in tree.folders_in("crates") {
        let path = format!("crates/{folder}/Cargo.toml");
        // An unreadable manifest is reported by the `arrows` rule.
        let (Some(text), Some(manifest)) = (tree.text(&path), read(&path)) else { continue };
        for dependency in dependencies(&manifest, &shared) {
            let name = dependency.name.as_str();
            let asked = dependency.features.iter().find(|feature| feature.starts_with(CLIENT_FEATURE));
            let message = if OTHERS.contains(&name) {
                format!("{name} is another HTTP client: use the one of {HOME}")
            } else if let (true, Need::Code, Some(feature)) =
                (LIBRARIES.contains(&name), dependency.need, asked)
            {
                format!("`{feature}` makes a client of {name}: use the one of {HOME}")
            } else {
                continue;
            };
            findings.push(Finding::new(&path, line_of(text, &dependency.key), RULE, message));
        }
    }
    findings
}

fn in_sources(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let at_home = inner_path(&source.path, HOME).is_some();
        let named = OTHERS.iter().chain(if at_home { None } else { Some(&GUARDED) });
        for name in named {
            let row = format!("{} : :", name.replace('-', "_"));
            let lines = scan::lines_of(source, &row);
            let message = format!("`{name}` is named here: use the client of {HOME}");
            findings.extend(lines.map(|line| Finding::new(&source.path, line, RULE, message.clone())));
        }
        for (row, shown) in LIBRARY_ROWS {
            let lines = scan::lines_of(source, row).filter(|line| !source.is_test(*line));
            let message = format!("`{shown}` is a client without the guard: use the one of {HOME}");
            findings.extend(lines.map(|line| Finding::new(&source.path, line, RULE, message.clone())));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_guarded_client_is_named_at_home_and_nowhere_else() {
        let source = "use reqwest::Client;\n";
        assert_eq!(
            findings(&[("crates/delivery/src/a.rs", source), ("crates/gateway/tests/a.rs", source)]),
            [
                "crates/gateway/tests/a.rs:1: http-client: `reqwest` is named here: use the client of crates/delivery"
            ]
        );
    }

    #[test]
    fn other_clients_are_refused_at_home_too() {
        let manifest =
            "[package]\nname = \"d\"\n[dev-dependencies]\nu = { version = \"3\", package = \"ureq\" }\n";
        let found = findings(&[
            ("crates/delivery/Cargo.toml", manifest),
            ("crates/delivery/src/a.rs", "fn a() {\n    hyper_rustls::b()\n}\n"),
        ]);
        assert_eq!(
            found,
            [
                "crates/delivery/Cargo.toml:4: http-client: ureq is another HTTP client: use the one of crates/delivery",
                "crates/delivery/src/a.rs:2: http-client: `hyper-rustls` is named here: use the client of crates/delivery",
            ]
        );
    }

    #[test]
    fn the_library_of_the_servers_is_a_client_in_tests_only() {
        let root =
            "[workspace.dependencies]\nhyper-util = { version = \"0.1\", features = [\"client-legacy\"] }\n";
        let manifest = "[package]\nname = \"g\"\n[dependencies]\nhyper-util.workspace = true\n[dev-dependencies]\nhyper = { version = \"1\", features = [\"client\"] }\n";
        let source = "use hyper::client::conn;\n";
        assert_eq!(
            findings(&[
                ("Cargo.toml", root),
                ("crates/gateway/Cargo.toml", manifest),
                ("crates/gateway/src/a.rs", source),
                ("crates/gateway/tests/a.rs", source),
            ]),
            [
                "crates/gateway/Cargo.toml:4: http-client: `client-legacy` makes a client of hyper-util: use the one of crates/delivery",
                "crates/gateway/src/a.rs:1: http-client: `hyper::client` is a client without the guard: use the one of crates/delivery",
            ]
        );
    }
}
