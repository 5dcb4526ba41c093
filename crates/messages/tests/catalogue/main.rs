//! All that the server says by itself, compared with `expected/`: one entry for each variant.

mod command_line;
mod deliveries;
mod faults;
mod refusals;
mod server_pages;
mod short_texts;
mod support;

use support::{entry, marked, same};
use switchward_machine::{
    Channel, Content, Decision, GateIx, GateKind, Micros, NodeIx, OpenId, RunId, SessionId, Status, Time,
};
use switchward_messages::{
    AnswerFacts, ChoiceFacts, FormProblem, FormText, PageAbsence, PageCodeFacts, PageLabel, PageProblem,
    PageState, answer_lines, asking, code_hint, code_label, commented, confirm_by_code, form_problem,
    form_text, gate_kind, instruction, mail_cap, origin, other_words, outcome, page_absence, page_code,
    page_heading, page_label, page_problem, page_state, page_text, reminder, request, rule, session_warning,
    sign_in_as, text, warning,
};
use switchward_state::approval::{
    Closed, Closing, Decider, Gate, NotCounted, Notice, Progress, Receipt, RequestSubject, Resolution, Via,
    Warning,
};
use switchward_state::delivery::{MailCap, MailFull, MessageText};
use switchward_state::policy::Shortage;
use switchward_state::{ItemHead, Open};
use switchward_testkit::session_warnings;

/// 2026-01-01T00:00:00Z.
const NOW: Time = Time(1_767_225_600_000);

/// Every variant of a notice.
const NOTICES: [&str; 16] = [
    "page code",
    "decided",
    "counted",
    "approved before",
    "cannot approve",
    "not counted",
    "answered",
    "passed on",
    "commented",
    "late",
    "reply received",
    "reply unclear",
    "reply unexpected",
    "reply unproved",
    "question",
    "assigned",
];

/// A variant that is missing here does not compile; one that has no sample fails the test.
fn name(notice: &Notice) -> &'static str {
    let at = match notice {
        Notice::PageCode => 0,
        Notice::Decided { .. } => 1,
        Notice::Counted { .. } => 2,
        Notice::ApprovedBefore { .. } => 3,
        Notice::CannotApprove { .. } => 4,
        Notice::NotCounted { .. } => 5,
        Notice::Answered { .. } => 6,
        Notice::PassedOn => 7,
        Notice::Commented => 8,
        Notice::Late { .. } => 9,
        Notice::ReplyReceived => 10,
        Notice::ReplyUnclear => 11,
        Notice::ReplyUnexpected => 12,
        Notice::ReplyUnproved => 13,
        Notice::Question { .. } => 14,
        Notice::Assigned { .. } => 15,
    };
    NOTICES[at]
}

fn decider(by: &str, via: Via) -> Decider {
    Decider { by: by.into(), via }
}

fn approved() -> Vec<Decider> {
    vec![decider("ann", Via::Mail), decider("ops", Via::Vouched)]
}

fn shortages() -> Vec<Shortage> {
    let layer = Some("tenant".to_owned());
    vec![
        Shortage::Grants { most: 8 },
        Shortage::Money { used: Micros(2_500_000), most: Micros(3_000_000), layer: None },
        Shortage::Mails { sent: 4, most: 4, layer },
        Shortage::Limit { capability: "bash".into() },
    ]
}

fn closings() -> Vec<Closing> {
    let decided = |decision, approved| Closing::Decided { decision, by: decider("kim", Via::Rpc), approved };
    vec![
        decided(Decision::Approve, Vec::new()),
        decided(Decision::Approve, approved()),
        decided(Decision::Refuse, approved()),
        decided(Decision::Discuss, Vec::new()),
        Closing::Answered,
        Closing::Lapsed { approved: Vec::new() },
        Closing::Lapsed { approved: approved() },
        Closing::Voided,
    ]
}

