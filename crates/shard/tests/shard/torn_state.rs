//! Rows that a power cut has torn on their way to the disk: the log has them. What was synced cannot be torn: if it is
//! not as it was written, the server does not start.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt;
use std::path::Path;
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command};
use switchward_testkit::until_blocking;

use crate::commands::{DEPLOY_GATE, answer, definition, start};
use crate::durability::copy;
use crate::one_server::{digests, prepare, purge};
use crate::server::{Server, Setup, unlocked};

const PAGE: usize = 4096;

/// A start whose input repeats this character.
fn start_of(name: char) -> Command {
    let mut start = start(&definition(DEPLOY_GATE), &format!("session {name}"));
    if let Body::Session(SessionCommand::Start(start)) = &mut start.body {
        start.input = format!("\"{}\"", name.to_string().repeat(4 * PAGE)).into_bytes();
    }
    start
}

/// The first page that repeats this byte.
fn page_of(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.chunks(PAGE).position(|page| page == [byte; PAGE])
}

/// Returns true if the row of this byte was flushed.
fn is_flushed(folder: &Path, byte: u8) -> bool {
    const USED_BYTES: u64 = 4 * 1024 * 1024;
    let mut bytes = Vec::new();
    let journal = File::open(folder.join("state/0.jnl")).unwrap();
    journal.take(USED_BYTES).read_to_end(&mut bytes).unwrap();
    page_of(&bytes, byte).is_some()
}

/// Makes a hole of a page in the flush that holds the row of this byte.
fn punch(folder: &Path, byte: u8) {
    let journal = folder.join("state/0.jnl");
    let bytes = std::fs::read(&journal).unwrap();
    let page = page_of(&bytes, byte).expect("the row was flushed");
    let at = page * PAGE;
    File::options().write(true).open(journal).unwrap().write_all_at(&[0; PAGE], at as u64).unwrap();
}

/// Lets a server flush the rows of three starts, each by itself and without a sync, and do something more. If `purged`,
/// syncs the flush of `b` and purges the log up to it.
fn flushed(setup: &Setup, purged: bool) -> Server {
    let server = Server::open(setup);
    prepare(&server);
    for name in ['a', 'b', 'c'] {
        server.run(server.cluster().execute(start_of(name))).unwrap();
        // At rest, rows are flushed without a sync.
        until_blocking("the rows are flushed", || is_flushed(&setup.path, name as u8));
        if name == 'b' && purged {
            server.run(purge(server.cluster().shards()[0].group()));
        }
    }
    server.run(server.cluster().execute(answer("session a", "an answer", "yes"))).unwrap();
    server
}

#[test]
fn rows_that_were_torn_are_made_again_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let server = flushed(&Setup { shards: 1, ..Setup::new(&whole) }, false);
    let before = digests(&server);
    server.crash();
    drop(unlocked(&whole));
    for byte in *b"abc" {
        let torn = folder.path().join(char::from(byte).to_string());
        copy(&whole, &torn, "");
        punch(&torn, byte);
        let setup = Setup { shards: 1, ..Setup::new(&torn) };
        let server = Server::open(&setup);
        assert_eq!(digests(&server), before, "torn in the flush of {}", char::from(byte));
        server.run(server.cluster().execute(answer("session c", "an answer", "yes"))).unwrap();
        server.shut_down();
    }
}

#[test]
fn rows_that_were_torn_after_a_sync_are_made_again_and_before_it_are_refused() {
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
    let error = Server::try_open(&setup).err().expect("lost rows that were synced are reported").to_string();
    assert!(error.contains("the batch at byte ") && error.contains("state/0.jnl: it was synced"), "{error}");
}
