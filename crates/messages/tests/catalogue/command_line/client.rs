//! What the commands that call a server say, compared with `expected/`.

use crate::support::{entry, same};
use switchward_messages::cli::client::*;

#[test]
fn what_calls_say_is_rendered() {
    let groups = ["2".to_owned(), "5".to_owned()];
    let counts = [(0, 0), (1, 0), (1, 1), (4, 0), (4, 1), (4, 3)];
    let counted = counts.map(|(all, weaker)| differences(all, weaker));
    let made = [
        entry("secrets", &[SECRET_SHOWN_BEFORE, SECRET_SHOWN_ONCE]),
        entry("versions", &[POLICY_ACTIVE, VERSION_ACTIVE, VERSION_RETIRED, VERSION_INACTIVE]),
        entry("deployments", &[&deployed_partly(&groups, &groups), &deployed_partly(&[], &groups)]),
        entry("differences", &counted.each_ref().map(String::as_str)),
        entry("calls", &[REPEAT_CALL, REPEAT_MAIL, UNUSED_APPROVAL]),
        entry("outcomes", &[NOTHING_TO_SEND, DETACHED, MAIL_WITHOUT_TENANT]),
        entry(
            "empty tables",
            &[
                NO_MISSED_MESSAGES,
                NO_OPEN_GATES,
                NO_UNDELIVERED_EFFECTS,
                NO_QUARANTINED_MAIL,
                NO_RETENTION_RULES,
            ],
        ),
        entry(
            "rules",
            &[NO_RULE, SET_BY_FORMAT, SET_IN_CONFIGURATION, SET_IN_TENANT, SET_IN_POLICY, NO_DEFAULT_EFFECT],
        ),
        entry("sessions", &[WITHOUT_POLICY, NO_DEFINITION_YET]),
        entry("answers", &[COMPLETES_SESSION, BLOCKS_SESSION, CONTINUES_WITH_WARNING, WAITS_FOR_PERSON]),
        entry("settings", &[FROM_DEFINITION_ENTRY, FROM_OWNER_ENTRY, FROM_DEFAULT_AUDIENCE]),
        entry("clocks", &[&one_clock_advanced(2)]),
        entry("leaders", &[&group_without_leader(3), &server_leads(1, &groups)]),
        entry("votes", &[&server_votes(1, &groups), &server_votes(1, &[])]),
        entry("exports", &[&to_start_again(&"all.jsonl", &"all.jsonl.resume")]),
        entry("endpoints", &[&receives_events("http://127.0.0.1:4500/")]),
    ];
    same(&made.concat(), include_str!("../../expected/command_line/client.txt"));
}
