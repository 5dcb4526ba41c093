//! Gates that take several approvals.

mod noticed;
mod removed;

use std::collections::BTreeSet;
use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_expr::{ReplyDecision, decision_line};
use switchward_formats::compile_file;
use switchward_machine::{Decision, Digest, OpenId, SessionId, TenantId, Time};
use switchward_messages::session_warning;
use switchward_state::approval::{
    ApprovalCommand, ApprovalEvent, Closed, DecideGate, DiscussGate, MailKey, MailToken, OpenGate, PageProof,
    Quorum, RecordReply, Reminders, Resolution, TokenUse, Via, VoteFact,
};
use switchward_state::catalogue::{
    CatalogueCommand, Directory, DirectoryEntry, InstallMachine, LinkAuth, Role, Settings, Tenancy,
};
use switchward_state::delivery::{DeliveryCommand, DeliveryEvent, EffectBody, Purpose, RecordBounce};
use switchward_state::seal::SEAL_NONCE_BYTES;
use switchward_state::session::{Session, SessionCommand, SessionEvent, Start, Sweep};
use switchward_state::{
    Actor, Body, Command, Event, Key, OpenItem, Reason, Rejection, Reply, Row, Scope, View,
};
use switchward_testkit::{Rng, Rows, ring, start_of};

const TENANT: TenantId = TenantId(1);
const ROUND_MS: u64 = 4 * 3_600_000;
const ANN: &str = "ann@x.example";
const BOB: &str = "bob@x.example";
const CLEO: &str = "cleo@x.example";
const CLEO_AT_HOME: &str = "cleo@home.example";
const DAN: &str = "dan@x.example";
const HEAD: &str = "head@x.example";

/// The channel of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Rpc,
    Page,
    Mail,
}

/// A session at an approval.
struct Table {
    rows: Rows,
    session: SessionId,
    now: Time,
    /// The role of those who send commands.
    role: Role,
    events: Vec<Event>,
}

fn source(asked: &[&str]) -> String {
    let mut all = BTreeSet::new();
    for one in asked {
        match *one {
            "ann" => all.extend([ANN]),
            "cleo" => all.extend([CLEO, CLEO_AT_HOME]),
            address => all.extend([address]),
        }
    }
    let asked: Vec<&str> = all.into_iter().collect();
    format!(
        "name: p\nstates:\n  - name: decide\n    type: approval\n    approvers: [{}]\n    request_template: \
         {{subject_template: Which one, body_template: Say yes or no.}}\n    escalation: {{timeout_hours: 4, \
         escalation_contacts: [{HEAD}, {CLEO_AT_HOME}]}}\n  - {{name: order, type: conversation}}\n  - {{name: \
         refused, type: conversation}}\n  - {{name: clarify, type: conversation}}\n  - {{name: lapsed, type: \
         conversation}}\ntransitions:\n  - {{from: decide, port: approved, to: order}}\n  - {{from: decide, port: \
         rejected, to: refused}}\n  - {{from: decide, port: discussion, to: clarify}}\n  - {{from: decide, port: \
         timeout, to: lapsed}}\n",
        asked.join(", ")
    )
}

fn directory() -> Directory {
    people(&[("ann", &[ANN]), ("cleo", &[CLEO, CLEO_AT_HOME]), ("group:all", &["ann", BOB, "cleo"])])
}

/// A directory of these names, which are ordered, and their members.
fn people(entries: &[(&str, &[&str])]) -> Directory {
    let entry = |(name, members): &(&str, &[&str])| DirectoryEntry {
        name: (*name).to_owned(),
        members: members.iter().map(|&one| one.to_owned()).collect(),
        ..DirectoryEntry::default()
    };
    Directory { entries: entries.iter().map(entry).collect(), ..Directory::default() }
}

impl Table {
    fn set(asked: &[&str], requester: &str, quorum: Option<Quorum>) -> Result<Self, Rejection> {
        Self::begin(directory(), asked, requester, |start| Start { quorum, ..start })
    }

