//! Each run has a process of its own, in which the system's random numbers are the same each time.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use switchward_shard::planted::{Bug, plant};
use switchward_testkit::{caught, finished};

use crate::server::folders;
use crate::simulation::{Outcome, Simulation};

/// The seed of the run of this process.
const SEED: &str = "SIM_RUN_SEED";
/// The file that its outcome is written to.
const OUTCOME: &str = "SIM_RUN_OUTCOME";
/// The folder for its servers. It is removed also if the process was killed.
pub(crate) const FOLDER: &str = "SIM_RUN_FOLDER";
/// The bug that is planted in it, if one is.
const BUG: &str = "SIM_RUN_BUG";
/// The test that plays the run.
const TEST: &str = "process::one_run";

/// Plays the run of a seed in a process of its own.
///
/// # Errors
/// The run has ended without an outcome, or did not end: the text says why.
pub(crate) fn play(seed: u64, bug: Option<&str>) -> Result<Outcome, String> {
    caught(|| played(seed, bug))
}

fn played(seed: u64, bug: Option<&str>) -> Result<Outcome, String> {
    let folder = folders();
    let file = folder.path().join("outcome");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture", "--test-threads", "1"]);
    command.env(SEED, seed.to_string()).env(OUTCOME, &file).env(FOLDER, folder.path());
    command.env("LD_PRELOAD", entropy());
    if let Some(bug) = bug {
        command.env(BUG, bug);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finished(command.spawn().unwrap());
    let Ok(outcome) = std::fs::read(&file) else {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(format!("the run ended with {}\n{out}\n{err}", output.status));
    };
    Ok(Outcome::from_json(&serde_json::from_slice(&outcome).unwrap()))
}

/// The run of this process, if it was started for one.
#[test]
fn one_run() {
    let Some(seed) = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap()) else { return };
    let bug = std::env::var(BUG).ok();
    plant(bug.map(|name| Bug::ALL.into_iter().find(|bug| bug.name() == name).unwrap()));
    let outcome = Simulation::run(seed);
    let file = std::env::var_os(OUTCOME).unwrap();
    std::fs::write(file, outcome.to_json().to_string()).unwrap();
}

/// The library that is loaded before all others, built by the C compiler that Rust links with.
fn entropy() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (library, own) =
            (folder.join("entropy.so"), folder.join(format!("entropy-{}.so", std::process::id())));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/entropy.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built =
            Command::new(compiler).args(["-shared", "-fPIC", "-O1", "-o"]).arg(&own).arg(source).status();
        assert!(built.is_ok_and(|status| status.success()), "the simulation needs a C compiler");
        // Another process may build it at the same time.
        std::fs::rename(own, &library).unwrap();
        library
    })
}

impl Outcome {
    fn to_json(&self) -> Value {
        json!({
            "hash": self.hash, "begun": self.begun, "known": self.known, "wrong": self.wrong, "empty": self.empty,
            "faults": self.faults, "counts": self.counts,
        })
    }

    fn from_json(value: &Value) -> Self {
        let number = |name: &str| value[name].as_u64().unwrap();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let counts = |name: &str| {
            let all = value[name].as_object().unwrap();
            all.iter().map(|(what, count)| (what.clone(), count.as_u64().unwrap())).collect()
        };
        Self {
            hash: number("hash"),
            begun: number("begun"),
            known: number("known"),
            wrong: value["wrong"].as_array().unwrap().iter().filter_map(text).collect(),
            empty: text(&value["empty"]),
            faults: counts("faults"),
            counts: counts("counts"),
        }
    }
}
