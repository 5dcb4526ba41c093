//! People whom the directory led to when a gate asked, and does not lead to any more.

use super::*;
use switchward_engine::gate_view;
use switchward_state::approval::{ReplyOutcome, Warning};

/// The directory without Ann.
fn without_ann() -> Directory {
    people(&[("cleo", &[CLEO, CLEO_AT_HOME]), ("group:all", &[BOB, "cleo"])])
}

/// The directory in which Ann is in no group.
fn alone() -> Directory {
    people(&[("ann", &[ANN]), ("cleo", &[CLEO, CLEO_AT_HOME]), ("group:all", &[BOB, "cleo"])])
}

/// An approval that asks whom this name stands for.
fn asking(name: &str, people: Directory) -> Table {
    let contact = Some(name.to_owned());
    Table::begin(people, &["conversation_contact"], "agent", |start| Start { contact, ..start }).unwrap()
}

impl Table {
    /// The people whom the gate warns of.
    fn lost(&self) -> Vec<String> {
        let view = gate_view(&self.rows, TENANT, self.session, self.gate()).unwrap().unwrap();
        let lost = view.warnings().iter().find_map(|warning| match warning {
            Warning::NoLongerListed { who } => Some(who.clone()),
            _ => None,
        });
        for one in lost.iter().flatten() {
            assert!(view.has_lost(one) && view.has_lost(&one.to_uppercase()), "{one}");
        }
        lost.unwrap_or_default()
    }

    fn refuses(&mut self, how: How, person: &str) {
        for decision in [Decision::Approve, Decision::Refuse] {
            let done = self.decide(how, person, decision);
            if how == How::Mail {
                let Ok(Reply::Replied { outcome, .. }) = done else { panic!("{done:?}") };
                assert_eq!(outcome, ReplyOutcome::Foreign, "{person}");
            } else {
                let no = done.unwrap_err();
                let fact = no.fact_named("problem");
                assert_eq!((no.reason, fact), (Reason::NotAnApprover, Some("not_in_directory")), "{person}");
                assert!(
                    no.message.contains("the directory does not lead to them any more"),
                    "{}",
                    no.message
                );
            }
            assert!(self.open().is_some(), "{person} {how:?}");
        }
    }

    fn say(&mut self, how: How, person: &str) -> Result<Reply, Rejection> {
        let (gate, comment) = (self.gate(), "Why?".to_owned());
        let proof = (how == How::Page)
            .then(|| PageProof { token: self.token(TokenUse::Page, person), by: LinkAuth::Link });
        let discuss = DiscussGate { gate, comment, shown: None, proof };
        self.submit(person, Body::Approval(ApprovalCommand::DiscussGate(discuss)))
    }

    fn assign(&mut self, by: &str, role: Role, to: &str) -> Result<Reply, Reason> {
        let (gate, to, comment) = (self.gate(), to.to_owned(), String::new());
        let assign = ApprovalCommand::AssignGate { gate, from: None, to, comment, shown: None, proof: None };
        let before = std::mem::replace(&mut self.role, role);
        let done = self.submit(by, Body::Approval(assign)).map_err(|no| no.reason);
        self.role = before;
        done
    }
}

#[test]
fn who_is_removed_decides_no_more_and_who_is_added_again_does() {
    for how in [How::Rpc, How::Page, How::Mail] {
        let mut table = Table::set(&["ann", BOB], "agent", None).unwrap();
        assert_eq!(table.lost(), [""; 0]);
        table.put(without_ann());
        assert_eq!(table.lost(), [ANN]);
        table.refuses(how, ANN);
        if how == How::Mail {
            let sent = table.sent();
            assert_eq!((sent.len(), sent[0].0.as_str(), sent[0].1), (1, ANN, Purpose::Inform));
            assert!(sent[0].2.contains("the directory does not lead to you any more"), "{sent:?}");
        } else {
            assert_eq!(table.say(how, ANN).unwrap_err().reason, Reason::NotAnApprover);
            assert!(table.open().is_some());
        }
        table.put(directory());
        assert_eq!(table.lost(), [""; 0]);
        table.decide(how, ANN, Decision::Approve).unwrap();
        assert!(table.open().is_none(), "{how:?}");
    }
}

#[test]
fn who_is_removed_from_the_group_that_was_asked_decides_no_more() {
    let mut table = asking("group:all", directory());
    assert_eq!(table.open().unwrap().body.asked.unwrap().listed.names, ["group:all"]);
    table.put(alone());
    assert_eq!(table.lost(), [ANN]);
    for (how, name) in [(How::Rpc, "ann"), (How::Rpc, ANN), (How::Page, ANN), (How::Mail, ANN)] {
        table.refuses(how, name);
    }
    assert_eq!(table.say(How::Page, ANN).unwrap_err().reason, Reason::NotAnApprover);
    table.decide(How::Mail, BOB, Decision::Refuse).unwrap();
    assert!(table.open().is_none());
    // Where Ann was asked by name, the group does not matter.
    let mut table = asking("ann", directory());
    table.put(alone());
    assert_eq!(table.lost(), [""; 0]);
    table.decide(How::Page, ANN, Decision::Approve).unwrap();
    assert!(table.open().is_none());
}

