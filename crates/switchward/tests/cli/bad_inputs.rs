//! What cannot be read, and what answers and is no Switchward: an exit code of the table, one line that says what is
//! wrong, and no panic.

use axum::Router;
use axum::http::StatusCode;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use tokio::runtime::Runtime;

use crate::support::{Dev, Ended, deploy_gate, folder, private, program};

/// What every command may end with.
const CODES: [i32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 69];

/// Makes sure that a command failed in order, and that a program is told the same as a person.
#[track_caller]
fn refused(mut command: impl FnMut() -> Command, code: i32, word: &str) {
    assert!(CODES.contains(&code));
    let told = Ended::of(&mut command()).with_code(code);
    let lines: Vec<_> = told.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains(word), "{word}: {told:?}");
    assert!(!told.err.contains("panicked") && told.out.is_empty(), "{told:?}");
    let others = told.err.lines().filter(|line| !line.starts_with("error: ") && !line.starts_with("  "));
    assert_eq!(others.count(), 0, "{told:?}");
    let told = Ended::of(command().args(["-o", "json"])).with_code(code);
    assert!(
        told.out.is_empty() && told.error()["message"].as_str().is_some_and(|it| it.contains(word)),
        "{told:?}"
    );
}

/// What cannot be read as a file: its path, how a command ends that is given it, and a word of what is told.
const UNREADABLE: [(&str, i32, &str); 4] = [
    ("/nowhere/x.json", 3, "/nowhere/x.json does not exist"),
    ("/dev/null/x.json", 3, "/dev/null/x.json does not exist"),
    ("/tmp", 2, "/tmp is a folder, and a file is wanted"),
    // A file that nobody may read from its beginning, root neither.
    ("/proc/self/mem", 1, "failed to read /proc/self/mem: "),
];

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_read_is_told_by_every_command_that_reads() {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    for (path, code, word) in UNREADABLE {
        let value = format!("@{path}");
        for words in [
            &["deploy", path][..],
            &["start", "deploy-gate", "--input", &value],
            &["authorize", "release-42", "bash", "--args", &value],
            &["explain", "release-42", "bash", "--args", &value],
            &["work", "complete", "wrk_1_1", "1.0", "--result", &value],
            &["list", "sessions", "--ca", path, "--address", "https://127.0.0.1:1", "--api-key", "swk_1"],
        ] {
            let command = || {
                let mut command = dev.command();
                command.args(words);
                command
            };
            refused(command, code, word);
        }
        if path != "/tmp" {
            // A folder is what `check` may be given.
            refused(|| words(&["check", path]), code, word);
        }
    }
    assert_eq!(dev.json(&["list", "decisions", "release-42"]), serde_json::json!({}), "nothing was asked");
}

fn words(words: &[&str]) -> Command {
    let mut command = program();
    command.args(words);
    command
}

#[test]
fn what_a_server_cannot_use_ends_it_before_it_begins() {
    let folder = folder(&[]);
    private(folder.path().join("file"), "");
    let at = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (here, file, missing) = (at(""), at("file"), at("missing"));
    for config in [&here, &missing] {
        refused(|| words(&["server", "--config", config]), 1, "there is no configuration file");
    }
    refused(|| words(&["server"]), 1, "data_dir");
    refused(|| words(&["server", "--data-dir", &file, "--listen", "127.0.0.1:0"]), 1, &file);
    refused(|| words(&["dev", "--data-dir", &file, "--port", "0"]), 1, &file);
    for tls in [&here, &missing, &file] {
        let flags = ["server", "--data-dir", &missing, "--tls-cert", tls, "--tls-key", tls];
        refused(|| words(&flags), 1, "tls");
    }
    let with_contexts = |contexts: &str| {
        let mut command = words(&["list", "sessions", "--context", "mine"]);
        command.env("SWITCHWARD_CONTEXTS", contexts);
        command
    };
    refused(|| with_contexts(&file), 1, "failed to read");
    refused(|| with_contexts(&here), 3, "there is no context");
}

/// The program, started by a shell that changes its standard input.
fn shell(redirection: &str, words: &[&str]) -> Command {
    let this = program();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")]);
    command.arg(this.get_program()).args(words);
    for (name, value) in this.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn a_standard_input_that_is_closed_or_no_file_is_told() {
    refused(|| shell("< /tmp", &["check", "-"]), 2, "- is a folder, and a file is wanted");
    let closed = Ended::of(&mut shell("<&-", &["check", "-"])).with_code(5);
    assert!(closed.out.starts_with("error[SW") && closed.err.is_empty(), "nothing is no process: {closed:?}");
    let closed = Ended::of(&mut shell("<&- >&-", &["check", "-"])).with_code(5);
    assert_eq!((closed.out.as_str(), closed.err.as_str()), ("", ""));
}

/// Something that answers every connection with these bytes, or not at all, and closes it.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    // It goes with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.expect("a connection"), bytes);
        }
    });
    address
}

fn answer(mut stream: TcpStream, bytes: &[u8]) {
    let mut asked = [0; 1024];
    // Whoever asked may be gone already.
    let _read = stream.read(&mut asked);
    let _written = stream.write_all(bytes);
}

/// A web server that answers every request, also over HTTP/2, with this status and a page.
fn web(runtime: &Runtime, status: StatusCode) -> String {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let app = Router::new().fallback(move || async move { (status, "<html>a page</html>") });
    runtime.spawn(async move { axum::serve(listener, app).await });
    address
}

/// A gRPC server that has none of the methods.
fn older(runtime: &Runtime) -> String {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let routes = tonic::service::Routes::default();
    runtime.spawn(tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(incoming));
    address
}

#[test]
fn what_answers_and_is_no_switchward_is_told() {
    let runtime = Runtime::new().expect("a runtime");
    for (address, code, word) in [
        (answering(b""), 69, "no answer came"),
        (answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), 69, "no answer came"),
        (answering(b"SSH-2.0-OpenSSH_9.2p1\r\n"), 69, "no answer came"),
        (web(&runtime, StatusCode::OK), 69, "no answer came"),
        (web(&runtime, StatusCode::NOT_FOUND), 69, "no answer came"),
        (web(&runtime, StatusCode::BAD_GATEWAY), 69, "no answer came"),
        (older(&runtime), 1, "not implemented"),
    ] {
        let server = ["--address", &address, "--api-key", "swk_1", "--timeout", "5s"];
        refused(|| words(&[&["list", "sessions"], &server[..]].concat()), code, word);
        refused(|| words(&[&["start", "deploy-gate"], &server[..]].concat()), code, word);
        let told = Ended::of(&mut words(&[&["list", "gates"], &server[..]].concat()));
        assert!(told.err.contains("is it a Switchward server"), "{told:?}");
    }
}

#[test]
fn a_watch_of_what_never_sent_anything_gives_up_as_soon_as_a_call() {
    let address = answering(b"");
    refused(
        || words(&["watch", "release-42", "--address", &address, "--api-key", "swk_1"]),
        69,
        "no answer came",
    );
}
