//! What `switchward dev` says, compared with `expected/`.

use crate::support::{entry, same};
use std::path::Path;
use switchward_messages::cli::dev::*;

#[test]
fn what_a_development_server_says_is_rendered() {
    let made = [
        entry("ready", &[SERVER_READY, &cluster_ready(3)]),
        entry("data", &[DATA_TEMPORARY, &data_stays(Path::new("/srv/dev"))]),
        entry("model", &[&model_at("claude-sonnet-4-5", "https://api.anthropic.com"), NO_MODEL]),
        entry(
            "contexts",
            &[
                &contexts_in(Path::new("/home/kim/.config/switchward")),
                USUAL_CONTEXTS_IN_USE,
                &further_contexts("dev-2-person"),
            ],
        ),
        entry("mail", &[MAIL_OF_EACH_SERVER]),
        entry("next", &[NEXT, NEXT_WHERE, HOW_TO_STOP, HOW_TO_STOP_ALL, STOPPED]),
        entry("table", &[NO_SERVERS]),
        entry("processes", &[&killed(2), &started(2), &ready(2), &paused(2), &resumed(2)]),
        entry("links", &[&cut_off(2), &links_opened(2), ALL_LINKS_OPENED, &link_changed(1, 2, &"delay:20")]),
        entry(
            "clocks",
            &[
                &time_is("2026-01-05T09:00:00Z"),
                &clock_not_moved(2, "it is no leader"),
                &clock_absent(2, "paused"),
            ],
        ),
        entry("ends", &[ENDED, &exited(1), &killed_by(9), &lost(&"no child processes")]),
        entry(
            "log",
            &[
                &server_stopped(2),
                &server_ended(2, &killed_by(9)),
                &redis_ended(&exited(1)),
                KILLED_REMAINING,
                &outlives_cluster(&"operation not permitted"),
            ],
        ),
    ];
    same(&made.concat(), include_str!("../../expected/command_line/dev.txt"));
}