    fn begin(
        people: Directory,
        asked: &[&str],
        requester: &str,
        started: impl FnOnce(Start) -> Start,
    ) -> Result<Self, Rejection> {
        let (session, role) = (SessionId::from_key(TENANT, "s"), Role::Approver);
        let mut table = Self { rows: Rows::default(), session, now: Time(1), role, events: Vec::new() };
        table.put(people);
        let compiled = compile_file("p.yaml", source(asked).as_bytes(), None);
        let machine = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings)).machine;
        let machine = Arc::new(machine);
        let install = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine {
            machine: Arc::clone(&machine),
        }));
        table.submit_to(Scope::Shard, "operator", install)?;
        let start = Start {
            key: Some("s".into()),
            reminders: Some(Reminders { every_ms: 3_600_000, max: 2 }),
            ..start_of("p", 1, machine.digest(), "agent")
        };
        table.submit(requester, Body::Session(SessionCommand::Start(started(start))))?;
        Ok(table)
    }

    /// The tenant has this directory from now on.
    fn put(&mut self, directory: Directory) {
        let tenancy = Tenancy {
            directory,
            ..Tenancy::first(MailKey([5; 32]).sealed(ring(), TENANT, [0; SEAL_NONCE_BYTES]))
        };
        self.rows.apply([(Key::tenancy(TENANT), Some(Arc::new(Row::Tenancy(tenancy))))].into());
    }

    fn submit(&mut self, subject: &str, body: Body) -> Result<Reply, Rejection> {
        self.submit_to(Scope::Session(self.session), subject, body)
    }

    fn submit_to(&mut self, scope: Scope, subject: &str, body: Body) -> Result<Reply, Rejection> {
        let command = Command {
            tenant: TENANT,
            scope,
            request: None,
            expected_sequence: None,
            actor: Actor { subject: subject.into(), role: self.role },
            settings: Settings::default(),
            trace: None,
            address: None,
            body,
        };
        let mut decided = decide(&[command], &self.rows, self.now).unwrap();
        self.events.clear();
        if let Some(decision) = decided.decision {
            self.events = decision.turns.iter().flat_map(|turn| turn.events.clone()).collect();
            let changes = evolve(&decision, &self.rows).unwrap();
            self.rows.apply(changes);
            self.rows.indexed().unwrap();
            self.rows.same(&self.rows.reopened().unwrap(), "read again").unwrap();
        }
        decided.answers.pop().unwrap()
    }

    fn row(&self, key: &Key) -> Option<Row> {
        self.rows.row(key).unwrap().map(|row| Row::clone(&row))
    }

    fn session(&self) -> Session {
        let Some(Row::Session(session)) = self.row(&Key::session(TENANT, self.session)) else {
            panic!("no session")
        };
        session
    }

    fn gate(&self) -> OpenId {
        let session = self.session();
        session.gates().next().or(session.answered.last().copied()).unwrap()
    }

    fn open(&self) -> Option<OpenGate> {
        match self.row(&Key::item(TENANT, self.session, self.gate())) {
            Some(Row::OpenItem(OpenItem::Gate(open))) => Some(*open),
            _ => None,
        }
    }

    fn closed(&self) -> Closed {
        let key = Key::closed(TENANT, self.session, self.gate());
        let Some(Row::Closed(closed)) = self.row(&key) else { panic!("it is open") };
        closed
    }

    /// How many approvals the gate has, and how many it needs.
    fn count(&self) -> (usize, u32) {
        let voting = self.open().unwrap().body.asked.unwrap().voting.unwrap();
        (voting.votes.len(), voting.need)
    }

    fn token(&self, usage: TokenUse, person: &str) -> MailToken {
        let round = self.open().and_then(|open| open.body.asked?.request_of(person)).unwrap_or_default();
        MailKey([5; 32]).token(usage, TENANT, self.session, self.gate(), round, person)
    }

    fn decide(&mut self, how: How, person: &str, decision: Decision) -> Result<Reply, Rejection> {
        let gate = self.gate();
        let comment = String::new();
        match how {
            How::Rpc | How::Page => {
                let proof = (how == How::Page).then(|| {
                    let token = self.token(TokenUse::Page, person);
                    PageProof { token, by: LinkAuth::Link }
                });
                let decide = DecideGate { gate, decision, comment, shown: None, limits: None, proof };
                self.submit(person, Body::Approval(ApprovalCommand::DecideGate(decide)))
            }
            How::Mail => {
                let text = if decision == Decision::Approve { "approve" } else { "reject" };
                let token = Some(self.token(TokenUse::Reply, person));
                self.mail(person, text, token)
            }
        }
    }

    fn mail(&mut self, from: &str, text: &str, token: Option<MailToken>) -> Result<Reply, Rejection> {
        let (from, text) = (from.to_owned(), text.to_owned());
        let reply = RecordReply {
            from,
            subject: "Deploy".to_owned(),
            text,
            authenticated: true,
            signed: true,
            pages_only: false,
            brought_by: None,
            vouched: false,
            model: false,
            token,
            evidence: None,
            limits: None,
        };
        self.submit("mail", Body::Approval(ApprovalCommand::RecordReply(reply)))
    }

    fn approve(&mut self, person: &str) -> Result<Reply, Reason> {
        self.decide(How::Rpc, person, Decision::Approve).map_err(|no| no.reason)
    }

    /// The mails that the last command queued: recipient, purpose and text.
    fn sent(&self) -> Vec<(String, Purpose, String)> {
        let mail = |event: &Event| match event {
            Event::Delivery(DeliveryEvent::Queued { effect }) => match &effect.body {
                EffectBody::Message { channel, to, text, purpose, .. } => {
                    Some((to.clone(), *purpose, switchward_messages::text(*channel, text).body.into_owned()))
                }
                _ => None,
            },
            _ => None,
        };
        self.events.iter().filter_map(mail).collect()
    }

    fn warned(&self) -> Vec<String> {
        let warned = |event: &Event| match event {
            Event::Session(SessionEvent::Warned { warning }) => Some(session_warning(warning)),
            _ => None,
        };
        self.events.iter().filter_map(warned).collect()
    }

    fn later(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        let key = Key::item(TENANT, self.session, self.gate());
        self.submit("clock", Body::Session(SessionCommand::Sweep(Sweep { key }))).unwrap();
    }
}

