//! The hourly mail caps, and the part reserved for gates of which nobody is notified yet.

use switchward_state::catalogue::CatalogueCommand;
use switchward_state::delivery::{DeliveryCommand, DeliveryEvent};
use switchward_state::run::RunCommand;
use switchward_state::session::SessionCommand;
mod memory;

use memory::{Rows, sealed};
use std::sync::Arc;
use switchward_engine::{decide, evolve, gate_view};
use switchward_formats::compile_file;
use switchward_machine::{OpenId, SessionId, TenantId, Time};
use switchward_messages::warning;
use switchward_state::approval::{ApprovalCommand, MailKey, Reminders, SendPageCode, TokenUse, Warning};
use switchward_state::catalogue::{InstallMachine, InstallTenancy, Role, Tenancy};
use switchward_state::delivery::{
    AckEffect, DeferEffect, DismissEffect, Effect, EffectBody, FailEffect, FailureCode, MailCap, MailFull,
    Purpose, mail_counts, mail_full,
};
use switchward_state::limits::{
    HOUR_MS, MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX, MAILS_TO_ADDRESS_HOUR_MAX, MAILS_UNNOTIFIED_PART,
    PAGE_CODES_HOUR_MAX,
};
use switchward_state::policy::time_text;
use switchward_state::run::Answer;
use switchward_state::seal::SecretOf;
use switchward_state::session::{Start, Sweep};
use switchward_state::{Actor, Body, Command, Event, Key, Kind, OpenItem, Row, Scope, index_keys};
use switchward_testkit::start_of;

const TENANT: TenantId = TenantId(7);
const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": {
        "ask": { "question": "What now?", "answers": { "help": { "next": "ask", "action": "notify_human" } } }
    }
}"#;
/// The start of an hour.
const START: Time = Time(1_000 * HOUR_MS);

/// A shard with the process, and its current time.
struct Shard {
    rows: Rows,
    now: Time,
    sessions: u8,
    machine: switchward_machine::Digest,
}

impl Shard {
    fn new() -> Self {
        let compiled = compile_file("definition.json", PROCESS.as_bytes(), None);
        let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
        let machine = Arc::new(definition.machine);
        let tenancy = Tenancy::first(Some(sealed(TENANT, SecretOf::Mail, &[1; 32])));
        let mut shard = Self { rows: Rows::default(), now: START, sessions: 0, machine: machine.digest() };
        shard.execute(
            "admin",
            Scope::Shard,
            Body::Catalogue(CatalogueCommand::InstallTenancy(InstallTenancy { tenancy })),
        );
        shard.execute(
            "admin",
            Scope::Shard,
            Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine })),
        );
        shard
    }

    /// Executes a command; replaying its decision must give the same rows.
    fn execute(&mut self, subject: &str, scope: Scope, body: Body) -> Vec<Event> {
        let actor = Actor { subject: subject.into(), role: Role::Admin };
        let command = Command { actor, ..Command::of_server(TENANT, scope, body) };
        let decided = decide(&[command], &self.rows, self.now).expect("the rows can be read");
        decided.answers.into_iter().next().expect("one answer").expect("it is not refused");
        let Some(decision) = decided.decision else { return Vec::new() };
        assert_eq!(evolve(&decision, &self.rows).expect("it fits"), decided.changes);
        self.rows.apply(decided.changes);
        decision.turns.into_iter().flat_map(|turn| turn.events).collect()
    }

    /// A requester asks these people in a new session: returns its id, the gate and the mails.
    fn ask(&mut self, subject: &str, people: &[&str]) -> (SessionId, OpenId, Vec<Effect>) {
        self.sessions += 1;
        let id = SessionId([self.sessions; 16]);
        let audience = people.iter().map(|one| (*one).to_owned()).collect();
        self.execute(
            subject,
            Scope::Session(id),
            Body::Session(SessionCommand::Start(start(self.machine, audience))),
        );
        let answer = Answer { answer: "help".into(), state: None, note: String::new() };
        let events = self.execute(subject, Scope::Session(id), Body::Run(RunCommand::Answer(answer)));
        let (gate, mails) = queued(events);
        (id, gate, mails)
    }

    /// Why a mail must wait, if it must.
    fn full(&self, id: SessionId, mail: &Effect) -> Option<MailFull> {
        let counts = mail_counts(&self.rows, TENANT, id, mail, self.now).expect("rows can be read");
        assert!(!counts.is_empty(), "a mail is counted");
        mail_full(&self.rows, TENANT, id, mail, &counts, self.now, |_| 0).expect("rows can be read")
    }

    fn sent(&mut self, id: SessionId, mail: &Effect) {
        self.execute(
            "",
            Scope::Session(id),
            Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: mail.number })),
        );
    }

    /// Asks until a mail must wait: returns how many were sent, and the one that waits.
    fn ask_until_full(&mut self, subject: &str, to: &str) -> (u32, SessionId, OpenId, Effect, MailFull) {
        for count in 0.. {
            let (id, gate, mails) = self.ask(subject, &[to]);
            let mail = mails.into_iter().next().expect("a mail");
            match self.full(id, &mail) {
                Some(full) => return (count, id, gate, mail, full),
                None => self.sent(id, &mail),
            }
        }
        unreachable!("the loop has no end")
    }

    fn warnings(&self, id: SessionId, gate: OpenId) -> (bool, Vec<String>) {
        let view = gate_view(&self.rows, TENANT, id, gate).expect("rows can be read").expect("a gate");
        (view.unnotified(), view.warnings().iter().map(warning).collect())
    }

    fn counted(&self) -> Vec<Key> {
        self.rows.0.keys().filter(|key| key.is(Kind::Mailed)).cloned().collect()
    }
}

