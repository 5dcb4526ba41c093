//! What the pages of a server say beside its decision pages, and what it writes into a session, compared with `expected/`.

use crate::support::{entry, marked, same};
use switchward_messages::server_pages::probes::{Readiness, readiness};
use switchward_messages::server_pages::{guard, home, inspector, mailbox, title};
use switchward_messages::{end_comment, reply_evidence};
use switchward_state::approval::{CheckedBy, MailCheck, OriginProof, OriginReason, ReplyEvidence};
use switchward_state::run::EndComment;

#[test]
fn the_first_page_is_rendered() {
    use home::*;
    let made = [
        entry("server", &[TITLE, ABOUT, SERVER, DEVELOPMENT_SERVER]),
        entry("messages", &[OUTGOING, MAILBOX, INSPECTOR]),
        entry("calls", &[API, GRPC_NAME, GRPC, JSON, POSTED, SERVICES]),
        entry("probes", &[HEALTH, LIVENESS, READINESS, GRPC_HEALTH]),
        entry("people", &[PEOPLE, DECISION_PAGES]),
        entry("documentation", &[DOCUMENTATION, &marked(&help()), METRICS]),
    ];
    same(&made.concat(), include_str!("../expected/server_pages/home.txt"));
}

#[test]
fn the_webhook_inspector_is_rendered() {
    use inspector::*;
    let made = [
        entry("page", &[TITLE, &title(TITLE), ABOUT]),
        entry("listening", &[&marked(&not_listening("acme")), LISTEN, NO_EVENTS, NOT_STARTED]),
        entry("event", &[NO_EVENT_TYPE, RECEIVED, ID, SIGNATURE, GOOD]),
        entry("refusals", &[guard::STALE_FORM, guard::FOREIGN_FORM, guard::UNKNOWN_HOST]),
    ];
    same(&made.concat(), include_str!("../expected/server_pages/inspector.txt"));
}

#[test]
fn the_mailbox_is_rendered() {
    use mailbox::*;
    let ends = [
        ReplyEnd::Recorded { outcome: "decided" },
        ReplyEnd::Bounced,
        ReplyEnd::Ignored { kind: "auto_reply" },
        ReplyEnd::Quarantined { why: "no_token" },
        ReplyEnd::Later,
    ];
    let mut made = [
        entry("page", &[TITLE, ABOUT, NO_MAIL, NO_SUCH_MAIL, ALL_MAIL, RECEIVED_MAIL]),
        entry("labels", &[SENT, RECEIVED_AT, FROM, SENT_BY, TO, DELIVERED_TO, REPLY_TO, SUBJECT, OUTCOME]),
        entry("mail", &[RAW_MESSAGE, &quoting("2026-01-01T00:00:00Z", "ops@a.example")]),
        entry("form", &[REPLY, WRITTEN_BY, PROVE_SENDER, MARK_AUTOMATIC, SEND_REPLY]),
    ]
    .concat();
    made.extend(ends.map(|end| entry("reply", &[&replied(&reply_end(end))])));
    same(&made, include_str!("../expected/server_pages/mailbox.txt"));
}

#[test]
fn readiness_is_rendered() {
    let states = [
        Readiness::NotReady,
        Readiness::CutOff,
        Readiness::ShardFailed,
        Readiness::DiskLow,
        Readiness::ClockOff,
        Readiness::Ready,
    ];
    let made: String = states.map(|state| entry("state", &[readiness(state)])).concat();
    same(&made, include_str!("../expected/server_pages/probes.txt"));
}

#[test]
fn what_the_server_writes_into_a_session_is_rendered() {
    let mut made = entry("comment", &[&end_comment(&EndComment::RemovedAfterBackup)]);
    let signed = ReplyEvidence {
        proof: OriginProof::Signed,
        by: CheckedBy::Server,
        dkim: MailCheck::Pass,
        spf: MailCheck::None,
        dmarc: MailCheck::None,
        hidden_text: false,
        reasons: Vec::new(),
    };
    let (proof, by) = (OriginProof::Aligned, CheckedBy::TrustedHost);
    let trusted = ReplyEvidence { proof, by, ..signed.clone() };
    let (proof, reasons) = (OriginProof::NotAligned, vec![OriginReason::NotSigned]);
    let unproved = ReplyEvidence { proof, reasons, ..signed.clone() };
    let hidden = ReplyEvidence { hidden_text: true, ..unproved.clone() };
    for facts in [signed, trusted, unproved, hidden] {
        made.push_str(&entry("evidence", &[&reply_evidence(&facts)]));
    }
    same(&made, include_str!("../expected/session_comments.txt"));
}