/// Who has approved a gate, in order.
fn approved_by(closed: &Closed) -> Vec<&str> {
    closed.open.body.votes().map(|vote| vote.by.as_str()).collect()
}

#[test]
fn all_means_everybody_who_was_asked_each_once() {
    let mut table = Table::set(&["ann", BOB, CLEO], "agent", Some(Quorum::All)).unwrap();
    assert_eq!(table.count(), (0, 3));
    assert!(table.approve("ann").is_ok());
    assert_eq!(table.count(), (1, 3));
    // The same person by their address, in capitals, on a page and by mail.
    assert_eq!(table.approve("ANN@X.example").unwrap_err(), Reason::AlreadyResolved);
    let again = table.decide(How::Page, ANN, Decision::Approve).unwrap_err();
    assert_eq!(
        (again.reason, again.message.contains("1 of 3 approvals so far")),
        (Reason::AlreadyResolved, true)
    );
    table.decide(How::Mail, ANN, Decision::Approve).unwrap();
    assert_eq!(table.count(), (1, 3));
    let sent = table.sent();
    assert_eq!((sent.len(), sent[0].0.as_str(), sent[0].1), (1, ANN, Purpose::Inform));
    assert!(sent[0].2.contains("approving again changes nothing"), "{sent:?}");
    // The same person is informed five times at most.
    for mails in [1, 1, 1, 1, 0] {
        table.decide(How::Mail, ANN, Decision::Approve).unwrap();
        assert_eq!(table.sent().len(), mails);
    }
    table.decide(How::Mail, BOB, Decision::Approve).unwrap();
    let sent = table.sent();
    assert!(
        sent[0].2.contains("the request is still open: 2 of 3 approvals so far (ann, bob@x.example)"),
        "{sent:?}"
    );
    table.decide(How::Page, CLEO, Decision::Approve).unwrap();
    let closed = table.closed();
    assert_eq!(approved_by(&closed), ["ann", BOB, CLEO]);
    let Resolution::Decided { decision, by, via, .. } = closed.resolution else { panic!("nobody decided") };
    assert_eq!((decision, by.as_str(), via), (Decision::Approve, CLEO, Via::Page));
    let late = table.decide(How::Rpc, BOB, Decision::Approve).unwrap_err();
    let all = late.facts.iter().find(|(name, _)| *name == "approved_by").map(|(_, all)| all.as_str());
    assert_eq!((late.reason, all), (Reason::AlreadyResolved, Some("ann bob@x.example cleo@x.example")));
}

#[test]
fn without_a_quorum_the_first_decides_and_nothing_of_votes_is_stored() {
    for quorum in [None, Some(Quorum::AtLeast(1))] {
        let mut table = Table::set(&["ann", BOB], "agent", quorum).unwrap();
        assert_eq!(table.session().quorum, quorum);
        assert_eq!(table.open().unwrap().body.asked.unwrap().voting, None);
        table.approve(BOB).unwrap();
        assert!(!table.events.iter().any(|event| matches!(event, Event::Approval(ApprovalEvent::Votes(_)))));
        assert_eq!(approved_by(&table.closed()), Vec::<&str>::new());
    }
}

