//! Rows that a power cut has torn on their way to the disk: the log has them, unless it was purged up to them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command};

use crate::commands::{DEPLOY_GATE, answer, definition, start};
use crate::one_server::{digests, prepare, purge};
use crate::server::{Server, Setup};

const PAGE: usize = 4096;

/// A start whose input repeats this character.
fn start_of(name: char) -> Command {
    let mut start = start(&definition(DEPLOY_GATE), &format!("session {name}"));
    if let Body::Session(SessionCommand::Start(start)) = &mut start.body {
        start.input = format!("\"{}\"", name.to_string().repeat(4 * PAGE)).into_bytes();
    }
    start
}

/// Makes a hole of a page in the flush that holds the row of this byte.
fn punch(folder: &Path, byte: u8) {
    let journal = folder.join("state/0.jnl");
    let bytes = std::fs::read(&journal).unwrap();
    let page = bytes.chunks(PAGE).position(|page| page == [byte; PAGE]).expect("the row was flushed");
    let at = page * PAGE;
    File::options().write(true).open(journal).unwrap().write_all_at(&[0; PAGE], at as u64).unwrap();
}

/// Lets a server flush the rows of three starts, each by itself, and do something more. If `purged`, purges its log
/// after the flush of `b`.
fn flushed(setup: &Setup, purged: bool) -> Server {
    let server = Server::open(setup);
    prepare(&server);
    for name in ['a', 'b', 'c'] {
        server.run(server.cluster().execute(start_of(name))).unwrap();
        server.cluster().all().for_each(|shard| shard.group().checkpoint().unwrap());
        if name == 'b' && purged {
            server.run(purge(server.cluster().shards()[0].group()));
        }
    }
    server.run(server.cluster().execute(answer("session a", "an answer", "yes"))).unwrap();
    server
}

#[test]
fn rows_that_were_torn_are_made_again_from_the_log() {
    for byte in *b"abc" {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
        let server = flushed(&setup, false);
        let before = digests(&server);
        server.crash();
        punch(folder.path(), byte);
        let server = Server::open(&setup);
        assert_eq!(digests(&server), before, "torn in the flush of {}", char::from(byte));
        server.run(server.cluster().execute(answer("session c", "an answer", "yes"))).unwrap();
        server.shut_down();
    }
}

#[test]
fn rows_that_were_torn_behind_a_purge_are_made_again_and_before_it_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let server = flushed(&setup, true);
    let before = digests(&server);
    server.crash();
    punch(folder.path(), b'c');
    let server = Server::open(&setup);
    assert_eq!(digests(&server), before);
    server.crash();

    punch(folder.path(), b'b');
    let error = Server::try_open(&setup).err().expect("lost rows whose entries are purged are reported");
    let message = error.to_string();
    let entries: Vec<&str> =
        message.split("entry ").skip(1).filter_map(|rest| rest.split(", ").next()).collect();
    assert!(message.contains("the state of group 1 is damaged"), "{message}");
    let entries: Vec<u64> = entries.into_iter().map(|entry| entry.parse().unwrap()).collect();
    assert!(matches!(entries[..], [rows, purged] if rows < purged), "{message}");
}