/// The mails that are queued, and the gate that they are about.
fn queued(events: Vec<Event>) -> (OpenId, Vec<Effect>) {
    let mail = |event| {
        if let Event::Delivery(DeliveryEvent::Queued { effect }) = event { Some(effect) } else { None }
    };
    let mails: Vec<Effect> = events.into_iter().filter_map(mail).collect();
    let EffectBody::Message { gate: Some(gate), .. } = mails.first().expect("a mail").body else {
        panic!("{mails:?} are about no gate")
    };
    (gate, mails)
}

fn start(machine: switchward_machine::Digest, audience: Vec<String>) -> Start {
    Start { audience, ..start_of("gate", 1, machine, "agent") }
}

#[test]
fn one_requester_cannot_use_up_an_address() {
    let mut shard = Shard::new();
    let (count, id, gate, _, full) = shard.ask_until_full("flood", "Kim@acme.example");
    let until = START.after_ms(HOUR_MS);
    assert_eq!(full, MailFull { cap: MailCap::RequesterToAddress, until });
    assert_eq!(
        count, MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX,
        "requests of gates that nobody knows of use all"
    );
    let said = format!(
        "not notified before {}: Kim@acme.example; one requester causes at most 60 mails to one address in an hour",
        time_text(until)
    );
    assert_eq!(shard.warnings(id, gate), (true, vec![said]), "it is said before anybody tries to send it");
    let (other, gate, mails) = shard.ask("other", &["kim@acme.example"]);
    assert_eq!(shard.full(other, &mails[0]), None, "another requester still reaches them");
    assert_eq!(shard.warnings(other, gate), (false, Vec::new()));
    for spelling in ["kim+1@acme.example", "KIM+two@Acme.Example."] {
        let (same, _, mails) = shard.ask("flood", &[spelling]);
        let full = shard.full(same, &mails[0]);
        assert_eq!(
            full,
            Some(MailFull { cap: MailCap::RequesterToAddress, until }),
            "{spelling} is the same mailbox"
        );
    }
    let (_, _, mails) = shard.ask("flood", &["dana@acme.example"]);
    assert_eq!(shard.full(SessionId([shard.sessions; 16]), &mails[0]), None, "they reach others");
}

#[test]
fn the_last_part_of_a_cap_is_for_gates_that_nobody_knows_of() {
    let mut shard = Shard::new();
    let (first, ..) = shard.ask_until_full("one", "kim@acme.example");
    let ordinary = MAILS_TO_ADDRESS_HOUR_MAX - MAILS_TO_ADDRESS_HOUR_MAX / MAILS_UNNOTIFIED_PART;
    for _ in first..ordinary {
        let (id, _, mails) = shard.ask("two", &["kim@acme.example"]);
        shard.sent(id, &mails[0]);
    }
    let (id, _, mails) = shard.ask("three", &["dana@acme.example", "kim@acme.example"]);
    assert_eq!(shard.full(id, &mails[1]), None, "nobody knows of it");
    shard.sent(id, &mails[0]);
    let full = shard.full(id, &mails[1]).expect("Dana knows of it");
    assert_eq!(full.cap, MailCap::Address);
    let (id, _, mails) = shard.ask("three", &["kim@acme.example"]);
    assert_eq!(shard.full(id, &mails[0]), None, "nobody knows of this one");
    shard.now = START.after_ms(HOUR_MS);
    assert_eq!(shard.full(id, &mails[0]), None, "another hour has begun");
}