#[test]
fn a_rejection_ends_it_also_by_one_who_has_approved() {
    for (first, second) in [(ANN, ANN), (ANN, BOB)] {
        let mut table = Table::set(&["ann", BOB, CLEO], "agent", Some(Quorum::AtLeast(2))).unwrap();
        table.approve(first).unwrap();
        table.decide(How::Mail, second, Decision::Refuse).unwrap();
        let Resolution::Decided { decision, by, .. } = table.closed().resolution else {
            panic!("nobody decided")
        };
        assert_eq!((decision, by.as_str()), (Decision::Refuse, second));
    }
}

#[test]
fn who_asked_does_not_count_and_strangers_do_not_either() {
    let mut table = Table::set(&["ann", BOB, CLEO], "ann", Some(Quorum::All)).unwrap();
    assert_eq!(table.count(), (0, 2));
    assert_eq!(table.approve(ANN).unwrap_err(), Reason::SelfApproval);
    assert_eq!(table.approve(DAN).unwrap_err(), Reason::NotAnApprover);
    let gate = table.gate();
    let shown = Some(Digest([9; 32]));
    let decide = DecideGate {
        gate,
        decision: Decision::Approve,
        comment: String::new(),
        shown,
        limits: None,
        proof: None,
    };
    assert_eq!(
        table.submit(BOB, Body::Approval(ApprovalCommand::DecideGate(decide))).unwrap_err().reason,
        Reason::StateMismatch
    );
    assert_eq!(table.count(), (0, 2));
    table.approve(BOB).unwrap();
    table.approve("cleo").unwrap();
    assert_eq!(approved_by(&table.closed()), [BOB, "cleo"]);
}

#[test]
fn one_person_at_two_addresses_approves_once_and_that_is_said() {
    let mut table = Table::set(&["cleo", BOB], "agent", Some(Quorum::All)).unwrap();
    assert!(
        table.warned()[0].ends_with("asks 2 people at 3 addresses: each approves once"),
        "{:?}",
        table.warned()
    );
    assert_eq!(table.count(), (0, 2));
    table.approve(CLEO_AT_HOME).unwrap();
    assert_eq!(table.approve(CLEO).unwrap_err(), Reason::AlreadyResolved);
    table.approve(BOB).unwrap();
    assert!(table.open().is_none());
}

#[test]
fn more_than_are_asked_is_refused_or_recorded_and_waited_for() {
    // This gate asks four people at most, including its escalation.
    let no = Table::set(&["ann", BOB], "agent", Some(Quorum::AtLeast(5))).map(|_| ()).unwrap_err();
    let field = no.facts.iter().find(|(name, _)| *name == "field").map(|(_, field)| field.as_str());
    assert_eq!((no.reason, field), (Reason::FieldInvalid, Some("quorum")));
    for beyond in [0, 1_001] {
        let no = Table::set(&["ann", BOB], "agent", Some(Quorum::AtLeast(beyond))).map(|_| ()).unwrap_err();
        assert_eq!(no.reason, Reason::FieldInvalid);
    }
    let mut table = Table::set(&["ann", BOB], "agent", Some(Quorum::AtLeast(3))).unwrap();
    assert!(
        table.warned()[0]
            .ends_with("needs 3 approvals and asks 2 who may decide: it stays open until more are asked")
    );
    assert_eq!(table.count(), (0, 3), "that fewer are asked lowers nothing");
    table.approve("ann").unwrap();
    table.approve(BOB).unwrap();
    assert_eq!(table.count(), (2, 3));
    assert!(table.open().is_some());
    // More are asked when nobody has decided in time.
    table.later(ROUND_MS);
    assert_eq!(table.count(), (2, 3));
}

#[test]
fn votes_outlast_a_round_and_those_who_voted_are_not_written_to() {
    let mut table = Table::set(&["ann", BOB, CLEO], "agent", Some(Quorum::All)).unwrap();
    table.approve("cleo").unwrap();
    table.decide(How::Mail, BOB, Decision::Approve).unwrap();
    table.later(3_600_000);
    let to: Vec<_> = table.sent().into_iter().map(|(to, purpose, _)| (to, purpose)).collect();
    assert_eq!(to, [(ANN.to_owned(), Purpose::Remind)]);
    table.later(3 * 3_600_000);
    let to: Vec<_> = table.sent().into_iter().map(|(to, purpose, _)| (to, purpose)).collect();
    assert_eq!(to[0], (HEAD.to_owned(), Purpose::Ask));
    // The head is asked too, and `all` means everybody; a person who voted is not asked at another address.
    assert_eq!(to.len(), 1, "{to:?}");
    assert_eq!(table.count(), (2, 4));
    table.approve(HEAD).unwrap();
    table.approve(ANN).unwrap();
    assert!(table.open().is_none());
}

