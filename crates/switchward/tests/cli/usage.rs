//! Wrong commands, and commands without a server.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::support::{Ended, folder, private, program, run};

#[test]
fn help_is_no_error_and_nothing_is() {
    let ended = run(["--help"]).with_code(0);
    for word in [
        "check",
        "graph",
        "simulate",
        "dev",
        "server",
        "demo",
        "deploy",
        "start",
        "answer",
        "authorize",
        "decide",
        "raise",
        "get",
        "list",
        "watch",
        "work",
    ] {
        assert!(ended.out.contains(&format!("\n  {word} ")), "{word} is not in the help");
    }
    run(["--version"]).with_code(0);
    run::<&str>([]).with_code(2);
}

#[test]
fn each_command_has_its_help() {
    let commands = "check graph simulate dev server demo deploy activate start answer authorize report decide raise pause \
                    resume cancel session retention export get list watch explain clock keys tenant work";
    for command in commands.split_whitespace() {
        let ended = run([command, "--help"]).with_code(0);
        assert!(ended.out.contains(&format!("Usage: switchward {command}")), "{command}: {ended:?}");
        assert_eq!(run(["help", command]).with_code(0).out, ended.out);
    }
    for list in ["sessions", "gates", "definitions", "versions", "events", "decisions", "keys"] {
        let ended = run(["help", "list", list]).with_code(0);
        assert!(ended.out.contains(&format!("Usage: switchward list {list}")), "{list}: {ended:?}");
    }
    for work in ["poll", "complete", "fail", "release", "extend"] {
        let ended = run(["help", "work", work]).with_code(0);
        assert!(ended.out.contains(&format!("Usage: switchward work {work}")), "{work}: {ended:?}");
    }
}

#[test]
fn what_is_typed_wrongly_ends_with_2() {
    for words in [
        "dance",
        "check",
        "check x --dance",
        "start",
        "decide gat_1 maybe",
        "raise ses_1",
        "raise ses_1 --cost-usd 1 --tokens 2",
        "clock advance soon",
        "dev --shards 0",
        "dev --port 65536",
        "list",
        "list dances",
        "get x -o xml",
        "start x --label nothing",
        "clock --timeout 0s",
        "clock --context",
        "work",
        "work dance",
        "work poll --kind dance",
        "work poll --max 0",
        "work poll --max 101",
        "work poll --wait 0s",
        "work poll --lease soon",
        "work complete wrk_1",
        "work complete wrk_1 1.0 --tokens many",
        "work fail wrk_1",
        "work release",
        "work extend wrk_1 1.0 --lease",
    ] {
        let ended = run(words.split(' ')).with_code(2);
        assert!(ended.err.starts_with("error: ") || ended.err.contains("Usage:"), "{words}: {ended:?}");
        assert_eq!(ended.out, "", "{words}");
    }
}

#[test]
fn a_path_that_is_no_text_is_printed_as_far_as_it_is() {
    let folder = folder(&[]);
    let ring = folder.path().join(OsStr::from_bytes(b"ring\xff")).into_os_string();
    for verb in ["create", "rotate"] {
        let words: [OsString; 5] = ["secrets".into(), verb.into(), ring.clone(), "-o".into(), "json".into()];
        let ended = run(words).with_code(0);
        let shown = ended.json()["file"].as_str().is_some_and(|file| file.ends_with("ring\u{fffd}"));
        assert!(shown, "{ended:?}");
    }
}

#[test]
fn a_near_miss_is_suggested() {
    let ended = run(["autorize", "ses_1", "bash"]).with_code(2);
    assert!(ended.err.contains("authorize"), "{ended:?}");
}

#[test]
fn without_a_server_the_next_step_is_shown() {
    let ended = run(["list", "sessions"]).with_code(69);
    assert!(ended.err.starts_with("error: no server address is set\n"), "{ended:?}");
    assert!(ended.err.contains("switchward dev") && ended.err.contains("--address"), "{ended:?}");
}

