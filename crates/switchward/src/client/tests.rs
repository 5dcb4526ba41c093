use super::*;
use clap::Parser as _;

use crate::args::{Args, ClientCommand, Command};

fn connection(words: &[&str]) -> Connection {
    let line = ["switchward", "clock"].iter().chain(words);
    let Command::Client(ClientCommand::Clock(on)) = Args::try_parse_from(line).unwrap().command else {
        panic!()
    };
    // What the environment of the test says is no part of it.
    let said = |flag: &str| words.contains(&flag);
    Connection {
        address: on.connection.address.clone().filter(|_| said("--address")),
        api_key: on.connection.api_key.clone().filter(|_| said("--api-key")),
        ..on.connection
    }
}

fn profile() -> Option<Profile> {
    let address = "http://127.0.0.1:7400".to_owned();
    Some(Profile {
        address,
        agent_key: "agent".into(),
        person_key: "person".into(),
        worker_key: Some("worker".into()),
    })
}

fn key(words: &[&str], usually: Who) -> String {
    Target::chosen(&connection(words), usually, profile()).unwrap().key
}

#[test]
fn the_usual_key_is_that_of_who_usually_does_it() {
    assert_eq!((key(&[], Who::Agent), key(&[], Who::Person)), ("agent".into(), "person".into()));
    assert_eq!(key(&["--as", "person"], Who::Agent), "person");
    assert_eq!(
        (key(&[], Who::Worker), key(&["--as", "worker"], Who::Agent)),
        ("worker".into(), "worker".into())
    );
    assert_eq!(key(&["--api-key", "mine"], Who::Agent), "mine");
    assert_eq!(key(&["--api-key", "mine", "--as", "agent"], Who::Person), "agent");
    assert_eq!(key(&["--address", "http://127.0.0.1:7400/"], Who::Agent), "agent");
}

#[test]
fn a_profile_from_before_there_were_workers_has_no_key_for_one() {
    let older = r#"{"address":"http://127.0.0.1:7400","agent_key":"agent","person_key":"person"}"#;
    let older: Profile = serde_json::from_str(older).unwrap();
    assert_eq!(
        Target::chosen(&connection(&[]), Who::Agent, Some(older.clone())).unwrap().key,
        "agent",
        "the others are used as ever"
    );
    let error = Target::chosen(&connection(&[]), Who::Worker, Some(older)).unwrap_err();
    assert!(error.message().contains("no API key"), "{error:?}");
}

#[test]
fn another_server_is_not_told_the_keys_of_the_profile() {
    let other = connection(&["--address", "http://10.0.0.1:7400"]);
    assert!(Target::chosen(&other, Who::Agent, profile()).unwrap_err().message().contains("no API key"));
    let other = connection(&["--address", "http://10.0.0.1:7400", "--as", "agent"]);
    assert!(Target::chosen(&other, Who::Agent, profile()).is_err());
}

#[test]
fn without_an_address_no_server_is_known() {
    let error = Target::chosen(&connection(&[]), Who::Agent, None).unwrap_err();
    assert_eq!(error.message(), "no server is known");
}

#[test]
fn an_address_is_a_whole_one() {
    for address in ["127.0.0.1:7400", "ftp://x", "http://", "http://a b", ""] {
        assert!(endpoint(address, None).is_err(), "{address}");
    }
    assert!(endpoint("http://[::1]:7400", None).is_ok());
}
