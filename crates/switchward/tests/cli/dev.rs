//! What `switchward dev` prints for a person, and whether it is true.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use switchward_testkit::within;

use crate::support::{Ended, Process, deploy_gate, folder, private, program};

/// What ends the announcement.
const LAST: &str = "ctrl-c stops the server.";

/// A development server that was started without a word about its data.
struct Fresh {
    process: Process,
    /// Held open, so that the server may go on writing.
    stdout: BufReader<ChildStdout>,
    printed: Vec<String>,
}

/// The program in a folder of its own, with its contexts and its temporary files there.
fn at_home(home: &Path) -> Command {
    let mut command = program();
    command
        .current_dir(home)
        .env("TMPDIR", home.join("tmp"))
        .env("SWITCHWARD_CONTEXTS", home.join("contexts"));
    command
}

impl Fresh {
    fn start(home: &Path) -> Self {
        Self::of(at_home(home))
    }

    fn of(mut command: Command) -> Self {
        let child = command.args(["dev", "--port", "0"]).stdout(Stdio::piped()).spawn();
        let mut process = Process(child.expect("the server starts"));
        let mut stdout = BufReader::new(process.0.stdout.take().expect("it has an output"));
        let mut printed = Vec::new();
        while printed.last().is_none_or(|line| line != LAST) {
            let mut line = String::new();
            let read = within(process.0.id(), "the server is ready", || stdout.read_line(&mut line));
            assert!(read.expect("it goes on") > 0, "it ended: {printed:?}");
            printed.push(line.trim_end().to_owned());
        }
        Self { process, stdout, printed }
    }

