//! Inside a crate no more than [`FILES_MAX`] files import each other in a cycle, so that each part can be read without
//! the others.
//!
//! A file imports another if a path in it leads to an item of the other; re-exports are followed to the file that declares
//! the item. Test code is left out, and so is what a module uses of its own children.

mod graph;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use self::graph::cycles;
use self::paths::{Module, module_of};
use crate::finding::Finding;
use crate::source::is_test_path;
use crate::tree::{Tree, inner_path};

const RULE: &str = "cycles";
/// Files in one import cycle.
const FILES_MAX: usize = 5;

/// The path of a module in its crate; empty for the crate's root.
type Name = Vec<String>;

/// Measures the import cycles of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in tree.folders_in("crates") {
        let root = format!("crates/{folder}/src");
        let modules: BTreeMap<Name, Module> = tree
            .sources
            .iter()
            .filter(|source| !is_test_path(&source.path))
            .filter_map(|source| Some((module_of(inner_path(&source.path, &root)?), Module::read(source))))
            .collect();
        for cycle in cycles(&imports(&modules)).into_iter().filter(|cycle| cycle.len() > FILES_MAX) {
            let files: Vec<&str> = cycle.iter().map(|name| modules[name].file.as_str()).collect();
            let names: Vec<&str> = files.iter().filter_map(|file| inner_path(file, &root)).collect();
            let message = format!(
                "{} files import each other, at most {FILES_MAX} may: {}",
                files.len(),
                names.join(" ")
            );
            findings.push(Finding::new(files[0], 1, RULE, message));
        }
    }
    findings
}

/// The modules that each module imports.
fn imports(modules: &BTreeMap<Name, Module>) -> BTreeMap<Name, BTreeSet<Name>> {
    let of = |name: &Name, module: &Module| {
        let targets = module.used.iter().filter_map(|path| resolve(modules, name, path, 0));
        targets.filter(|target| target != name && !target.starts_with(name)).collect()
    };
    modules.iter().map(|(name, module)| (name.clone(), of(name, module))).collect()
}

/// The longest chain of re-exports that is followed.
const HOPS_MAX: usize = 12;

/// The module that declares what a path leads to, as it is seen in `from`; `None` if it is not in this crate.
fn resolve(modules: &BTreeMap<Name, Module>, from: &Name, path: &[String], hops: usize) -> Option<Name> {
    let own = modules.get(from)?;
    let first = path.first().filter(|_| hops <= HOPS_MAX)?;
    let (mut at, mut rest) = match first.as_str() {
        "crate" => (Name::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..])
        }
        child if modules.contains_key(&below(from, child)) => (from.clone(), path),
        name => {
            let import = own.imports.get(name).filter(|import| import.first() != Some(first))?;
            let whole = [import, &path[1..]].concat();
            return resolve(modules, from, &whole, hops + 1);
        }
    };
    while let Some(part) = rest.first() {
        if modules.contains_key(&below(&at, part)) {
            at = below(&at, part);
            rest = &rest[1..];
            continue;
        }
        let module = modules.get(&at)?;
        if let Some(import) = module.imports.get(part).filter(|_| !module.declares.contains(part)) {
            let whole = [import, &rest[1..]].concat();
            return resolve(modules, &at, &whole, hops + 1);
        }
        break;
    }
    modules.contains_key(&at).then_some(at)
}

fn below(name: &Name, child: &str) -> Name {
    [name.as_slice(), &[child.to_owned()]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, String)> {
        check(&Tree::of(files)).into_iter().map(|it| (it.path, it.message)).collect()
    }

    /// `count` files in a cycle: each imports the next one by a path, a `use`, or a re-export.
    fn cycle(count: usize) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> = (0..count)
            .map(|at| {
                let next = (at + 1) % count;
                let text = match at % 3 {
                    0 => format!("pub fn f{at}() {{ crate::m{next}::f{next}() }}\n"),
                    1 => format!("use super::m{next} as other;\npub fn f{at}() {{ other::f{next}() }}\n"),
                    _ => format!("use crate::f{next};\npub fn f{at}() {{ f{next}() }}\n"),
                };
                (format!("crates/x/src/m{at}.rs"), text)
            })
            .collect();
        let root: String = (0..count).map(|at| format!("mod m{at};\npub use m{at}::f{at};\n")).collect();
        files.push(("crates/x/src/lib.rs".into(), root));
        files
    }

    fn found_in(files: &[(String, String)]) -> Vec<(String, String)> {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found(&files)
    }

    #[test]
    fn a_cycle_of_six_files_is_reported_and_one_of_five_is_not() {
        assert_eq!(found_in(&cycle(5)), []);
        let reported = found_in(&cycle(6));
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert_eq!(reported[0].0, "crates/x/src/m0.rs");
        assert!(reported[0].1.starts_with("6 files import each other"), "{reported:?}");
        assert!(reported[0].1.ends_with("m0.rs m1.rs m2.rs m3.rs m4.rs m5.rs"), "{reported:?}");
    }

    #[test]
    fn tests_and_a_modules_own_children_close_no_cycle() {
        let mut files = cycle(6);
        files[0].1 = "pub fn f0() {}\n#[cfg(test)]\nmod tests {\n    use crate::m1::f1;\n}\n".into();
        assert_eq!(found_in(&files), []);
        let children: String = (0..8).map(|at| format!("mod c{at};\n")).collect();
        let mut files: Vec<(String, String)> = (0..8)
            .map(|at| (format!("crates/x/src/c{at}.rs"), "pub fn f() { crate::shared() }\n".to_owned()))
            .collect();
        files.push((
            "crates/x/src/lib.rs".into(),
            format!("{children}pub fn shared() {{ c0::f(); c7::f() }}\n"),
        ));
        assert_eq!(found_in(&files), []);
    }
}