#[test]
fn an_unreachable_approver_is_reported_and_the_gate_stays_open() {
    let mut table = Table::set(&["ann", BOB, CLEO], "agent", Some(Quorum::All)).unwrap();
    table.approve("ann").unwrap();
    let bounce = |table: &mut Table, usage| {
        let bounce = RecordBounce { token: table.token(usage, BOB), message: "no such user".into() };
        table.submit("mail", Body::Delivery(DeliveryCommand::RecordBounce(bounce)))
    };
    // Everybody who got the forwarded mail knows the reply address: a bounce that names it changes nothing.
    for _ in 0..3 {
        bounce(&mut table, TokenUse::Reply).unwrap();
        assert!(table.warned().is_empty() && !table.sent().iter().any(|(to, ..)| to == HEAD));
    }
    bounce(&mut table, TokenUse::Page).expect_err("a page has no bounces");
    bounce(&mut table, TokenUse::Bounce).unwrap();
    assert!(table.warned()[0].ends_with("1 of 3 approvals so far (ann); no mail reaches bob@x.example"));
    assert!(table.sent().iter().any(|(to, ..)| to == HEAD));
    assert_eq!(table.count(), (1, 4));
    // They can decide without a mail.
    for person in [BOB, HEAD, CLEO] {
        table.approve(person).unwrap();
    }
    assert!(table.open().is_none());
}

#[test]
fn what_is_said_beside_is_no_vote() {
    let mut table = Table::set(&["ann", BOB], "agent", Some(Quorum::All)).unwrap();
    table.approve("ann").unwrap();
    let (gate, comment) = (table.gate(), "Why?".to_owned());
    table
        .submit(
            BOB,
            Body::Approval(ApprovalCommand::DiscussGate(DiscussGate {
                gate,
                comment,
                shown: None,
                proof: None,
            })),
        )
        .unwrap();
    let Resolution::Decided { decision, .. } = table.closed().resolution else { panic!("nobody decided") };
    assert_eq!(decision, Decision::Discuss);
}

/// A small model of the rules, in which people are single letters.
#[derive(Debug, Clone)]
struct Model {
    asked: BTreeSet<char>,
    requester: char,
    quorum: Option<Quorum>,
    votes: BTreeSet<char>,
    ended: Option<Decision>,
}

impl Model {
    fn need(&self) -> usize {
        let may = self.asked.iter().filter(|person| **person != self.requester).count();
        match self.quorum {
            None => 1,
            Some(Quorum::All) => may.max(1),
            Some(Quorum::AtLeast(least)) => least as usize,
        }
    }

    fn decide(&mut self, person: char, decision: Decision) {
        if self.ended.is_some() || !self.asked.contains(&person) || person == self.requester {
            return;
        }
        if decision == Decision::Refuse {
            self.ended = Some(decision);
            return;
        }
        self.votes.insert(person);
        if self.votes.len() >= self.need() {
            self.ended = Some(decision);
        }
    }
}

const NAMES: [(char, &[&str]); 6] = [
    ('a', &["ann", ANN, "Ann@X.Example"]),
    ('b', &[BOB, "BOB@x.example"]),
    ('c', &["cleo", CLEO, CLEO_AT_HOME]),
    ('d', &[DAN, "dan@X.example"]),
    ('h', &[HEAD]),
    ('e', &["eve@x.example"]),
];

/// Returns true if the gate asks at an address that this name stands for.
fn reaches(open: &OpenGate, name: &str) -> bool {
    open.body.addresses(name) || directory().addresses(name).iter().any(|one| open.body.addresses(one))
}