fn notices() -> Vec<Notice> {
    let receipt = Receipt { gate: OpenId(6), session: SessionId([0; 16]), at: NOW };
    let progress = |approved| Progress { approved, need: 3 };
    let mut all = vec![
        Notice::PageCode,
        Notice::Decided { decision: Decision::Refuse, receipt },
        Notice::Decided { decision: Decision::Discuss, receipt },
        Notice::Counted { receipt, progress: progress(approved()) },
        Notice::ApprovedBefore { progress: progress(Vec::new()) },
    ];
    all.extend(shortages().into_iter().map(|shortage| Notice::CannotApprove { shortage }));
    let reasons = [
        NotCounted::Earlier,
        NotCounted::Own,
        NotCounted::Foreign,
        NotCounted::Unseen,
        NotCounted::Empty,
        NotCounted::Unproved,
        NotCounted::NoLongerRecipient,
        NotCounted::ReceiverUnknown,
        NotCounted::ReceiverUnfit,
    ];
    all.extend(reasons.map(|why| Notice::NotCounted { why }));
    all.extend([Notice::Answered { receipt }, Notice::PassedOn, Notice::Commented]);
    all.extend(closings().into_iter().map(|closing| Notice::Late { at: NOW, closing }));
    all.extend([
        Notice::ReplyReceived,
        Notice::ReplyUnclear,
        Notice::ReplyUnexpected,
        Notice::ReplyUnproved,
        Notice::Question { by: "kim".into(), comment: "\nWhy now?\nIt can wait.".into() },
        Notice::Assigned { by: decider("ops", Via::Vouched), to: "sam@acme.example".into() },
    ]);
    all
}

#[test]
fn every_notice_is_rendered() {
    let all = notices();
    for known in NOTICES {
        assert!(all.iter().any(|notice| name(notice) == known), "{known:?} has no sample");
    }
    let mut made = String::new();
    for notice in all {
        let name = name(&notice);
        let written = MessageText::Notice { about: "Deploy web?".into(), notice };
        let mail = text(Channel::Email, &written);
        assert_eq!(mail.content, Content::Text);
        made.push_str(&entry(name, &[mail.subject.as_deref().expect("a subject"), &mail.body]));
    }
    same(&made, include_str!("../expected/notices.txt"));
}

#[test]
fn a_question_in_a_conversation_has_a_line_of_its_own() {
    let question = |comment: &str| MessageText::Notice {
        about: "Deploy web?".into(),
        notice: Notice::Question { by: "kim".into(), comment: comment.into() },
    };
    let (asked, long) = (question("\nWhy now?\nIt can wait."), question(&"é".repeat(300)));
    let subject = |of| text(Channel::Chat, of).subject.expect("a subject").into_owned();
    assert_eq!(subject(&asked), "Question of kim: Why now?");
    assert_eq!(subject(&long).len(), 199, "at most 200 bytes, and no half of a character");
}

#[test]
fn what_an_author_wrote_is_passed_through_and_an_answer_is_not_answered_twice() {
    let written = MessageText::Written { subject: None, body: "<b>Hi</b>".into(), content: Content::Html };
    let said = text(Channel::Email, &written);
    assert_eq!((said.subject, &*said.body, said.content), (None, "<b>Hi</b>", Content::Html));
    let again = MessageText::Notice { about: " RE: Deploy ".into(), notice: Notice::PassedOn };
    assert_eq!(text(Channel::Email, &again).subject.as_deref(), Some("RE: Deploy"));
}

/// Every variant of a warning.
const WARNINGS: [&str; 10] = [
    "no recipients",
    "only the requester",
    "unreachable",
    "waiting",
    "all of nobody",
    "few notified",
    "few asked",
    "not in the directory",
    "unproved bounce",
    "no longer listed",
];

/// A variant that is missing here does not compile; one that has no sample fails the test.
fn name_of_warning(warning: &Warning) -> &'static str {
    let at = match warning {
        Warning::NoRecipients => 0,
        Warning::OnlyRequester { .. } => 1,
        Warning::Unreachable => 2,
        Warning::Waiting { .. } => 3,
        Warning::AllOfNobody => 4,
        Warning::FewNotified { .. } => 5,
        Warning::TooFewRecipients { .. } => 6,
        Warning::NotInDirectory { .. } => 7,
        Warning::UnprovedBounce { .. } => 8,
        Warning::NoLongerListed { .. } => 9,
    };
    WARNINGS[at]
}

