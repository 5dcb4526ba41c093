//! What `switchward dev` prints for a person, and whether it is true.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use crate::support::{Ended, Process, deploy_gate, folder, program};

/// What ends the announcement.
const LAST: &str = "ctrl-c stops it.";

/// A development server that was started without a word about its data.
struct Fresh {
    process: Process,
    /// Held open, so that the server may go on writing.
    _stdout: BufReader<ChildStdout>,
    printed: Vec<String>,
}

/// The program in a folder of its own, with its profile and its temporary files there.
fn at_home(home: &Path) -> Command {
    let mut command = program();
    command
        .current_dir(home)
        .env("TMPDIR", home.join("tmp"))
        .env("SWITCHWARD_PROFILE", home.join("profile.json"));
    command
}

impl Fresh {
    fn start(home: &Path) -> Self {
        let mut command = at_home(home);
        let child = command.args(["dev", "--port", "0"]).stdout(Stdio::piped()).spawn();
        let mut process = Process(child.expect("the server starts"));
        let mut stdout = BufReader::new(process.0.stdout.take().expect("it has an output"));
        let mut printed = Vec::new();
        while printed.last().is_none_or(|line| line != LAST) {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).expect("it goes on");
            assert!(read > 0, "it ended: {printed:?}");
            printed.push(line.trim_end().to_owned());
        }
        Self { process, _stdout: stdout, printed }
    }

    /// What stands beside a label.
    fn fact(&self, label: &str) -> &str {
        let lines = self.printed.iter().filter_map(|line| line.trim_start().strip_prefix(label));
        let facts: Vec<&str> = lines.map(str::trim).collect();
        assert_eq!(facts.len(), 1, "{label}: {:?}", self.printed);
        facts[0]
    }

    /// The commands that are named as the next ones.
    fn next(&self) -> Vec<Vec<&str>> {
        let lines = self.printed.iter().filter_map(|line| line.strip_prefix("  switchward "));
        lines.map(|line| line.split(' ').collect()).collect()
    }
}

/// The folders of servers without a data folder.
fn scratch(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("tmp")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().contains("switchward-dev-")).collect()
}

#[test]
fn a_person_is_told_where_the_server_is_with_which_keys_and_that_nothing_will_survive() {
    let home = folder(&[("tmp/other.txt", "")]);
    let mut dev = Fresh::start(home.path());
    let address = dev.fact("address").to_owned();
    assert!(address.starts_with("http://127.0.0.1:") && !address.ends_with(":0"), "{address}");
    let [agent, person, worker] =
        ["agent key", "person key", "worker key"].map(|label| dev.fact(label).to_owned());
    let list = |key: &str, what: &str| {
        let words = ["list", what, "--address", &address, "--api-key", key];
        run_elsewhere(&words).code
    };
    assert_eq!((list(&agent, "sessions"), list(&agent, "keys")), (0, 6), "an agent's");
    assert_eq!(list(&person, "keys"), 0, "a person's");
    let poll = |key: &str| run_elsewhere(&["work", "poll", "--address", &address, "--api-key", key]).code;
    assert_eq!((poll(&worker), list(&worker, "keys"), poll(&agent)), (0, 6, 6), "a worker's");
    assert_eq!(dev.fact("data  "), "data is gone when this stops; say --data-dir DIR to keep it");
    assert_eq!(dev.fact("clock"), "system");
    assert_eq!(dev.fact("profile"), home.path().join("profile.json").to_str().expect("a plain path"));
    assert!(dev.printed.iter().all(|line| !line.contains('\u{1b}')), "{:?}", dev.printed);

    assert_eq!(scratch(home.path()).len(), 1);
    assert_eq!(dev.process.stop(), Some(0));
    assert_eq!(scratch(home.path()), [] as [PathBuf; 0], "what does not survive is gone");
}

/// Runs the program where no profile is.
fn run_elsewhere(words: &[&str]) -> Ended {
    Ended::of(program().args(words))
}

#[test]
fn the_next_commands_can_be_typed_in_their_order() {
    let home = folder(&[("tmp/other.txt", "")]);
    fs::copy(deploy_gate(), home.path().join("deploy-gate.json")).expect("a file");
    let dev = Fresh::start(home.path());
    let next = dev.next();
    let (watch, before) = next.split_last().expect("there are some");
    let mut gate = String::new();
    for words in before {
        let words: Vec<&str> = words.iter().map(|word| if *word == "GATE" { &gate } else { *word }).collect();
        let ended = Ended::of(at_home(home.path()).args(&words));
        // What asks a person ends with 7; all others are done.
        let asks = words.contains(&"mcp:filesystem:write_file");
        let ended = ended.with_code(if asks { 7 } else { 0 });
        if let Some(id) = ended.out.split_whitespace().find(|word| word.starts_with("gat_")) {
            id.clone_into(&mut gate);
        }
    }
    let verbs: Vec<&str> = next.iter().map(|words| words[0]).collect();
    let expected =
        ["check", "deploy", "start", "authorize", "authorize", "list", "decide", "answer", "watch"];
    assert_eq!(verbs, expected);

    // A watch goes on with the session, which waits for its next answer.
    let child = at_home(home.path()).args(watch).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut watch = Process(child);
    let mut lines = BufReader::new(watch.0.stdout.take().expect("it has an output")).lines();
    let told = lines.any(|line| line.expect("UTF-8").contains("migration-check"));
    assert!(told, "the watch tells what the answer led to");
}
