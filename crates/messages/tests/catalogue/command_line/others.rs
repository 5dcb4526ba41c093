//! What the commands say that have few texts, compared with `expected/`.

use crate::support::{entry, same};
use std::path::Path;
use switchward_messages::cli::{backup, check, cluster, docs, secrets, test};

#[test]
fn what_other_commands_say_is_rendered() {
    let ring = Path::new("/etc/switchward/keys");
    let made = [
        entry(
            "backup",
            &[backup::COMPLETE, &backup::damaged(2), &backup::not_noted(&"failed to write the list")],
        ),
        entry("check", &[&check::skipped("2 other files")]),
        entry(
            "cluster",
            &[
                &cluster::certificates_written("3f", "5 files"),
                cluster::PRIVATE_KEY,
                &cluster::copy_certificates("ca.crt", "ca.key"),
                &cluster::folder_claimed(Path::new("/srv/switchward"), 2, "3f"),
            ],
        ),
        entry("key ring", &[&secrets::created(ring, &"1a2b"), secrets::KEEP_COPY_AND_SET]),
        entry("rotation", &[&secrets::current_key(ring, &"1a2b"), secrets::USED_AFTER_START]),
        entry("use of keys", &[secrets::NO_KEYS, &secrets::missing_backups("2 backups")]),
        entry("removal", &[&secrets::removed(ring, &"1a2b")]),
        entry("new key ring", &[&secrets::keep_copy(ring), secrets::KEY_RING_COMMENT]),
        entry("test", &[test::MISSED, test::NO_SCENARIO]),
        entry("docs", &[docs::CLI_INTRODUCTION.trim_end(), docs::OPTIONS_OF_ALL, docs::OPTIONS_OF_CALLS]),
        entry("docs of calls", &[docs::CALLS_SERVER, docs::PRECEDENCE]),
    ];
    same(&made.concat(), include_str!("../../expected/command_line/others.txt"));
}
