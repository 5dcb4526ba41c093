//! The files that are deployed, and their order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use switchward_api::v1;
use switchward_formats::{SourceFile, compile_file, detect};

use super::Mode;
use crate::args::files;
use crate::commands::check::{DEPTH_MAX, walk};
use crate::exit::Exit;
use crate::output::clean;

/// One definition that is deployed.
pub(super) struct Source {
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
    /// The name of the definition; `None` if this program cannot compile it.
    name: Option<String>,
    /// The names of the definitions that it calls.
    calls: Vec<String>,
}

impl Source {
    fn new(path: &Path, bytes: Vec<u8>) -> Self {
        let definition = compile_file(&path.to_string_lossy(), &bytes, None).definition;
        let calls = definition.iter().flat_map(|definition| &definition.calls);
        let calls = calls.map(|call| call.name.clone()).collect();
        Self { path: path.to_owned(), bytes, name: definition.map(|definition| definition.name), calls }
    }

    /// The file as a bundle contains it.
    pub(super) fn bundle(&self) -> v1::DefinitionFile {
        let name = self.path.file_name().map_or_else(|| "definition".into(), |name| name.to_string_lossy());
        v1::DefinitionFile { path: clean(&name).replace('\n', "_"), content: self.bytes.clone().into() }
    }

    /// The name of the definition, else the path of the file.
    pub(super) fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.path.display().to_string())
    }
}

/// Reads all files, and in folders those that are definitions.
pub(super) fn gathered(paths: &[PathBuf]) -> Result<Vec<Source>, Exit> {
    let mut sources = Vec::new();
    for path in paths {
        if !path.is_dir() {
            sources.push(Source::new(path, files::read(path)?));
            continue;
        }
        let mut below = Vec::new();
        walk(path, DEPTH_MAX, &mut below)?;
        for path in below {
            let bytes = files::read(&path)?;
            let name = path.to_string_lossy();
            if detect(&[SourceFile { path: &name, bytes: &bytes }]).is_ok() {
                sources.push(Source::new(&path, bytes));
            }
        }
    }
    if sources.is_empty() {
        return Err(Exit::missing("no definitions found").next("name a file itself to see why it is not one"));
    }
    Ok(sources)
}

/// Puts each definition behind those that it calls, and leaves the rest in order.
///
/// # Errors
/// Two files define the same name; or definitions call one another in a cycle, and are to be activated.
pub(super) fn ordered(sources: Vec<Source>, mode: Mode) -> Result<Vec<Source>, Exit> {
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, source) in sources.iter().enumerate() {
        let Some(name) = source.name.as_deref() else { continue };
        if let Some(before) = positions.insert(name, at) {
            let (one, other) = (sources[before].path.display(), source.path.display());
            return Err(Exit::usage(format!("{one} and {other} both define {}", clean(name))));
        }
    }
    let mut walked = Walked { seen: vec![Seen::No; sources.len()], order: Vec::new() };
    for at in 0..sources.len() {
        if let (Some(cycle), Mode::Activate) = (walked.visit(&sources, &positions, at), mode) {
            let names: Vec<String> = cycle.into_iter().map(|at| clean(&sources[at].shown())).collect();
            return Err(Exit::damaged(format!(
                "these call one another without an end: {}",
                names.join(" -> ")
            )));
        }
    }
    let order = walked.order;
    let mut left: Vec<Option<Source>> = sources.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|at| left[at].take()).collect())
}

/// How far a walk through the calls has come with a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    No,
    OnPath,
    Done,
}

/// A walk through the calls.
struct Walked {
    seen: Vec<Seen>,
    /// The definitions whose callees are all before them.
    order: Vec<usize>,
}

impl Walked {
    /// Adds a definition behind all that it calls. Returns the first cycle, with its first member again at the end.
    fn visit(
        &mut self,
        sources: &[Source],
        positions: &BTreeMap<&str, usize>,
        from: usize,
    ) -> Option<Vec<usize>> {
        if self.seen[from] != Seen::No {
            return None;
        }
        let mut cycle = None;
        // Each entry is a definition and how many of its calls were looked at.
        let mut path = vec![(from, 0)];
        self.seen[from] = Seen::OnPath;
        while let Some((at, next)) = path.last_mut() {
            let (at, call) = (*at, sources[*at].calls.get(*next));
            *next += 1;
            let Some(call) = call else {
                self.seen[at] = Seen::Done;
                self.order.push(at);
                path.pop();
                continue;
            };
            let Some(callee) = positions.get(call.as_str()).copied().filter(|callee| *callee != at) else {
                continue;
            };
            match self.seen[callee] {
                Seen::No => {
                    self.seen[callee] = Seen::OnPath;
                    path.push((callee, 0));
                }
                Seen::OnPath => {
                    let members = path.iter().map(|(at, _)| *at).skip_while(|at| *at != callee);
                    cycle.get_or_insert_with(|| members.chain([callee]).collect());
                }
                Seen::Done => {}
            }
        }
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, calls: &[&str]) -> Source {
        let calls = calls.iter().map(|call| (*call).to_owned()).collect();
        Source { path: format!("{name}.yaml").into(), bytes: Vec::new(), name: Some(name.into()), calls }
    }

    fn order(sources: Vec<Source>, mode: Mode) -> Result<Vec<String>, Exit> {
        ordered(sources, mode).map(|sources| sources.iter().map(Source::shown).collect())
    }

    #[test]
    fn a_definition_comes_after_those_that_it_calls() {
        let sources =
            || vec![source("a", &["c", "x"]), source("b", &[]), source("c", &["d"]), source("d", &["d"])];
        assert_eq!(order(sources(), Mode::Activate).unwrap(), ["d", "c", "a", "b"]);
    }

    #[test]
    fn a_cycle_is_named_if_it_would_be_activated() {
        let sources = || vec![source("z", &["a"]), source("a", &["b"]), source("b", &["a"])];
        let refused = format!("{:?}", order(sources(), Mode::Activate).unwrap_err());
        assert!(refused.contains("a -> b -> a"), "{refused}");
        assert_eq!(order(sources(), Mode::Store).unwrap(), ["b", "a", "z"]);
    }

    #[test]
    fn two_files_of_one_name_are_refused() {
        let refused = order(vec![source("a", &[]), source("a", &[])], Mode::Store).unwrap_err();
        let refused = format!("{refused:?}");
        assert!(refused.contains("both define a"), "{refused}");
    }
}