#[test]
fn a_mail_that_was_put_off_for_a_cap_is_said_to_wait_until_then() {
    let mut shard = Shard::new();
    let (id, gate, mails) = shard.ask("one", &["kim@acme.example", "dana@acme.example"]);
    let until = START.after_ms(HOUR_MS);
    let code = FailureCode::MailCap(MailCap::Tenant);
    let attempt = mails[0].attempt();
    let wait_ms = until.since_ms(shard.now);
    let defer = DeferEffect { number: mails[0].number, attempt, wait_ms, code, detail: None, made: false };
    shard.execute("", Scope::Session(id), Body::Delivery(DeliveryCommand::DeferEffect(defer)));
    let (unnotified, warnings) = shard.warnings(id, gate);
    assert!(!unnotified, "the other is told");
    let said = format!(
        "not notified before {}: kim@acme.example; the tenant sends at most 20000 mails in an hour",
        time_text(until)
    );
    assert_eq!(warnings, [said]);
    shard.now = until;
    shard.execute("", Scope::Shard, Body::Session(SessionCommand::Sweep(Sweep { key: Key::clock() })));
    shard.sent(id, &mails[1]);
    assert_eq!(shard.warnings(id, gate), (false, Vec::new()));
}

#[test]
fn a_reminder_that_waits_does_not_make_its_person_one_who_knows_nothing() {
    let mut shard = Shard::new();
    let id = SessionId([99; 16]);
    let reminders = Some(Reminders { every_ms: HOUR_MS, max: 2 });
    let start = Start { reminders, ..start(shard.machine, vec!["kim@acme.example".to_owned()]) };
    shard.execute("one", Scope::Session(id), Body::Session(SessionCommand::Start(start)));
    let answer = Answer { answer: "help".into(), state: None, note: String::new() };
    let (gate, mails) =
        queued(shard.execute("one", Scope::Session(id), Body::Run(RunCommand::Answer(answer))));
    shard.sent(id, &mails[0]);
    shard.now = START.after_ms(HOUR_MS);
    let key = Key::item(TENANT, id, gate);
    let (_, reminders) =
        queued(shard.execute("", Scope::Session(id), Body::Session(SessionCommand::Sweep(Sweep { key }))));
    let code = FailureCode::MailCap(MailCap::Address);
    let (number, attempt) = (reminders[0].number, reminders[0].attempt());
    let wait_ms = HOUR_MS;
    let defer = DeferEffect { number, attempt, wait_ms, code, detail: None, made: false };
    shard.execute("", Scope::Session(id), Body::Delivery(DeliveryCommand::DeferEffect(defer)));
    assert_eq!(shard.warnings(id, gate), (false, Vec::new()));
}

#[test]
fn a_request_that_was_dismissed_has_notified_nobody() {
    let mut shard = Shard::new();
    let (id, gate, mails) = shard.ask("one", &["kim@acme.example"]);
    let number = mails[0].number;
    let fail = FailEffect { number, code: FailureCode::MailNotConfigured, detail: None, round: None };
    shard.execute("", Scope::Session(id), Body::Delivery(DeliveryCommand::FailEffect(fail)));
    let unreached = (true, vec![warning(&Warning::Unreachable)]);
    assert_eq!(shard.warnings(id, gate), unreached);
    let dismiss = Body::Delivery(DeliveryCommand::DismissEffect(DismissEffect { number }));
    shard.execute("operator", Scope::Session(id), dismiss);
    assert_eq!(shard.warnings(id, gate), unreached, "nobody has read it");
}

#[test]
fn who_has_a_later_request_is_notified_when_an_earlier_one_is_dismissed() {
    let mut shard = Shard::new();
    let (id, kim) = (SessionId([99; 16]), "kim@acme.example".to_owned());
    let start = Start { escalation: vec![kim.clone()], ..start(shard.machine, vec![kim]) };
    shard.execute("one", Scope::Session(id), Body::Session(SessionCommand::Start(start)));
    let answer = Answer { answer: "help".into(), state: None, note: String::new() };
    let (gate, first) =
        queued(shard.execute("one", Scope::Session(id), Body::Run(RunCommand::Answer(answer))));
    let number = first[0].number;
    let fail = FailEffect { number, code: FailureCode::MailNotConfigured, detail: None, round: None };
    let fail = Body::Delivery(DeliveryCommand::FailEffect(fail));
    let (_, later) = queued(shard.execute("", Scope::Session(id), fail));
    shard.sent(id, &later[0]);
    let dismiss = Body::Delivery(DeliveryCommand::DismissEffect(DismissEffect { number }));
    shard.execute("operator", Scope::Session(id), dismiss);
    assert_eq!(shard.warnings(id, gate), (false, Vec::new()));
}

