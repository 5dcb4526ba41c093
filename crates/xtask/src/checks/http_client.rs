//! Requests go out through the one guarded client of `delivery`, which alone checks their destinations.
//!
//! `.cargo/deny.toml` refuses every other HTTP client, and allows the library behind that client to `delivery` alone. Here
//! is what it cannot see: the servers' HTTP library is not used as a client except by tests, which call servers of their
//! own, and by [`PROXY`], which talks to servers of its own cluster over connections that it is given. gRPC to addresses that operators configure is outside this rule.

use toml::Table;

use crate::checks::arrows::{Need, dependencies, line_of};
use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "http-client";
const HOME: &str = "crates/delivery";
/// Passes calls on to other servers of the cluster, over the connections between servers.
const PROXY: &str = "crates/gateway/src/proxy/links.rs";
/// The crate that it is in, with the library that it needs the client of.
const PROXY_LIBRARY: (&str, &str) = ("gateway", "hyper");
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
            if !LIBRARIES.contains(&name) || dependency.need == Need::Tests || (folder, name) == PROXY_LIBRARY
            {
                continue;
            }
            let asked = dependency.features.iter().find(|feature| feature.starts_with(CLIENT_FEATURE));
            let Some(feature) = asked else { continue };
            let message = format!("`{feature}` makes a client of {name}: use the one of {HOME}");
            findings.push(Finding::new(&path, line_of(text, &dependency.key), RULE, message));
        }
    }
    findings
}

fn in_sources(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources.iter().filter(|source| source.path != PROXY) {
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
                ("crates/gateway/src/proxy/links.rs", source),
                ("crates/gateway/tests/a.rs", source),
            ]),
            [
                "crates/gateway/Cargo.toml:4: http-client: `client-legacy` makes a client of hyper-util: use the one of crates/delivery",
                "crates/gateway/src/a.rs:1: http-client: `hyper::client` is a client without the guard: use the one of crates/delivery",
            ]
        );
    }
}