#[test]
fn every_warning_is_rendered() {
    let to = vec!["ann@a.example".to_owned(), "bob@a.example".into()];
    let waiting = |cap, more| Warning::Waiting { to: to.clone(), more, full: MailFull { cap, until: NOW } };
    let all = [
        Warning::NoRecipients,
        Warning::OnlyRequester { to: to.clone() },
        Warning::Unreachable,
        waiting(MailCap::Requester, 0),
        waiting(MailCap::Address, 7),
        Warning::AllOfNobody,
        Warning::FewNotified { need: 3, can: 2 },
        Warning::TooFewRecipients { wanted: 4, can: 2, need: 3 },
        Warning::NotInDirectory { who: "eve@a.example".into() },
        Warning::UnprovedBounce { to: "ann@a.example".into() },
        Warning::NoLongerListed { who: to.clone() },
    ];
    for known in WARNINGS {
        assert!(all.iter().any(|one| name_of_warning(one) == known), "{known:?} has no sample");
    }
    let made: String = all.iter().map(|one| entry(name_of_warning(one), &[&warning(one)])).collect();
    same(&made, include_str!("../expected/warnings.txt"));
}

#[test]
fn other_texts_are_rendered() {
    let mut made: String = MailCap::ALL.map(|cap| entry("mail cap", &[&mail_cap(cap)])).concat();
    let (definition, capability) = ("deploy-gate".to_owned(), "bash".to_owned());
    let review = ("yes".to_owned(), "ready".to_owned());
    for subject in [
        RequestSubject::Written("Deploy web?".into()),
        RequestSubject::Call { definition: definition.clone(), capability },
        RequestSubject::Review { definition, answer: review.0, state: review.1 },
        RequestSubject::Approval { state: "pay".into() },
        RequestSubject::Task { state: "rate".into() },
    ] {
        made.push_str(&entry("request", &[&request(&subject)]));
    }
    made.push_str(&entry("reminder", &[&reminder("Deploy web?")]));
    let code = PageCodeFacts { code: "123456", request: "Deploy \u{202e}web?", until: NOW };
    made.push_str(&entry("page code", &[page_code(code).trim_end()]));
    let gate = Gate::open_to_all(GateIx(0), GateKind::ToolAsk, "agent".into());
    let open = Open {
        head: ItemHead { run: RunId(1), node: NodeIx(0), entry: 1, at: NOW, trace: None },
        body: gate,
    };
    made.push_str(&entry("rule", &[&rule(&open)]));
    let (by, comment) = ("kim".to_owned(), "Fine.".to_owned());
    let decided = Resolution::Decided { decision: Decision::Approve, by, comment, via: Via::Vouched };
    for (resolution, status) in [
        (decided, Status::Waiting),
        (Resolution::Lapsed, Status::Waiting),
        (Resolution::Voided, Status::Waiting),
        (Resolution::Voided, Status::Cancelled),
    ] {
        let closed = Closed { open: open.clone(), resolution, at: NOW };
        made.push_str(&entry("outcome", &[&outcome(&closed, status)]));
    }
    same(&made, include_str!("../expected/others.txt"));
}

/// How a mail that asks is answered: each with its text for the plain part and for HTML.
#[test]
fn every_way_to_answer_is_rendered() {
    let choice = ChoiceFacts {
        approve: "approve",
        refuse: "reject",
        also: ("ok, yes", "no, deny"),
        page_only: false,
        discusses: false,
        rule: "Your decision counts.",
    };
    let page = Some("https://acme.example/a/x");
    let facts = |choice, replies| AnswerFacts { choice, replies, page };
    let mut made = entry("the subject", &[&asking("Deploy web?"), &asking("Approve web")]);
    for (name, facts) in [
        ("a choice", facts(Some(choice), true)),
        ("a choice that passes questions on", facts(Some(ChoiceFacts { discusses: true, ..choice }), true)),
        ("a choice that is too long", facts(Some(ChoiceFacts { page_only: true, ..choice }), true)),
        ("a choice without replies", facts(Some(choice), false)),
        ("a text", facts(None, true)),
        ("a text without replies", facts(None, false)),
    ] {
        let html = instruction(&facts);
        let html = html.map(|it| format!("{}: {}", it.heading, marked(&it.text))).unwrap_or_default();
        let lines = answer_lines(&facts).join("\n");
        made.push_str(&entry(name, &[origin(&facts), &lines, &html, page_label(&facts)]));
    }
    let words = [other_words(&choice), other_words(&ChoiceFacts { also: ("ok", ""), ..choice })];
    assert_eq!(words.map(|words| words.is_some()), [true, false]);
    same(&made, include_str!("../expected/answering.txt"));
}

