//! What servers send each other: one of each command, reply and rejection, as hex, so that a change of a form is seen in
//! review, and each of them read back. `BLESS=1` rewrites the files.

mod catalogue;
mod delivery;
pub(crate) mod kinds;
mod policy;
pub(crate) mod replies;
mod session;
mod traits;

use kinds::{KINDS, kind};
use std::collections::BTreeSet;
use switchward_machine::{Digest, Micros, SessionId, TenantId};
use switchward_state::catalogue::{Role, Settings};
use switchward_state::policy::Shortage;
use switchward_state::{Actor, Body, Command, Reason, Rejection, Reply, RequestId, Scope};

fn check(name: &str, lines: &[(String, Vec<u8>)]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text: String = lines.iter().map(|(of, bytes)| format!("{of} {}\n", hex(bytes))).collect();
    check_text(name, &text, "a sent form has changed: servers of two versions could not read each other");
}

fn check_text(name: &str, text: &str, changed: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, known, "{changed}");
}

fn digest(byte: u8) -> Digest {
    Digest([byte; 32])
}

fn command(body: Body) -> Command {
    Command {
        tenant: TenantId(1),
        scope: Scope::Session(SessionId([7; 16])),
        request: Some(RequestId { id: "r-1".into(), body: digest(1) }),
        expected_sequence: Some(4),
        actor: Actor { subject: "kim".into(), role: Role::Operator },
        settings: Settings::default(),
        trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        address: None,
        body,
    }
}

/// A command of each kind.
fn bodies() -> Vec<Body> {
    let mut bodies = session::commands();
    bodies.extend(policy::commands());
    bodies.extend(delivery::commands());
    bodies.extend(catalogue::commands());
    bodies
}

#[test]
fn every_command_is_read_back_as_it_was() {
    let bodies = bodies();
    let met: BTreeSet<&str> = bodies.iter().map(kind).collect();
    assert_eq!(met, KINDS.iter().copied().collect::<BTreeSet<_>>(), "each kind has a value");
    let mut lines = Vec::new();
    for body in bodies {
        let (name, command) = (kind(&body).to_owned(), command(body));
        let bytes = command.encode();
        assert_eq!(Command::decode(&bytes).as_ref(), Ok(&command));
        for end in 0..bytes.len() {
            assert!(Command::decode(&bytes[..end]).is_err(), "{name} cut off after {end} bytes");
        }
        lines.push((name, bytes));
    }
    check("command.v1.txt", &lines);
}

#[test]
fn every_reply_is_read_back_as_it_was() {
    let mut lines = Vec::new();
    for (name, reply) in replies::all() {
        let bytes = reply.encode();
        assert_eq!(Reply::decode(&bytes).as_ref(), Ok(&reply));
        lines.push((name.to_owned(), bytes));
    }
    check("reply.v1.txt", &lines);
}

#[test]
fn a_rejection_of_every_reason_is_read_back_as_it_was() {
    let mut lines = Vec::new();
    let layer = Some("guard".to_owned());
    let shortages = [
        Shortage::Grants { most: 8 },
        Shortage::Money { used: Micros(3), most: Micros(5), layer: layer.clone() },
        Shortage::Mails { sent: 4, most: 4, layer },
        Shortage::Limit { capability: "bash".into() },
    ];
    for (reason, shortage) in Reason::ALL.iter().zip(shortages.into_iter().cycle()) {
        let rejection = Rejection::new(*reason, "no")
            .allowed(["yes", "no"])
            .fact("field", "answer")
            .fact("at_ms", 7)
            .retry_after_ms(Some(200))
            .shortage(shortage);
        let bytes = rejection.encode();
        assert_eq!(Rejection::decode(&bytes).as_ref(), Ok(&rejection));
        lines.push((reason.code().to_owned(), bytes));
    }
    check("rejection.v1.txt", &lines);
    assert!(Rejection::decode(&[9, 0]).is_err(), "another form");
}