/// An address without a listener: systems do not assign this port automatically.
const DESERTED: &str = "http://127.0.0.1:1";

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let words = ["get", "x", "--api-key", "swk_1", "--address", DESERTED];
    let ended = run(words).with_code(69);
    assert!(
        ended.err.starts_with(&format!("error: no response from the server at {DESERTED}: ")),
        "{ended:?}"
    );
    assert!(ended.err.contains("switchward dev") && ended.err.contains("--address"), "{ended:?}");
    let error = run(words.iter().chain(&["-o", "json"])).with_code(69).error();
    assert_eq!(error["code"], "unavailable");
    assert_eq!(error["next"].as_array().map(Vec::len), Some(2), "{error}");
}

#[test]
fn the_environment_says_where_and_as_whom() {
    let ended = Ended::of(
        program().args(["get", "x"]).env("SWITCHWARD_ADDRESS", DESERTED).env("SWITCHWARD_API_KEY", "swk_1"),
    );
    assert!(ended.with_code(69).err.contains(DESERTED));
}

#[test]
fn an_address_and_a_key_must_be_ones() {
    let ended = run(["get", "x", "--address", "127.0.0.1:7400", "--api-key", "swk_1"]).with_code(2);
    assert!(ended.err.contains("http://HOST:PORT"), "{ended:?}");
    let ended = run(["get", "x", "--address", "http://127.0.0.1:1", "--api-key", "a\nb"]).with_code(2);
    assert!(ended.err.contains("characters that are not allowed in a key"), "{ended:?}");
    let ended = run(["get", "x", "--address", "http://127.0.0.1:1"]).with_code(2);
    assert!(ended.err.contains("no API key is set for http://127.0.0.1:1"), "{ended:?}");
    assert!(ended.err.contains("SWITCHWARD_API_KEY"), "{ended:?}");
}

#[test]
fn an_invalid_context_is_reported() {
    let folder = folder(&[("current", "dev-agent\n")]);
    private(folder.path().join("dev-agent.json"), "{}");
    let get = || {
        let mut command = program();
        command.args(["get", "x"]).env("SWITCHWARD_CONTEXTS", folder.path());
        command
    };
    let ended = Ended::of(&mut get()).with_code(1);
    assert!(ended.err.contains("dev-agent.json is not a context"), "{ended:?}");
    for other in [get().args(["--context", "other"]), get().env("SWITCHWARD_CONTEXT", "other")] {
        let ended = Ended::of(other).with_code(3);
        assert!(ended.err.contains("there is no context \"other\""), "{ended:?}");
    }
}

#[test]
fn the_demo_wants_a_folder_of_its_own() {
    let folder = folder(&[("mine.txt", "")]);
    let ended = run(["demo".as_ref(), "--data-dir".as_ref(), folder.path().as_os_str()]).with_code(2);
    assert!(ended.err.contains("is not empty"), "{ended:?}");
    let words =
        ["demo".as_ref(), "-o".as_ref(), "json".as_ref(), "--data-dir".as_ref(), folder.path().as_os_str()];
    assert_eq!(run(words).with_code(2).error()["reason"], "FIELD_INVALID");
}

#[test]
fn colours_are_for_terminals() {
    let bad = folder(&[("bad.json", "{")]);
    let bad = bad.path().join("bad.json");
    let plain = run(["check".as_ref(), bad.as_os_str()]).with_code(5);
    assert!(!plain.out.contains('\u{1b}'), "{plain:?}");
    let forced = Ended::of(program().arg("check").arg(&bad).env("CLICOLOR_FORCE", "1")).with_code(5);
    assert!(forced.out.contains('\u{1b}'), "{forced:?}");
    let refused = Ended::of(program().arg("check").arg(&bad).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
    assert!(!refused.out.contains('\u{1b}'), "{refused:?}");
}