#[test]
fn every_text_of_a_page_is_rendered() {
    let (person, requester) = ("ann@a.example", "kim");
    let states = [
        PageState::Newer,
        PageState::Own { person },
        PageState::NotListed { person },
        PageState::OwnBrowser { requester },
        PageState::Unrecognised { person },
        PageState::Approved { person, at: NOW, comment: "" },
        PageState::Approved { person, at: NOW, comment: "Fine." },
        PageState::Waiting { person },
    ];
    let mut made: String = states.iter().map(|one| entry("state", &[&marked(&page_state(one))])).collect();
    let problems = [
        PageProblem::OwnBrowser { requester },
        PageProblem::Unrecognised,
        PageProblem::Later,
        PageProblem::Uncertain,
        PageProblem::NoCodeNeeded,
        PageProblem::WrongCode { left: 0 },
        PageProblem::WrongCode { left: 1 },
        PageProblem::WrongCode { left: 4 },
        PageProblem::NoSignInNeeded,
        PageProblem::SignInUnavailable,
        PageProblem::NoProvider,
        PageProblem::SignedInAsOther { person },
        PageProblem::AddressUnproved { person },
        PageProblem::NotSignedIn,
        PageProblem::Internal,
    ];
    made.extend(problems.iter().map(|one| entry("problem", &[&page_problem(one)])));
    for absence in [
        PageAbsence::Unknown,
        PageAbsence::Later,
        PageAbsence::Incomplete,
        PageAbsence::SignInUnknown,
        PageAbsence::Internal,
    ] {
        let page = page_absence(absence);
        made.push_str(&entry("absence", &[page.title, page.why.unwrap_or_default()]));
    }
    made.push_str(&entry("kinds", &GateKind::ALL.map(gate_kind)));
    made.push_str(&entry("headings", &[&page_heading(Some("bash")), &page_heading(None)]));
    made.push_str(&entry("comment", &[&commented("kim", NOW)]));
    let asks = [sign_in_as(person), confirm_by_code(person)].map(|pieces| marked(&pieces));
    made.push_str(&entry("recognition", &[&asks[0], &asks[1], &code_label(person), &code_hint()]));
    let labels = [
        PageLabel::NothingRecorded,
        PageLabel::Request,
        PageLabel::Details,
        PageLabel::Comments,
        PageLabel::SignIn,
        PageLabel::SignInHint,
        PageLabel::NoProvider,
        PageLabel::SendCode,
        PageLabel::SendAnotherCode,
        PageLabel::Continue,
    ];
    made.push_str(&entry("labels", &labels.map(page_text)));
    same(&made, include_str!("../expected/pages.txt"));
}

#[test]
fn every_text_of_a_form_is_rendered() {
    let texts = [
        FormText::Decision,
        FormText::Choice { decision: Decision::Approve },
        FormText::Choice { decision: Decision::Refuse },
        FormText::Neither,
        FormText::Comment,
        FormText::CommentHint,
        FormText::Decide,
        FormText::DecideHint { rule: "Your decision counts." },
        FormText::DecideHint { rule: "" },
        FormText::Answer,
        FormText::SendAnswer,
        FormText::HandOverTo,
        FormText::HandOverToHint,
        FormText::Optional,
        FormText::HandOver,
        FormText::HandOverHint,
        FormText::HandedOver,
        FormText::HandedTo { to: "dana" },
    ];
    let mut made: String = texts.iter().map(|one| entry("text", &[&form_text(*one)])).collect();
    let problems = [
        FormProblem::Changed,
        FormProblem::NoQuestion,
        FormProblem::NoAnswer,
        FormProblem::NoDecision,
        FormProblem::NoReceiver,
    ];
    made.extend(problems.iter().map(|one| entry("problem", &[form_problem(*one)])));
    same(&made, include_str!("../expected/forms.txt"));
}

#[test]
fn every_warning_of_a_history_is_rendered() {
    let all = session_warnings();
    let made: String = all.iter().map(|one| entry("warning", &[&session_warning(one)])).collect();
    same(&made, include_str!("../expected/session_warnings.txt"));
}