fn play(seed: u64) -> (Model, usize) {
    let mut rng = Rng::new(seed);
    let all = ["ann", BOB, CLEO, DAN, "cleo"];
    let mut asked: Vec<&str> = all.into_iter().filter(|_| rng.once_in(2)).collect();
    if asked.is_empty() {
        asked.push(BOB);
    }
    let composed = |one: &str| one.chars().next().unwrap();
    let requester = *rng.pick(&["agent", "ann", ANN]);
    let quorum = *rng.pick(&[None, Some(Quorum::All), Some(Quorum::AtLeast(2)), Some(Quorum::AtLeast(3))]);
    let mut model = Model {
        asked: asked.iter().map(|one| composed(one)).collect(),
        requester: if requester == "agent" { '-' } else { 'a' },
        quorum,
        votes: BTreeSet::new(),
        ended: None,
    };
    let Ok(mut table) = Table::set(&asked, requester, quorum) else {
        // The quorum is larger than the number of people.
        let ever = model.asked.iter().chain(&['h', 'c']).collect::<BTreeSet<_>>().len();
        let least = if let Some(Quorum::AtLeast(least)) = quorum { least as usize } else { 0 };
        assert!(least > ever, "seed {seed}: refused for nothing");
        return (model, 0);
    };
    let mut steps = 0;
    while model.ended.is_none() && steps < 30 {
        steps += 1;
        let open = table.open().unwrap_or_else(|| panic!("seed {seed}: it is closed, and not for {model:?}"));
        if rng.once_in(8) && open.body.asked.as_ref().unwrap().round == 0 {
            table.later(ROUND_MS);
            // A person who has voted is not asked again.
            model.asked.insert('h');
            model.asked.insert('c');
        } else {
            let (person, names) = *rng.pick(&NAMES);
            let name = *rng.pick(names);
            let how = *rng.pick(&[How::Rpc, How::Page, How::Mail]);
            let decision = if rng.once_in(12) { Decision::Refuse } else { Decision::Approve };
            let done = table.decide(how, name, decision);
            // Mails and pages are for addresses that were written to.
            let counts = if how == How::Rpc { reaches(&open, name) } else { open.body.wrote_to(name) };
            if counts {
                let again = model.votes.contains(&person) && decision == Decision::Approve;
                model.decide(person, decision);
                let own = person == model.requester;
                assert_eq!(
                    done.is_err(),
                    how != How::Mail && (again || own),
                    "seed {seed}: {name} {how:?} {done:?}"
                );
            }
        }
        agrees(seed, &table, &model);
    }
    (model, steps)
}

fn agrees(seed: u64, table: &Table, model: &Model) {
    let votes = table
        .events
        .iter()
        .filter(|event| matches!(event, Event::Approval(ApprovalEvent::Votes(VoteFact::Given { .. }))));
    assert!(votes.count() <= 1, "seed {seed}: {:?}", table.events);
    match (model.ended, table.open()) {
        (None, Some(open)) => {
            let Some(voting) = open.body.asked.unwrap().voting else {
                assert_eq!((model.quorum, model.votes.len()), (None, 0), "seed {seed}");
                return;
            };
            let found = (voting.votes.len(), voting.need as usize);
            assert_eq!(found, (model.votes.len(), model.need()), "seed {seed}: {model:?} {voting:?}");
        }
        (Some(ended), None) => {
            let closed = table.closed();
            let Resolution::Decided { decision, .. } = closed.resolution else {
                panic!("seed {seed}: nobody decided")
            };
            assert_eq!(decision, ended, "seed {seed}");
            let counted = if model.quorum.is_some() { model.votes.len() } else { 0 };
            assert_eq!(approved_by(&closed).len(), counted, "seed {seed}: {model:?}");
        }
        (None, None) => panic!("seed {seed}: it is closed, and {model:?}"),
        (Some(_), Some(open)) => panic!("seed {seed}: it is open, and {model:?} {open:?}"),
    }
}

#[test]
fn random_votes_are_counted_as_a_simple_model_counts_them() {
    let (mut approved, mut refused, mut waiting, mut steps) = (0, 0, 0, 0);
    for seed in 1..=600 {
        let (model, played) = play(seed);
        steps += played;
        match model.ended {
            Some(Decision::Approve) if model.votes.len() > 1 => approved += 1,
            Some(Decision::Refuse) => refused += 1,
            Some(_) => {}
            None => waiting += 1,
        }
    }
    // The runs must cover enough to be worth something.
    let met = format!("{approved} approved by several, {refused} refused, {waiting} waiting, {steps} steps");
    assert!(approved > 60 && refused > 60 && waiting > 5 && steps > 3_000, "{met}");
}

/// Mails ask for the words by which gates are decided: a reply with such a word and a courtesy decides.
#[test]
fn the_words_that_mails_ask_for_decide() {
    for (decision, verdict) in
        [(Decision::Approve, ReplyDecision::Approve), (Decision::Refuse, ReplyDecision::Reject)]
    {
        let line = format!("{}, thanks!", decision.word().to_uppercase());
        assert_eq!(decision_line::<&str>(&line, &[], &[], &[]), verdict, "{line}");
    }
}