#[test]
fn who_is_removed_from_the_entry_whose_people_were_asked_decides_no_more() {
    let audience = || vec![ANN.to_owned()];
    let owners = people(&[("ann", &[ANN]), ("owner:p", &["ann", BOB])]);
    let defaults = Directory { audience: audience(), ..people(&[("ann", &[ANN])]) };
    let mine = people(&[("ann", &[ANN]), ("owner:p", &[BOB])]);
    for (before, after) in [(owners, mine), (defaults, people(&[("ann", &[ANN])]))] {
        // Nobody but the audience is left to ask.
        let mut table = asking("eve@x.example", before.clone());
        assert!(table.open().unwrap().body.wrote_to(ANN));
        table.put(after);
        assert_eq!(table.lost(), [ANN]);
        table.refuses(How::Page, ANN);
        table.put(before);
        table.decide(How::Page, ANN, Decision::Approve).unwrap();
        assert!(table.open().is_none());
    }
}

#[test]
fn an_address_that_the_directory_never_held_is_not_affected() {
    for before in [directory(), Directory::default()] {
        let mut table = Table::begin(before, &[DAN], "agent", |start| start).unwrap();
        assert!(table.open().unwrap().body.asked.unwrap().listed.is_empty());
        table.put(Directory::default());
        assert_eq!(table.lost(), [""; 0]);
        table.decide(How::Mail, DAN, Decision::Approve).unwrap();
        assert!(table.open().is_none());
    }
}

#[test]
fn a_vote_that_was_given_before_still_counts() {
    let mut table = Table::set(&["ann", BOB], "agent", Some(Quorum::All)).unwrap();
    table.approve("ann").unwrap();
    table.put(without_ann());
    assert_eq!(table.lost(), [""; 0], "nobody has to decide for Ann");
    table.refuses(How::Page, ANN);
    assert_eq!(table.count(), (1, 2));
    table.approve(BOB).unwrap();
    assert_eq!(approved_by(&table.closed()), ["ann", BOB]);
}

#[test]
fn a_removed_person_assigns_nothing_and_an_operator_assigns_what_was_theirs() {
    let mut table = Table::set(&["ann"], "agent", None).unwrap();
    table.put(without_ann());
    assert_eq!(table.assign(ANN, Role::Approver, "cleo").unwrap_err(), Reason::NotAnApprover);
    assert_eq!(table.assign("ops", Role::Operator, ANN).unwrap_err(), Reason::FieldInvalid);
    table.assign("ops", Role::Operator, "cleo").unwrap();
    assert_eq!(table.lost(), [""; 0]);
    // What is assigned is asked by name, and lost as that.
    table.put(people(&[("ann", &[ANN])]));
    assert_eq!(table.lost(), [CLEO]);
    table.refuses(How::Mail, CLEO);
    table.assign("ops", Role::Operator, "ann").unwrap();
    table.decide(How::Mail, ANN, Decision::Approve).unwrap();
    assert!(table.open().is_none());
}

#[test]
fn without_a_directory_nobody_is_brought_back_by_an_assignment() {
    let any = |start| Start { any_approver_address: true, ..start };
    let mut table = Table::begin(directory(), &["ann", DAN], "agent", any).unwrap();
    table.put(Directory::default());
    assert_eq!(table.assign("ops", Role::Operator, ANN).unwrap_err(), Reason::FieldInvalid);
    assert_eq!(table.assign(DAN, Role::Approver, ANN).unwrap_err(), Reason::FieldInvalid);
    table.assign("ops", Role::Operator, "eve@x.example").unwrap();
    table.decide(How::Mail, "eve@x.example", Decision::Approve).unwrap();
    assert!(table.open().is_none());
}

#[test]
fn removed_people_are_not_reminded_and_later_rounds_ask_whom_the_directory_has() {
    let mut table = Table::set(&["ann", BOB], "agent", None).unwrap();
    table.put(without_ann());
    table.later(3_600_000);
    let to: Vec<_> = table.sent().into_iter().map(|(to, purpose, _)| (to, purpose)).collect();
    assert_eq!(to, [(BOB.to_owned(), Purpose::Remind)]);
    table.later(ROUND_MS - 3_600_000);
    let asked: Vec<_> = table.sent().into_iter().filter(|(_, purpose, _)| *purpose == Purpose::Ask).collect();
    let to: Vec<_> = asked.into_iter().map(|(to, ..)| to).collect();
    assert_eq!(to, [HEAD, CLEO_AT_HOME]);
    assert_eq!(table.lost(), [ANN]);
    table.put(Directory::default());
    assert_eq!(table.lost(), [ANN, BOB, CLEO_AT_HOME]);
    table.refuses(How::Mail, CLEO_AT_HOME);
    table.decide(How::Mail, HEAD, Decision::Approve).unwrap();
    assert!(table.open().is_none());
}
