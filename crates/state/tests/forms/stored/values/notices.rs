//! Values of what the server writes to people by itself.

use switchward_machine::{Channel, Decision, Micros, OpenId, SessionId, Time};
use switchward_state::Row;
use switchward_state::approval::{
    Closing, Decider, NotCounted, Notice, Progress, Receipt, RequestSubject, Via,
};
use switchward_state::delivery::{EffectBody, MessageText, Purpose};
use switchward_state::policy::Shortage;

use crate::stored::effect;

fn decider(by: &str, via: Via) -> Decider {
    Decider { by: by.into(), via }
}

fn shortage(shortage: Shortage) -> Notice {
    Notice::CannotApprove { shortage }
}

fn not_counted(why: NotCounted) -> Notice {
    Notice::NotCounted { why }
}

fn late(closing: Closing) -> Notice {
    Notice::Late { at: Time(4), closing }
}

/// Every notice and every variant in one.
fn notices() -> Vec<(&'static str, Notice)> {
    let receipt = Receipt { gate: OpenId(6), session: SessionId([9; 16]), at: Time(4) };
    let approved = vec![decider("kim", Via::Mail), decider("ops", Via::Vouched)];
    let progress = Progress { approved: approved.clone(), need: 3 };
    let layer = Some("tenant".to_owned());
    let money = Shortage::Money { used: Micros(3), most: Micros(5), layer: layer.clone() };
    let (decision, by) = (Decision::Refuse, decider("kim", Via::Rpc));
    let decided = Closing::Decided { decision, by, approved: approved.clone() };
    vec![
        ("notice-page-code", Notice::PageCode),
        ("notice-decided", Notice::Decided { decision: Decision::Approve, receipt }),
        ("notice-counted", Notice::Counted { receipt, progress: progress.clone() }),
        ("notice-approved-before", Notice::ApprovedBefore { progress }),
        ("notice-no-grants", shortage(Shortage::Grants { most: 8 })),
        ("notice-no-money", shortage(money)),
        ("notice-no-mails", shortage(Shortage::Mails { sent: 4, most: 4, layer })),
        ("notice-limit-full", shortage(Shortage::Limit { capability: "bash".into() })),
        ("notice-earlier", not_counted(NotCounted::Earlier)),
        ("notice-own", not_counted(NotCounted::Own)),
        ("notice-foreign", not_counted(NotCounted::Foreign)),
        ("notice-unseen", not_counted(NotCounted::Unseen)),
        ("notice-empty", not_counted(NotCounted::Empty)),
        ("notice-unproved", not_counted(NotCounted::Unproved)),
        ("notice-no-longer-asked", not_counted(NotCounted::NoLongerRecipient)),
        ("notice-receiver-unknown", not_counted(NotCounted::ReceiverUnknown)),
        ("notice-receiver-unfit", not_counted(NotCounted::ReceiverUnfit)),
        ("notice-answered", Notice::Answered { receipt }),
        ("notice-passed-on", Notice::PassedOn),
        ("notice-commented", Notice::Commented),
        ("notice-late-decided", late(decided)),
        ("notice-late-answered", late(Closing::Answered)),
        ("notice-late-lapsed", late(Closing::Lapsed { approved })),
        ("notice-late-voided", late(Closing::Voided)),
        ("notice-reply-received", Notice::ReplyReceived),
        ("notice-reply-unclear", Notice::ReplyUnclear),
        ("notice-reply-unexpected", Notice::ReplyUnexpected),
        ("notice-reply-unproved", Notice::ReplyUnproved),
        ("notice-question", Notice::Question { by: "kim".into(), comment: "Why?".into() }),
        (
            "notice-assigned",
            Notice::Assigned { by: decider("kim", Via::Mail), to: "dana@acme.example".into() },
        ),
    ]
}

/// Rows.
pub(crate) fn rows() -> Vec<(&'static str, Row)> {
    let row = |notice| {
        let purpose = if notice == Notice::PageCode { Purpose::Code } else { Purpose::Inform };
        Row::Outbox(effect(EffectBody::Message {
            channel: Channel::Email,
            to: "sam@example.com".into(),
            text: MessageText::Notice { about: "Refund".into(), notice },
            gate: Some(OpenId(6)),
            purpose,
            head: None,
        }))
    };
    let request = |subject| {
        let text = MessageText::Request { subject, body: "May we?".into() };
        let (channel, to, gate) = (Channel::Email, "sam@example.com".into(), Some(OpenId(6)));
        let purpose = Purpose::Ask;
        Row::Outbox(effect(EffectBody::Message { channel, to, text, gate, purpose, head: None }))
    };
    let (definition, capability) = ("deploy-gate".to_owned(), "bash".to_owned());
    let call = RequestSubject::Call { definition: definition.clone(), capability };
    let review = RequestSubject::Review { definition, answer: "yes".into(), state: "ready".into() };
    let requests = [
        ("request-written", RequestSubject::Written("Refund".into())),
        ("request-call", call),
        ("request-review", review),
        ("request-approval", RequestSubject::Approval { state: "pay".into() }),
        ("request-task", RequestSubject::Task { state: "rate".into() }),
    ];
    let notices = notices().into_iter().map(|(name, notice)| (name, row(notice)));
    notices.chain(requests.into_iter().map(|(name, subject)| (name, request(subject)))).collect()
}