    /// The text after a label.
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
fn a_person_sees_where_the_server_is_with_which_keys_and_that_nothing_will_survive() {
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
    assert_eq!(dev.fact("data  "), "temporary, deleted when the server stops; set --data-dir DIR to keep it");
    assert_eq!(dev.fact("clock"), "system");
    assert_eq!(dev.fact("contexts"), "dev-agent (in use), dev-person, dev-worker");
    assert_eq!(dev.fact("model"), "none: extraction and judging wait for workers");
    assert!(dev.printed.iter().all(|line| !line.contains('\u{1b}')), "{:?}", dev.printed);

    assert_eq!(scratch(home.path()).len(), 1);
    assert_eq!(dev.process.stop(), Some(0));
    assert_eq!(scratch(home.path()), [] as [PathBuf; 0], "what does not survive is gone");
}

/// Runs the program without a context.
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
        // A command that waits for a person ends with 7; all others succeed.
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
    let mut tells = || lines.any(|line| line.expect("UTF-8").contains("migration-check"));
    let found = within(watch.0.id(), "the watch goes on", &mut tells);
    assert!(found, "the watch tells what the answer led to");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_agents_context_holds_the_agents_key_alone() {
    let home = folder(&[("tmp/other.txt", "")]);
    let dev = Fresh::start(home.path());
    let contexts = home.path().join("contexts");
    let text = fs::read_to_string(contexts.join("dev-agent.json")).expect("a context");
    assert!(text.contains(dev.fact("agent key")), "{text}");
    for other in ["person key", "worker key"] {
        assert!(!text.contains(dev.fact(other)), "{text}");
    }
    let files =
        ["dev-agent.json", "dev-person.json", "dev-worker.json"].map(|name| mode(&contexts.join(name)));
    assert_eq!((files, mode(&contexts)), ([0o600; 3], 0o700));
    // By default the agent's context is used, and it gets no hint about other contexts.
    for (words, code) in [(&["list", "keys"][..], 6), (&["list", "keys", "--context", "dev-person"], 0)] {
        let ended = Ended::of(at_home(home.path()).args(words)).with_code(code);
        for taught in ["--context", "--as", "--api-key", "dev-person", "SWITCHWARD_"] {
            assert!(!ended.err.contains(taught), "{taught}: {ended:?}");
        }
    }
    let refused = Ended::of(at_home(home.path()).args(["list", "keys"]));
    assert!(refused.err.contains("allowed  admin"), "which role may: {refused:?}");
}

#[test]
fn a_second_server_leaves_the_contexts_of_the_first_alone() {
    let home = folder(&[("tmp/other.txt", "")]);
    let first = Fresh::start(home.path());
    let mut second = Fresh::start(home.path());
    let port = second.fact("address").rsplit(':').next().expect("a port").to_owned();
    assert_eq!(second.fact("contexts"), format!("dev-{port}-agent, dev-{port}-person, dev-{port}-worker"));
    let named = |line: &Vec<&str>| line.iter().any(|word| word.starts_with(&format!("dev-{port}-")));
    let (check, others) = (second.next()[0].clone(), second.next()[1..].to_vec());
    assert!(check[0] == "check" && others.iter().all(named), "its commands name its contexts: {others:?}");
    let address = |name: &str| {
        let shown = Ended::of(at_home(home.path()).args(["context", "show", name, "-o", "json"]));
        shown.with_code(0).json()["address"].as_str().expect("an address").to_owned()
    };
    assert_eq!(address("dev-agent"), first.fact("address"));
    assert_eq!(address(&format!("dev-{port}-agent")), second.fact("address"));
    assert_eq!(second.process.stop(), Some(0));
    let listed = Ended::of(at_home(home.path()).args(["context", "list", "-o", "json"])).with_code(0).json();
    assert_eq!(listed["contexts"].as_array().map(Vec::len), Some(3), "{listed}");
    Ended::of(at_home(home.path()).args(["list", "sessions"])).with_code(0);
}

#[test]
fn a_context_that_was_chosen_stays_in_use() {
    let home = folder(&[("tmp/other.txt", ""), ("key", "swk_1\n")]);
    let set = ["context", "set", "mine", "--address", "http://127.0.0.1:1", "--api-key-file", "key"];
    let shown = Ended::of(at_home(home.path()).args(set)).with_code(0);
    assert!(!shown.out.contains("swk_1"), "no key is shown: {shown:?}");
    Ended::of(at_home(home.path()).args(["context", "use", "mine"])).with_code(0);
    let dev = Fresh::start(home.path());
    assert_eq!(dev.fact("contexts"), "dev-agent, dev-person, dev-worker");
    assert!(dev.next().iter().any(|line| line.ends_with(&["--context", "dev-agent"])), "{:?}", dev.next());
    let shown = Ended::of(at_home(home.path()).args(["context", "show"])).with_code(0);
    assert!(shown.out.starts_with("context  mine\nstatus   in use\n"), "{shown:?}");
    Ended::of(at_home(home.path()).args(["context", "delete", "mine"])).with_code(0);
    Ended::of(at_home(home.path()).args(["context", "show"])).with_code(3);
    Ended::of(at_home(home.path()).args(["context", "use", "../mine"])).with_code(3);
}

/// Starts a server with a variable that it cannot use: what it says when it ends.
fn refused_with(home: &Path, environment: &[(&str, &str)]) -> Ended {
    let mut command = at_home(home);
    Ended::of(command.args(["dev", "--port", "0"]).envs(environment.iter().copied())).with_code(1)
}

#[test]
fn what_is_wrong_with_a_model_names_it_and_nothing_else() {
    let home = folder(&[("tmp/other.txt", "")]);
    let model = [
        ("SWITCHWARD_DELIVERY__MODEL__PROVIDER", "anthropic"),
        ("SWITCHWARD_DELIVERY__MODEL__BASE_URL", "https://api.anthropic.com"),
        ("SWITCHWARD_DELIVERY__MODEL__KEY_FILE", "model.key"),
        ("SWITCHWARD_DELIVERY__MODEL__NAME", "claude-haiku-4-5"),
    ];
    let missing = refused_with(home.path(), &model);
    let said = "error: the model claude-haiku-4-5 cannot be used: delivery.model.key_file: failed to read model.key: ";
    assert!(missing.err.starts_with(said), "{missing:?}");
    let wrong = [("SWITCHWARD_DELIVERY__MODEL__PROVIDER", "bard")];
    let wrong = refused_with(home.path(), &[&model[1..], &wrong].concat());
    assert!(
        wrong.err.contains("the provider of a model must be anthropic or openai, not \"bard\""),
        "{wrong:?}"
    );
    assert!(!wrong.err.contains("``"), "{wrong:?}");
    private(home.path().join("model.key"), "k");
    let mut command = at_home(home.path());
    command.envs(model).env("SWITCHWARD_DELIVERY__MODELS__NAME", "x").stderr(Stdio::piped());
    let mut dev = Fresh::of(command);
    assert_eq!(dev.fact("model"), "claude-haiku-4-5, at https://api.anthropic.com");
    assert_eq!(dev.process.stop(), Some(0));
    let mut log = String::new();
    dev.process.0.stderr.take().expect("a log").read_to_string(&mut log).expect("UTF-8");
    let warned =
        "SWITCHWARD_DELIVERY__MODELS__NAME (did you mean SWITCHWARD_DELIVERY__MODEL__NAME?) is not a setting";
    assert!(log.contains(warned), "{log}");
}

#[test]
fn a_server_that_is_stopped_while_it_starts_leaves_no_folder() {
    let home = folder(&[("tmp/other.txt", "")]);
    let child = at_home(home.path()).args(["dev", "--port", "0"]).stdout(Stdio::piped()).spawn();
    let mut process = Process(child.expect("the server starts"));
    while scratch(home.path()).is_empty() {
        assert!(process.0.try_wait().expect("it can be waited for").is_none(), "it ended");
    }
    assert_eq!(process.stop(), Some(0));
    assert_eq!(scratch(home.path()), [] as [PathBuf; 0]);
}

#[test]
fn a_server_that_was_stopped_says_so() {
    let home = folder(&[("tmp/other.txt", "")]);
    let mut dev = Fresh::start(home.path());
    assert_eq!(dev.process.stop(), Some(0));
    let mut rest = String::new();
    dev.stdout.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(rest, "stopped\n");
}
