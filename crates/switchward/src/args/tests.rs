mod shown;

use clap::CommandFactory;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use super::*;

fn parsed(words: &[&str]) -> Args {
    Args::try_parse_from(std::iter::once(&"switchward").chain(words))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn refused(words: &[&str]) -> clap::error::ErrorKind {
    Args::try_parse_from(std::iter::once(&"switchward").chain(words)).unwrap_err().kind()
}

#[test]
fn the_commands_are_sound() {
    Args::command().debug_assert();
}

#[test]
fn a_path_that_the_configuration_cannot_hold_is_refused() {
    let path = OsString::from_vec(b"/srv/\xff".to_vec());
    for flag in ["--data-dir", "--tls-cert", "--tls-key"] {
        let words: [OsString; 4] = ["switchward".into(), "server".into(), flag.into(), path.clone()];
        let error = Args::try_parse_from(words).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::InvalidUtf8, "{flag}");
    }
}

#[test]
fn the_output_may_be_said_anywhere() {
    for words in [
        ["-o", "json", "list", "sessions"],
        ["list", "-o", "json", "sessions"],
        ["list", "sessions", "-o", "json"],
    ] {
        assert_eq!(parsed(&words).output, Output::Json, "{words:?}");
    }
}

#[test]
fn the_server_may_be_said_before_and_after_what_is_listed() {
    for words in [["list", "--address", "http://x", "gates"], ["list", "gates", "--address", "http://x"]] {
        let Command::Client(ClientCommand::List(on)) = parsed(&words).command else { panic!("{words:?}") };
        assert_eq!(on.connection.address.as_deref(), Some("http://x"));
    }
}

#[test]
fn both_words_for_a_decision_are_taken() {
    for (word, decision) in [
        ("approve", GateAction::Approve),
        ("resume", GateAction::Approve),
        ("refuse", GateAction::Reject),
        ("decline", GateAction::Reject),
        ("reject", GateAction::Reject),
        ("discuss", GateAction::Discuss),
    ] {
        let words = ["decide", "gat_1", word, "--comment", "why?"];
        let command = parsed(&words).command;
        let Command::Client(ClientCommand::Gates(GatesCommand::Decide(on))) = command else { panic!() };
        assert_eq!(on.what.decision, decision);
    }
    parsed(&["decide", "gat_1", "approve"]);
    assert_eq!(refused(&["decide", "gat_1", "discuss"]), clap::error::ErrorKind::MissingRequiredArgument);
}

#[test]
fn a_cap_is_money_or_tokens() {
    use clap::error::ErrorKind;
    assert_eq!(refused(&["raise", "s"]), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused(&["raise", "s", "--cost-usd", "1", "--tokens", "2"]), ErrorKind::ArgumentConflict);
    parsed(&["raise", "s", "--cost-usd", "1"]);
}

#[test]
fn kinds_of_work_are_separated_by_commas_or_said_again() {
    for words in [&["--kind", "extract,judge"][..], &["--kind", "extract", "--kind=judge"]] {
        let Command::Client(ClientCommand::Work(on)) = parsed(&[&["work", "poll"], words].concat()).command
        else {
            panic!("{words:?}")
        };
        let WorkCommand::Poll(poll) = on.what.what else { panic!("{words:?}") };
        assert_eq!(poll.kinds, [KindOfWork::Extract, KindOfWork::Judge]);
    }
}

#[test]
fn a_development_cluster_has_three_or_five_servers_and_commands_for_each() {
    use clap::error::ErrorKind;
    let Command::Dev(dev) = parsed(&["dev"]).command else { panic!("no dev") };
    assert_eq!((dev.servers, dev.what.is_none()), (1, true));
    let words = ["dev", "--servers", "5", "--redis", "redis://127.0.0.1:6379", "--port", "0"];
    let Command::Dev(dev) = parsed(&words).command else { panic!("no dev") };
    assert_eq!((dev.servers, dev.redis.as_deref()), (5, Some("redis://127.0.0.1:6379")));
    for number in ["0", "2", "4", "7", "x"] {
        assert_eq!(refused(&["dev", "--servers", number]), ErrorKind::ValueValidation, "{number}");
    }
    for words in [
        &["status"][..],
        &["kill", "1"],
        &["start", "1"],
        &["pause", "2", "--data-dir", "d"],
        &["resume", "2"],
        &["partition", "3"],
        &["heal"],
        &["heal", "3"],
        &["link", "1", "2", "cut-forth"],
        &["link", "1", "2", "delay:200"],
        &["advance", "1h30m"],
    ] {
        let Command::Dev(dev) = parsed(&[&["dev"], words].concat()).command else { panic!("{words:?}") };
        assert!(dev.what.is_some(), "{words:?}");
    }
    assert_eq!(refused(&["dev", "kill"]), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused(&["dev", "partition", "x"]), ErrorKind::ValueValidation);
    assert_eq!(refused(&["dev", "link", "1", "2", "gone"]), ErrorKind::ValueValidation);
    assert_eq!(refused(&["dev", "--port", "0", "kill", "1"]), ErrorKind::ArgumentConflict);
}

#[test]
fn leaders_are_moved_to_no_server_of_the_number_0() {
    let words = ["cluster", "transfer", "--group", "1", "--to", "0"];
    assert_eq!(refused(&words), clap::error::ErrorKind::ValueValidation);
}

#[test]
fn durations() {
    for (text, seconds) in [("90s", 90), ("5m", 300), ("1h30m", 5_400), ("3d", 259_200)] {
        assert_eq!(values::duration(text), Ok(Duration::from_secs(seconds)), "{text}");
    }
    for text in [
        "",
        "h",
        "90",
        "0s",
        "1h30",
        "1x",
        "-1h",
        "1.5h",
        "99999999999999999999s",
        "999999999999999999d",
        "1é",
    ] {
        assert!(values::duration(text).is_err(), "{text}");
    }
}

/// Words of the command line, and others.
const WORDS: [&str; 34] = [
    "dev",
    "server",
    "check",
    "simulate",
    "deploy",
    "start",
    "answer",
    "authorize",
    "decide",
    "raise",
    "get",
    "list",
    "watch",
    "clock",
    "keys",
    "work",
    "poll",
    "complete",
    "--kind",
    "-o",
    "json",
    "--port",
    "0",
    "--config",
    "--args",
    "{\"a\":",
    "--help",
    "--",
    "-",
    "",
    "--no-such",
    "\u{1f600}",
    "18446744073709551616",
    "../..",
];

#[test]
fn whatever_is_typed_is_taken_or_refused_in_words() {
    use rand::{Rng as _, SeedableRng as _};
    let mut refused = 0;
    for seed in 0..2_000 {
        let mut dice = rand::rngs::StdRng::seed_from_u64(seed);
        let count = dice.random_range(0..7);
        let words = (0..count).map(|_| match dice.random_range(0..20) {
            0 => "x".repeat(dice.random_range(0..5_000)),
            _ => WORDS[dice.random_range(0..WORDS.len())].to_owned(),
        });
        let words: Vec<String> = std::iter::once("switchward".to_owned()).chain(words).collect();
        if let Err(error) = Args::try_parse_from(&words) {
            let help = !error.use_stderr();
            assert!(help || error.exit_code() == 2, "{words:?}: {error}");
            assert!(!error.to_string().is_empty(), "{words:?}");
            refused += usize::from(!help);
        }
    }
    assert!((500..2_000).contains(&refused), "{refused}");
}