#[test]
fn a_count_is_kept_with_the_rows_and_removed_when_its_hour_is_over() {
    let mut shard = Shard::new();
    let (id, _, mails) = shard.ask("one", &["kim@acme.example"]);
    assert_eq!(shard.counted(), [], "nothing has gone out");
    shard.sent(id, &mails[0]);
    shard.sent(id, &mails[0]);
    let counted = shard.counted();
    assert_eq!(counted.len(), 5);
    for key in &counted {
        assert_eq!(
            shard.rows.0.get(key).map(|row| (**row).clone()),
            Some(Row::Mailed(1)),
            "it is counted once"
        );
        assert_eq!(index_keys(key, &Row::Mailed(1)).len(), 1, "it falls due");
    }
    let mut sweep = |now: Time| {
        shard.now = now;
        for key in &counted {
            shard.execute("", Scope::Shard, Body::Session(SessionCommand::Sweep(Sweep { key: key.clone() })));
        }
        shard.counted().len()
    };
    assert_eq!(sweep(START.after_ms(2 * HOUR_MS - 1)), 5);
    assert_eq!(sweep(START.after_ms(2 * HOUR_MS)), 0);
}

#[test]
fn what_the_server_itself_causes_counts_for_nobody() {
    let mut shard = Shard::new();
    let (id, _, mails) = shard.ask("server", &["kim@acme.example"]);
    let caps = |shard: &Shard| {
        let counts = mail_counts(&shard.rows, TENANT, id, &mails[0], START).expect("rows can be read");
        counts.into_iter().map(|count| count.cap).collect::<Vec<_>>()
    };
    assert_eq!(caps(&shard).len(), 5, "a key that is called so started it");
    let first = Key::history(TENANT, id, 0);
    let Some(Row::History(history)) = shard.rows.0.get(&first).map(|row| (**row).clone()) else {
        panic!("it has a history")
    };
    let mut history = switchward_state::History::clone(&history);
    history.by = Actor::server();
    shard.rows.0.insert(first, Arc::new(Row::History(history.into())));
    assert_eq!(caps(&shard), [MailCap::Tenant, MailCap::Definition, MailCap::Address]);
}

#[test]
fn a_code_for_a_decision_page_is_not_counted() {
    let mut shard = Shard::new();
    let (id, _, mails) = shard.ask("one", &["kim@acme.example"]);
    let mut code = mails[0].clone();
    let EffectBody::Message { purpose, .. } = &mut code.body else { panic!("{code:?} is no mail") };
    *purpose = Purpose::Code;
    assert_eq!(mail_counts(&shard.rows, TENANT, id, &code, START), Ok(Vec::new()));
}

#[test]
fn a_code_for_a_decision_page_takes_nothing_from_what_its_session_may_send() {
    let mut shard = Shard::new();
    let kim = "kim@acme.example";
    let (id, gate, _) = shard.ask("one", &[kim]);
    let Some(Row::OpenItem(OpenItem::Gate(open))) =
        shard.rows.0.get(&Key::item(TENANT, id, gate)).map(|row| (**row).clone())
    else {
        panic!("the gate is open")
    };
    let request = open.body.asked.and_then(|asked| asked.request_of(kim)).expect("they are asked");
    let token = MailKey([1; 32]).token(TokenUse::Page, TENANT, id, gate, request, kim);
    let send = || Body::Approval(ApprovalCommand::SendPageCode(SendPageCode { token: token.clone() }));
    for _ in 0..PAGE_CODES_HOUR_MAX {
        let (_, codes) = queued(shard.execute(kim, Scope::Session(id), send()));
        assert_eq!(codes.len(), 1);
    }
    let Some(Row::Session(session)) = shard.rows.0.get(&Key::session(TENANT, id)).map(|row| (**row).clone())
    else {
        panic!("there is a session")
    };
    assert_eq!(session.mailed.map(|day| day.on(START)), Some(1), "the request alone");
}
