//! What the demos narrate, compared with `expected/`.

use crate::support::{entry, same};
use switchward_messages::cli::{demo::*, demo_cluster};

#[test]
fn what_the_demo_narrates_is_rendered() {
    let made = [beginning(), middle(), end()];
    same(&made.concat(), include_str!("../../expected/command_line/demo.txt"));
}

fn beginning() -> String {
    let introduction = INTRODUCTION.join("\n");
    [
        entry("introduction", &[TITLE, &introduction]),
        entry("deployment", &[ACT_DEPLOY, DEPLOYS, &version_stored(1, "900 bytes"), &WHY_VERSIONS.concat()]),
        entry("start", &[ACT_START, STARTS_SESSION, &at_states(&["env-check".into()])]),
        entry(
            "limit",
            &[
                ACT_LIMIT,
                CALLS_BASH,
                &calls_left(49),
                CALLS_BASH_MORE,
                CALLS_BASH_TOO_OFTEN,
                &denied("RATE_LIMITED", "1h"),
                ADVANCES_CLOCK,
                BY_ONE_HOUR,
                &WHY_DENIED.concat(),
            ],
        ),
        entry(
            "question",
            &[
                ACT_ASK,
                ASKS_TO_DELETE,
                PERSON_IS_ASKED,
                APPROVES_OWN_CALL,
                &refused("ROLE_NOT_ALLOWED"),
                &WHY_REFUSED.concat(),
            ],
        ),
    ]
    .concat()
}

fn middle() -> String {
    let why_durable = WHY_DURABLE.join("\n");
    let why_safe = WHY_SAFE.join("\n");
    [
        entry(
            "kill",
            &[
                ACT_KILL,
                GETS_KILLED,
                KILLED_AFTER_RESPONSE,
                KILLED_BEFORE_RESPONSE,
                RESTARTS,
                &ready_after(0.42),
            ],
        ),
        entry("survival", &[REPEATS_CALL, ALLOWED, CHECKS_GATE, STILL_OPEN, &why_durable]),
        entry(
            "approval",
            &[
                ACT_APPROVE,
                APPROVES,
                APPROVED,
                MAKES_SAME_CALL,
                APPROVAL_USED,
                MAKES_CALL_AGAIN,
                &WHY_EXACT.concat(),
            ],
        ),
        entry("mail", &[ACT_MAIL, ASKS_TO_WRITE, GETS_MAIL, OPENS_LINK, NO_CHANGE, &why_safe]),
        entry("automatic reply", &[AUTOMATIC_REPLY, REPLIES_AUTOMATICALLY, AUTOMATIC_IGNORED]),
        entry("comment", &[&replies(DOUBT), COMMENT_RECORDED]),
        entry(
            "reply",
            &[&replies(APPROVAL), DECISION_RECORDED, GETS_ACKNOWLEDGEMENT, CONFIRMATION, MAKES_CALL],
        ),
    ]
    .concat()
}

fn end() -> String {
    let why_reliable = WHY_RELIABLE.join("\n");
    let allowed = ["yes".to_owned(), "no".into()];
    [
        entry("endpoint", &[ACT_ENDPOINT, SUBSCRIBES, GETS_SECRET, RECEIVES_PING, SIGNATURE_VALID]),
        entry("answers", &[ACT_ANSWER, &answers("yes"), &answer_refused("ANSWER_NOT_ALLOWED", &allowed)]),
        entry("webhooks", &[ACT_WEBHOOKS, &several_times("session.answered", 3), &why_reliable]),
        entry("history", &[ACT_HISTORY, &times(49)]),
        entry("last line", &[DONE, TRY]),
    ]
    .concat()
}

/// The mail that acknowledges a decision has the words that the demos look for.
#[test]
fn the_acknowledgement_has_the_words_that_the_demo_looks_for() {
    assert!(
        include_str!("../../expected/notices.txt").contains(&DECISION_RECORDED.replace("approve", "reject"))
    );
}

#[test]
fn what_the_demo_of_a_cluster_narrates_is_rendered() {
    use demo_cluster::*;
    let made = [
        entry("introduction", &[TITLE, &INTRODUCTION.join("\n")]),
        entry("start", &[ACT_FORM, &server(2), STARTS, STARTS_AND_JOINS, NEEDS_TWO_SERVERS, ALL_VOTE]),
        entry("session", &[ACT_START, DEPLOYS, &version_active(1), &starts_session(2)]),
        entry("leader", &[LEADS_SESSION, OTHERS_FOLLOW, &WHY_ANY_SERVER.concat()]),
        entry("mail", &[ACT_ASK, &asks_to_write(2), &gets_mail(1), RECORDS_DELIVERY, ON_TWO_SERVERS]),
        entry("kill", &[ACT_KILL, GETS_KILLED, KILLED_AS_LEADER, &calls_bash(2), &allowed_after(1.24)]),
        entry(
            "election",
            &[LEADS_NOW, ELECTED, LOOKS_AT_REQUEST, LOOKS_FOR_MAIL, SENT_ONCE, &WHY_NO_LOSS.join("\n")],
        ),
        entry("second kill", &[ACT_SECOND_KILL]),
        entry("reply", &[ACT_REPLY, &replies(1), &reply_decides("Fine."), &makes_call(3)]),
        entry("answers", &[ACT_FINISH, &answers("yes", 2)]),
        entry("history", &[ACT_COMPARE, SHOWS_HISTORY, &same_history("64 events")]),
        entry("mails", &[COUNTS_MAILS, &mails_sent_once("2 mails")]),
        entry("steps", &[LOOKS_FOR_STEPS, &steps_recorded_once(9)]),
        entry("end", &[ALL_STOPPED]),
    ];
    same(&made.concat(), include_str!("../../expected/command_line/demo_cluster.txt"));
}
