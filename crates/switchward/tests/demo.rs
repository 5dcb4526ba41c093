//! The demo, and whether it shows what the server recorded.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};
use switchward_testkit::{finished, within};
use tempfile::TempDir;

/// How long a process may take to be gone that the system kills.
const GONE_MAX: Duration = Duration::from_secs(60);

/// The events that a caller's own step leaves; all others follow from one of these.
const STEPS: [&str; 8] = [
    "session.started",
    "session.answered",
    "session.completed",
    "policy.allowed",
    "policy.denied",
    "policy.asked",
    "approval.decided",
    "approval.discussed",
];

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchward"));
    for name in ["SWITCHWARD_ADDRESS", "SWITCHWARD_API_KEY", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("SWITCHWARD_CONTEXTS", folder.join("contexts")).stdin(Stdio::null());
    command
}

fn demo(folder: &Path) -> Output {
    let mut command = program(folder);
    command
        .args(["demo", "--data-dir"])
        .arg(folder.join("data"))
        .arg("--steps-json")
        .arg(folder.join("steps.json"));
    output(&mut command)
}

/// Runs a command to its end.
fn output(command: &mut Command) -> Output {
    finished(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts"))
}

/// A killed process.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// The history of a session in a data folder, read through a server.
fn history(folder: &Path, session: &str) -> Vec<Value> {
    let mut dev = program(folder);
    dev.args(["dev", "--port", "0", "--clock", "manual", "-o", "json", "--data-dir"])
        .arg(folder.join("data"));
    let mut dev = Killed(dev.stdout(Stdio::piped()).spawn().expect("the server starts"));
    let mut stdout = BufReader::new(dev.0.stdout.take().expect("it has an output"));
    let read = within(dev.0.id(), "the server is ready", || stdout.read_line(&mut String::new()));
    assert!(read.expect("it is ready") > 0, "the server ended");
    let mut list = program(folder);
    list.args(["list", "events", session, "-o", "jsonl", "--context", "dev-person"]);
    let listed = output(&mut list);
    assert!(listed.status.success(), "{listed:?}");
    let lines = String::from_utf8(listed.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn what_is_shown_is_what_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = demo(folder.path());
    assert!(ended.status.success(), "{ended:?}");
    let steps = std::fs::read(folder.path().join("steps.json")).expect("the steps are written");
    let steps: Value = serde_json::from_slice(&steps).expect("JSON");
    let session = steps["session"].as_str().expect("the steps are of a session");
    let shown: Vec<&Value> = steps["steps"].as_array().expect("a list").iter().collect();
    let (shown, refused): (Vec<&Value>, Vec<&Value>) =
        shown.into_iter().partition(|step| step["recorded"] == true);

    let history = history(folder.path(), session);
    let own = |event: &&Value| event["type"].as_str().is_some_and(|kind| STEPS.contains(&kind));
    let recorded: Vec<&Value> = history.iter().filter(own).collect();
    assert_eq!(recorded.len(), shown.len(), "told: {shown:#?}\nrecorded: {recorded:#?}");
    for (shown, recorded) in shown.iter().zip(&recorded) {
        assert_eq!((&shown["type"], &shown["by"]), (&recorded["type"], &recorded["by"]));
        for (name, value) in shown["data"].as_object().expect("details") {
            assert_eq!(recorded["data"][name], *value, "{name} of {shown} and {recorded}");
        }
    }
    let reasons: Vec<&str> = refused.iter().filter_map(|step| step["data"]["reason"].as_str()).collect();
    assert_eq!(reasons, ["ROLE_NOT_ALLOWED", "ANSWER_NOT_ALLOWED"]);
    let bash = |step: &&&Value| step["data"]["capability"] == "bash" && step["type"] == "policy.allowed";
    assert_eq!(shown.iter().filter(bash).count(), 53, "50 in the first hour, 3 in the second");
}

#[test]
fn a_program_reads_the_steps_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = |form: &str| {
        let ended = output(program(folder.path()).args(["demo", "-o", form]));
        assert!(ended.status.success(), "{ended:?}");
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>()
    };
    let (whole, each) = (lines("json"), lines("jsonl"));
    assert_eq!(whole.len(), 1, "{whole:?}");
    assert!(whole[0]["session"].as_str().is_some_and(|session| session.starts_with("ses_")), "{whole:?}");
    let kinds = |steps: &[Value]| steps.iter().map(|step| step["type"].clone()).collect::<Vec<_>>();
    assert_eq!(kinds(whole[0]["steps"].as_array().expect("a list")), kinds(&each));
    assert!(kinds(&each).contains(&"session.completed".into()), "{each:?}");
}

#[test]
fn it_is_printed_plainly_without_a_terminal_and_touches_no_context() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = demo(folder.path());
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(!text.contains('\u{1b}'), "{text}");
    for part in [
        "1032 bytes, stored unchanged",
        "denied: RATE_LIMITED, retry in 1h",
        "a person is asked; the agent waits",
        "allowed; the approval is used",
        "refused: ANSWER_NOT_ALLOWED; allowed: yes, no",
        "SIGKILL",
        "session.completed",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(String::from_utf8(ended.stderr).expect("UTF-8"), "");
    assert!(
        !folder.path().join("contexts").exists(),
        "the contexts of the person who watches are left alone"
    );
}

/// A demo that plays, with its temporary files in a folder of their own.
struct Playing {
    demo: Child,
    stdout: BufReader<ChildStdout>,
    scratch: PathBuf,
    folder: TempDir,
}

impl Playing {
    /// Starts the demo.
    fn begin() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = folder.path().join("scratch");
        std::fs::create_dir(&scratch).expect("a folder");
        let mut demo = program(folder.path());
        demo.arg("demo").env("TMPDIR", &scratch).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut demo = demo.spawn().expect("the program starts");
        let stdout = BufReader::new(demo.stdout.take().expect("it has an output"));
        Self { demo, stdout, scratch, folder }
    }

    /// Starts the demo, and waits until its server has answered.
    fn start() -> Self {
        let mut playing = Self::begin();
        let Self { demo, stdout, .. } = &mut playing;
        within(demo.id(), "the server has answered", || {
            let mut line = String::new();
            while !line.contains("stored unchanged") {
                line.clear();
                assert!(stdout.read_line(&mut line).expect("text") > 0, "the demo ended");
            }
        });
        playing
    }

    /// Sends it a signal, and waits for its end. Its folder stays.
    fn end(self, signal: &str) -> (Output, PathBuf, TempDir) {
        let Self { demo, mut stdout, scratch, folder } = self;
        let sent = Command::new("kill").args([signal, &demo.id().to_string()]).status();
        assert!(sent.expect("there is kill").success(), "no signal");
        let rest = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let ended = finished(demo);
        rest.join().expect("a reader").expect("text");
        (ended, scratch, folder)
    }
}

