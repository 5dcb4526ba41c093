//! Unreadable inputs, and servers other than Switchward: an exit code of the table, one line that says what is wrong, and no
//! panic.

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, Response, StatusCode},
};
use prost::Message as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use switchward_api::v1;
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
            &["start", "deploy-gate", "--input", &value][..],
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
            // A folder is what `check` and `deploy` may be given.
            refused(|| words(&["check", path]), code, word);
            let deploy = || {
                let mut command = dev.command();
                command.args(["deploy", path]);
                command
            };
            refused(deploy, code, word);
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

fn listening(runtime: &Runtime) -> (tokio::net::TcpListener, String) {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, address)
}

/// A web server that answers every request, also over HTTP/2, with this status and a page.
fn web(runtime: &Runtime, status: StatusCode) -> String {
    let (listener, address) = listening(runtime);
    let app = Router::new().fallback(move || async move { (status, "<html>a page</html>") });
    runtime.spawn(async move { axum::serve(listener, app).await });
    address
}

/// A gRPC server that has none of the methods.
fn older(runtime: &Runtime) -> String {
    let (listener, address) = listening(runtime);
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

/// Answers the calls of one connection: a person is asked about each tool call, and all other calls are refused.
async fn asks(stream: tokio::net::TcpStream) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            while body.data().await.is_some() {}
            let mut answer = Response::new(());
            answer.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
            if !head.uri.path().ends_with("/AuthorizeToolCall") {
                // PERMISSION_DENIED, in the head.
                answer.headers_mut().insert("grpc-status", HeaderValue::from_static("7"));
                let _sent = respond.send_response(answer, true).expect("the client waits");
                return;
            }
            let reply = v1::AuthorizeToolCallResponse {
                decision: v1::ToolDecision::Ask.into(),
                gate: "tenants/acme/gates/gat_1".to_owned(),
                ..v1::AuthorizeToolCallResponse::default()
            };
            let reply = reply.encode_to_vec();
            let length = u32::try_from(reply.len()).expect("it is short").to_be_bytes();
            let mut sending = respond.send_response(answer, false).expect("the client waits");
            sending.send_data([&[0][..], &length[..], &reply[..]].concat().into(), false).expect("it fits");
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            sending.send_trailers(trailers).expect("the client waits");
        });
    }
}

#[test]
fn a_call_waits_for_a_person_also_if_the_gate_is_not_shown() {
    let runtime = Runtime::new().expect("a runtime");
    let (listener, address) = listening(&runtime);
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(asks(stream));
        }
    });
    let call = ["authorize", "release-42", "bash", "--address", &address, "--api-key", "swk_1"];
    let ended = Ended::of(&mut words(&call)).with_code(7);
    assert!(ended.out.contains("gat_1") && !ended.err.contains("error"), "{ended:?}");
}
