//! Unreadable inputs, and servers other than Switchward: an exit code of the table, one line that says what is wrong, and no
//! panic.

use axum::{Router, http::StatusCode};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use tokio::runtime::Runtime;

use crate::support::{Dev, Ended, deploy_gate, folder, private, program};

/// The exit codes of all commands.
const CODES: [i32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 69];

/// Asserts that a command failed properly, with the same message for programs and people.
#[track_caller]
fn refused(mut command: impl FnMut() -> Command, code: i32, word: &str) {
    assert!(CODES.contains(&code));
    let ended = Ended::of(&mut command()).with_code(code);
    let lines: Vec<_> = ended.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains(word), "{word}: {ended:?}");
    assert!(!ended.err.contains("panicked") && ended.out.is_empty(), "{ended:?}");
    let others = ended.err.lines().filter(|line| !line.starts_with("error: ") && !line.starts_with("  "));
    assert_eq!(others.count(), 0, "{ended:?}");
    let ended = Ended::of(command().args(["-o", "json"])).with_code(code);
    assert!(
        ended.out.is_empty() && ended.error()["message"].as_str().is_some_and(|it| it.contains(word)),
        "{ended:?}"
    );
}

/// Unreadable files: the path, the exit code of a command that is given it, and a part of the message.
const UNREADABLE: [(&str, i32, &str); 4] = [
    ("/nowhere/x.json", 3, "/nowhere/x.json does not exist"),
    ("/dev/null/x.json", 3, "/dev/null/x.json does not exist"),
    ("/tmp", 2, "/tmp is a folder; name a file"),
    // A file that even root cannot read from its beginning.
    ("/proc/self/mem", 1, "failed to read /proc/self/mem: "),
];

#[cfg(target_os = "linux")]
#[test]
fn every_command_that_reads_reports_unreadable_input() {
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
        refused(|| words(&["server", "--config", config]), 1, "does not exist");
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
fn a_standard_input_that_is_closed_or_no_file_is_reported() {
    refused(|| shell("< /tmp", &["check", "-"]), 2, "- is a folder; name a file");
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
    // The client may be gone already.
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
fn a_server_that_is_not_switchward_is_reported() {
    let runtime = Runtime::new().expect("a runtime");
    for (address, code, word) in [
        (answering(b""), 69, "no response from the server"),
        (answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), 69, "no response from the server"),
        (answering(b"SSH-2.0-OpenSSH_9.2p1\r\n"), 69, "no response from the server"),
        (web(&runtime, StatusCode::OK), 69, "no response from the server"),
        (web(&runtime, StatusCode::NOT_FOUND), 69, "no response from the server"),
        (web(&runtime, StatusCode::BAD_GATEWAY), 69, "no response from the server"),
        (older(&runtime), 1, "not implemented"),
    ] {
        let server = ["--address", &address, "--api-key", "swk_1", "--timeout", "5s"];
        refused(|| words(&[&["list", "sessions"], &server[..]].concat()), code, word);
        refused(|| words(&[&["start", "deploy-gate"], &server[..]].concat()), code, word);
        let ended = Ended::of(&mut words(&[&["list", "gates"], &server[..]].concat()));
        assert!(ended.err.contains("is it a Switchward server"), "{ended:?}");
    }
}

#[test]
fn a_watch_of_what_never_sent_anything_gives_up_as_soon_as_a_call() {
    let address = answering(b"");
    refused(
        || words(&["watch", "release-42", "--address", &address, "--api-key", "swk_1"]),
        69,
        "no response from the server",
    );
}
