//! The program, and a development server of it.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use switchward_testkit::{PATIENCE, finished, within};
use tempfile::TempDir;

/// How long is looked for what must become so.
const UNTIL_MAX: Duration = Duration::from_secs(60);

/// The program, without inherited environment variables that could affect it.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchward"));
    for name in ["CLICOLOR_FORCE", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    let meant =
        |name: &OsStr| ["SWITCHWARD_", "OTEL_"].iter().any(|it| name.to_string_lossy().starts_with(it));
    for (name, _) in std::env::vars_os().filter(|(name, _)| meant(name)) {
        command.env_remove(name);
    }
    command.env("SWITCHWARD_CONTEXTS", "/nowhere/contexts").stdin(Stdio::null());
    command
}

/// Writes a file that only its owner may read.
pub(crate) fn private(path: impl AsRef<Path>, text: &str) {
    let mut options = std::fs::File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
}

/// Sends a process SIGHUP.
pub(crate) fn hang_up(process: u32) {
    let sent = Command::new("kill").args(["-HUP", &process.to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::printing_to(Stdio::piped(), command)
    }

    /// The same, with another standard output.
    pub(crate) fn printing_to(out: impl Into<Stdio>, command: &mut Command) -> Self {
        Self::read(command.stdout(out).stderr(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// Waits for the end of a command with pipes.
    fn read(child: Child) -> Self {
        let output = finished(child);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is printed is UTF-8");
        Self {
            code: output.status.code().expect("the program is not killed"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// The one line of JSON on the standard output.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of JSON on the standard output.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        self.out.lines().map(line).collect()
    }

    /// The `error` field of the JSON on the standard error.
    pub(crate) fn error(&self) -> Value {
        let output: Value =
            serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        output["error"].clone()
    }

    /// The same, after making sure of the exit code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// Runs the program, without a server.
pub(crate) fn run<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Ended {
    Ended::of(program().args(words))
}

/// Runs the program with this on its standard input.
pub(crate) fn run_with_input(words: &[&str], input: &str) -> Ended {
    let mut child = program()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    stdin.write_all(input.as_bytes()).expect("it reads its input");
    drop(stdin);
    Ended::read(child)
}

/// A path below the repository's root.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().expect("the file is there")
}

/// The deploy gate of the gallery.
pub(crate) fn deploy_gate() -> String {
    repository("tests/gallery/deploy-gate/deploy-gate.json").to_str().expect("a plain path").to_owned()
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    folder
}

/// A process of the program. Dropping it kills it.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Asks it to stop, as a service manager does.
    pub(crate) fn terminate(&self) {
        let kill = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(kill.expect("there is a kill").success());
    }

    /// Asks it to stop, and waits until it has: its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.code()
    }

    /// Waits until it has ended: its exit code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        within(self.0.id(), "the process ends", || self.0.wait()).expect("it ends").code()
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A clock that only moves on command.
const MANUAL: [&str; 2] = ["--clock", "manual"];

/// A running development server with a manual clock. Dropping it kills it.
pub(crate) struct Dev {
    folder: TempDir,
    process: Process,
    /// Held open, so that the server may go on writing.
    _stdout: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

impl Dev {
    /// Starts a server on a folder of its own, and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn start_with(environment: &[(&str, &str)]) -> Self {
        Self::start_on(&MANUAL, environment)
    }

    /// The same with a clock as these words say.
    pub(crate) fn start_on(clock: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (process, stdout, ready) = server(folder.path(), "0", clock, environment);
        Self { folder, process, _stdout: stdout, ready }
    }

    /// Sends a request over plain HTTP, as any program can: the head and the body of the answer.
    fn http(&self, line: &str, headers: &[(&str, &str)], body: &str) -> (String, String) {
        self.http_as(self.address().strip_prefix("http://").expect("plain HTTP"), line, headers, body)
    }

    /// The same for a server of another name.
    pub(crate) fn http_as(
        &self,
        host: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (String, String) {
        let address = self.address().strip_prefix("http://").expect("plain HTTP");
        ask(address, host, line, headers, body)
    }

    /// Fetches a page. Returns the answer's head in lower case, and its body.
    pub(crate) fn page(&self, path: &str) -> (String, String) {
        self.http(&format!("GET {path}"), &[], "")
    }

    /// Sends a CORS preflight request. Returns the answer's head in lower case.
    pub(crate) fn options(&self, path: &str, headers: &[(&str, &str)]) -> String {
        self.http(&format!("OPTIONS {path}"), headers, "").0
    }

    /// Fetches the metrics page. Returns the answer's head in lower case, and its body.
    pub(crate) fn metrics(&self) -> (String, String) {
        let page = self.ready["metrics"].as_str().expect("the ready line says where it is");
        let host = page.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let host = host.expect("plain HTTP");
        ask(host, host, "GET /metrics", &[], "")
    }

    /// Sends this body to a page. Returns the answer's head in lower case, and its body.
    pub(crate) fn send(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (String, String) {
        self.http(&format!("POST {path}"), headers, body)
    }

    /// Calls a method with JSON over plain HTTP, with these headers beside the usual ones.
    pub(crate) fn post_with(&self, method: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let (head, body) = self.http(&format!("POST /switchward.v1.{method}"), &headers, &body.to_string());
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n{body}"))
    }

    /// Calls a method with JSON over plain HTTP under a key.
    pub(crate) fn post(&self, method: &str, key: &str, body: &Value) -> Value {
        self.post_with(method, &[("authorization", &format!("Bearer {key}"))], body)
    }

    /// Kills the server at once, and starts it again on the same folder and the same port.
    pub(crate) fn restart(&mut self) {
        let port = self.address().rsplit(':').next().expect("an address has a port").to_owned();
        self.process.kill();
        (self.process, self._stdout, self.ready) = server(self.folder.path(), &port, &MANUAL, &[]);
    }

    /// Asks the server to stop, and waits until it has: its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.process.stop()
    }

    /// The same, and keeps its folder.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.process.stop()
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// `http://127.0.0.1:7400`.
    pub(crate) fn address(&self) -> &str {
        self.ready["address"].as_str().expect("the ready line has an address")
    }

    /// A command with the person's context.
    pub(crate) fn command(&self) -> Command {
        let mut command = program();
        command.env("SWITCHWARD_CONTEXTS", self.folder.path().join("contexts"));
        command.env("SWITCHWARD_CONTEXT", "dev-person");
        command
    }

    /// Runs a command against the server, with the usual context for it; `--as` names another one.
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        let at = words.iter().position(|word| *word == "--as");
        let who = at.and_then(|at| words.get(at + 1)).copied().unwrap_or_else(|| usually(words));
        let mut words = words.to_vec();
        words.drain(at.map_or(0..0, |at| at..at + 2));
        Ended::of(self.command().env("SWITCHWARD_CONTEXT", format!("dev-{who}")).args(words))
    }

    /// Answers a mail as its recipient, by the form on its page. Returns the answer's head in lower case. `mail` is its
    /// entry in `/mail.json`.
    pub(crate) fn reply(&self, mail: &Value, typed: &str) -> String {
        let page = mail["page"].as_str().expect("a mail has a page");
        let form = form_token(&self.page(page).1);
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.send(&format!("{page}/reply"), &[kind], &format!("token={form}&{typed}")).0
    }

    /// The mails so far, the newest first.
    pub(crate) fn mails(&self) -> Vec<Value> {
        serde_json::from_str(&self.page("/mail.json").1).expect("JSON")
    }

    /// Looks until it is so.
    ///
    /// # Panics
    /// It does not become so for a minute.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, so: impl Fn() -> bool) {
        let deadline = Instant::now() + UNTIL_MAX;
        while !so() {
            assert!(Instant::now() < deadline, "not so for {UNTIL_MAX:?}: {what}");
        }
    }

    /// Runs a command against the server and reads its one line of JSON.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        self.run(&[words, &["-o", "json"]].concat()).with_code(0).json()
    }
}

/// The usual context of a command.
fn usually(words: &[&str]) -> &'static str {
    const OF_AGENTS: [&str; 9] =
        ["start", "answer", "turn", "record", "signal", "switch", "retry", "authorize", "report"];
    match words {
        ["work", ..] => "worker",
        ["mail", "send", ..] => "agent",
        [verb, ..] if OF_AGENTS.contains(verb) => "agent",
        _ => "person",
    }
}

/// The token that the form of a page holds.
pub(crate) fn form_token(page: &str) -> String {
    let rest = page.split("name=\"token\" value=\"").nth(1).unwrap_or_else(|| panic!("no form: {page}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// A server that is ready, its output, and its first line.
fn server(
    folder: &Path,
    port: &str,
    clock: &[&str],
    environment: &[(&str, &str)],
) -> (Process, BufReader<ChildStdout>, Value) {
    let child = program()
        .args(["dev", "--port", port, "-o", "json", "--data-dir"])
        .arg(folder.join("data"))
        .args(clock)
        .env("SWITCHWARD_CONTEXTS", folder.join("contexts"))
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut process = Process(child);
    let mut stdout = BufReader::new(process.0.stdout.take().expect("it has an output"));
    let mut line = String::new();
    within(process.0.id(), "the server is ready", || stdout.read_line(&mut line)).expect("it is ready");
    let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    (process, stdout, ready)
}

/// Sends a request over plain HTTP. Returns the answer's head in lower case, and its body.
pub(crate) fn ask(
    address: &str,
    host: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (String, String) {
    let (head, body) = exchange(address, host, line, headers, body);
    (head.to_ascii_lowercase(), body)
}

/// The same with the head as it is.
pub(crate) fn exchange(
    address: &str,
    host: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    (head.to_owned(), body.to_owned())
}