/// The processes in whose command line this path is.
fn processes_of(folder: &Path) -> usize {
    let path = folder.to_str().expect("a plain path");
    let words = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let all = std::fs::read_dir("/proc").expect("Linux").flatten().map(words);
    all.filter(|words| String::from_utf8_lossy(words).contains(path)).count()
}

/// Returns true if these tests, and what they start, were started so that they outlive their terminal.
fn outlive_terminals() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("Linux says it");
    u64::from_str_radix(ignored.trim(), 16).expect("bits") & 1 == 1
}

/// A signal ends the demo, its server and its folder: ctrl-c, that of a service manager, and a terminal that closes.
#[test]
fn a_signal_ends_the_demo_with_its_server() {
    let signals = ["-INT", "-TERM", "-HUP"];
    for signal in signals.into_iter().filter(|signal| *signal != "-HUP" || !outlive_terminals()) {
        let (ended, scratch, _folder) = Playing::start().end(signal);
        let errors = String::from_utf8(ended.stderr).expect("UTF-8");
        assert!(!ended.status.success() && errors.contains("interrupted"), "{signal}: {errors}");
        assert_eq!(processes_of(&scratch), 0, "{signal}: a server lives on");
        assert_eq!(std::fs::read_dir(&scratch).expect("a folder").count(), 0, "{signal}: a folder is left");
    }
}

/// The folder is gone, too, if the server still makes its files.
#[test]
fn a_signal_ends_the_demo_whose_server_is_not_ready_yet() {
    let mut playing = Playing::begin();
    while processes_of(&playing.scratch) == 0 {
        assert!(playing.demo.try_wait().expect("it can be waited for").is_none(), "the demo ended");
    }
    let (ended, scratch, _folder) = playing.end("-TERM");
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(processes_of(&scratch), 0, "a server lives on");
    assert_eq!(std::fs::read_dir(&scratch).expect("a folder").count(), 0, "a folder is left");
}

/// A demo that is killed cannot stop its server, which the system then kills.
#[test]
fn the_server_of_a_demo_does_not_outlive_it() {
    let playing = Playing::start();
    assert_eq!(processes_of(&playing.scratch), 1, "its server");
    let (ended, scratch, _folder) = playing.end("-KILL");
    assert_eq!(ended.status.code(), None, "{ended:?}");
    let until = Instant::now() + GONE_MAX;
    while processes_of(&scratch) > 0 {
        assert!(Instant::now() < until, "a server lives on");
        std::thread::yield_now();
    }
}

/// What the demo of a cluster prints, without its figures.
#[test]
fn an_approval_by_mail_outlives_two_leaders_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a folder");
    let ended = output(program(folder.path()).args(["demo", "cluster"]).env("TMPDIR", &scratch));
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    let errors = String::from_utf8(ended.stderr).expect("UTF-8");
    assert!(ended.status.success() && errors.is_empty(), "{text}\n{errors}");
    for part in [
        "1. Three servers form a cluster",
        "starts a session at server",
        "a person is asked; the agent waits",
        "records the delivery",
        "killed while it leads",
        "allowed; no write was accepted for ",
        "sent once; no other server sent it again",
        "restarts on the same folder",
        "\"Approved, thanks!\" decides the gate",
        "allowed; the approval is used",
        "8 of 8, each recorded once",
        "each sent once",
        "approval.decided",
        "session.completed",
        "All servers have stopped, and their folder is deleted.",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(text.matches("gets SIGKILL").count(), 2, "{text}");
    assert_eq!(text.matches("leads now").count(), 2, "{text}");
    assert_eq!(text.matches(", the same").count(), 3, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(std::fs::read_dir(&scratch).expect("a folder").count(), 0, "a temporary folder is left");
    assert!(
        !folder.path().join("contexts").exists(),
        "the contexts of the person who watches are left alone"
    );
}

/// A signal ends the demo, its servers and its folder, also while they start.
#[test]
fn a_signal_ends_the_demo_of_a_cluster_with_all_its_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a folder");
    let mut demo = program(folder.path());
    demo.args(["demo", "cluster"]).env("TMPDIR", &scratch).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = demo.spawn().expect("the program starts");
    let mut stdout = BufReader::new(demo.stdout.take().expect("it has an output"));
    let id = demo.id();
    let read = within(id, "the first server is ready", || {
        let mut line = String::new();
        while !line.contains("ready after") {
            line.clear();
            assert!(stdout.read_line(&mut line).expect("text") > 0, "the demo ended");
        }
        line
    });
    assert!(read.contains("server 1"), "{read}");
    let sent = Command::new("kill").args(["-INT", &id.to_string()]).status().expect("there is kill");
    assert!(sent.success(), "no signal");
    let rest = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let ended = finished(demo);
    rest.join().expect("a reader").expect("text");
    let errors = String::from_utf8(ended.stderr).expect("UTF-8");
    assert!(!ended.status.success() && errors.contains("interrupted"), "{errors}");
    assert_eq!(std::fs::read_dir(&scratch).expect("a folder").count(), 0, "a temporary folder is left");
}
