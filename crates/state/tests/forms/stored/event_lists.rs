//! Events of the kinds that the golden file of decisions holds.

use super::*;

pub(crate) fn moves() -> Vec<Event> {
    let (run, node) = (RunId(1), NodeIx(1));
    vec![
        Event::Session(SessionEvent::Started {
            definition: "deploy-gate".into(),
            version: 3,
            machine: digest(),
            key: Some("release-42".into()),
            role: "agent".into(),
            without_policy: true,
            labels: vec![("team".into(), "web".into())],
            input: b"{}".to_vec(),
            contact: Some("sam@example.com".into()),
            workflows: vec![attached()],
            any_approver_address: false,
        }),
        Event::Run(RunEvent::Created {
            run,
            machine: digest(),
            of: Some(("shipping".into(), 2)),
            queued: true,
        }),
        Event::Run(RunEvent::Entered { run, node }),
        Event::Run(RunEvent::ActBegun { run, act: ActIx(1) }),
        Event::Run(RunEvent::Answered { run, node, answer: "yes".into(), note: "checked".into() }),
        Event::Run(RunEvent::Left { run, node, exit: ExitIx(0) }),
        Event::Run(RunEvent::Ended {
            run,
            ending: Ending::plain(Outcome::Cancelled),
            comment: EndComment::Written("enough".into()),
        }),
        Event::Session(SessionEvent::Warned {
            warning: SessionWarning::Logged { text: "env-check: no".into() },
        }),
        Event::Run(RunEvent::Deferred {
            run,
            due: Deferral::End(Ending::plain(Outcome::Blocked)),
            requester: None,
        }),
        Event::Policy(PolicyEvent::CapRaised { run, param: ParamIx(0), value: 9 }),
        Event::Session(SessionEvent::Paused { comment: "lunch".into() }),
        Event::Session(SessionEvent::Unpaused { comment: "back".into() }),
        Event::Session(SessionEvent::RequestsForgotten),
    ]
}

pub(crate) fn calls() -> Vec<Event> {
    let text = |text: &str| text.to_owned();
    let (gate_id, capability, call_id) = (OpenId(6), text("bash"), text("c-1"));
    let (digest, rule) = (digest(), Some(rule()));
    vec![
        Event::Approval(ApprovalEvent::Opened { gate: gate_id, run: RunId(1), body: Box::new(gate()) }),
        Event::Approval(ApprovalEvent::Closed {
            gate: gate_id,
            decision: GateDecision::Approve,
            by: text("kim"),
            comment: text("fine"),
            via: Via::Mail,
        }),
        Event::Approval(ApprovalEvent::Voided {
            gates: vec![gate_id],
            grants: vec![8],
            items: vec![OpenId(10)],
            run: Some(RunId(1)),
        }),
        Event::Policy(PolicyEvent::CallPermitted {
            number: Some(7),
            call: call(),
            digest,
            rule: rule.clone(),
            mail: true,
            layers: layers(),
        }),
        Event::Policy(PolicyEvent::CallDenied {
            capability: capability.clone(),
            digest,
            reason: Reason::RateLimited,
            rule: rule.clone(),
            call_id: call_id.clone(),
            layers: layers(),
        }),
        Event::Policy(PolicyEvent::CallAsked {
            capability: capability.clone(),
            digest,
            gate: gate_id,
            rule,
            call_id,
            layers: layers(),
        }),
        Event::Policy(PolicyEvent::Policies(PolicyFact::Attached {
            name: "deploy-gate".into(),
            policies: vec!["guard".into()],
        })),
        Event::Policy(PolicyEvent::Policies(PolicyFact::Pinned { policies: vec![pinned_policy()] })),
        Event::Policy(PolicyEvent::GrantMade { number: 8, grant: grant() }),
        Event::Policy(PolicyEvent::GrantUsed { number: 8 }),
        Event::Policy(PolicyEvent::CallReported { number: Some(7), capability, success: true, run: None }),
        Event::Policy(PolicyEvent::Metered { cost: Micros(5), tokens: 6 }),
        Event::Policy(PolicyEvent::BudgetExhausted { unit: BudgetUnit::UsdMicros, cap: 9 }),
        Event::Delivery(DeliveryEvent::Queued { effect: effect(notice()) }),
        Event::Delivery(DeliveryEvent::Acked { number: 9 }),
        Event::Policy(PolicyEvent::GrantLapsed { number: 8 }),
        Event::Policy(PolicyEvent::CallLapsed { number: 7 }),
    ]
}

/// Later additions; appended, so that the previous lines stay unchanged.
pub(crate) fn later() -> Vec<Event> {
    let (gate, run) = (OpenId(6), RunId(1));
    let (by, comment, from) = ("kim".into(), "why now?".into(), "lead@example.com".to_owned());
    let (text, about) = ("yes".into(), Some(gate));
    let (item, worker) = (OpenId(10), || "w-1".to_owned());
    let flows = [
        Event::Approval(ApprovalEvent::Escalated {
            gate,
            to: vec![from.clone()],
            due: Some(Time(9)),
            listed: Listed::default(),
        }),
        Event::Approval(ApprovalEvent::Lapsed { gate }),
        Event::Approval(ApprovalEvent::ReplyAnswered { gate, run: None, to: from.clone() }),
        Event::Approval(ApprovalEvent::ReplyRecorded(ReplyFact {
            run,
            from,
            text,
            proof: SenderProof::Mail,
            about,
            evidence: None,
            why: None,
            brought_by: None,
        })),
        Event::Run(RunEvent::Wrote {
            run,
            key: "wait".into(),
            value: Json(serde_json::json!({})),
            by: Writer::Person,
            who: None,
        }),
        Event::Work(WorkEvent::Leased {
            item,
            worker: worker(),
            until: Time(9),
            again: true,
            by: "robot".into(),
        }),
        Event::Work(WorkEvent::Released { item, lapsed: true }),
        open::work_done(item, run, false),
        open::work_done(item, run, true),
        Event::Run(RunEvent::ChoicePending { run, event: true, requester: "kim".into() }),
        Event::Run(RunEvent::Judged { run, judged: judged() }),
        Event::Run(RunEvent::ChoiceOver { run }),
        Event::Run(RunEvent::Wrote {
            run,
            key: "amount".into(),
            value: Json(serde_json::json!(1)),
            by: Writer::Worker,
            who: None,
        }),
    ];
    let fault = Deferral::Fault(FaultCause::Worker(WorkFailure::Reported { text: "no".into() }).into());
    let deferred =
        [Deferral::Judged, fault].map(|due| Event::Run(RunEvent::Deferred { run, due, requester: None }));
    let commented = Event::Approval(ApprovalEvent::Commented { gate, by, comment });
    let (answer, comment, via) = (Json(serde_json::json!([5])), String::new(), Via::Rpc);
    let answered = Event::Approval(ApprovalEvent::Answered { gate, by: worker(), answer, comment, via });
    let all = [commented].into_iter().chain(flows).chain(deferred);
    let (to, listed) = (vec!["lead@example.com".into()], super::listed());
    let escalated = Event::Approval(ApprovalEvent::Escalated { gate, to, due: None, listed });
    all.chain([answered]).chain(assistants()).chain([escalated]).collect()
}

/// Moves inside a node, and the rows of runs.
pub(crate) fn flow_events() -> Vec<Event> {
    let run = RunId(1);
    let flows = vec![
        Event::Run(RunEvent::Activated { run }),
        Event::Session(SessionEvent::MessagePosted { text: "yes".into(), speaker: Speaker::Relayed }),
        Event::Run(RunEvent::TurnEnded { run }),
        Event::Run(RunEvent::Signalled { run }),
        Event::Run(RunEvent::Wrote {
            run,
            key: "amount".into(),
            value: Json(serde_json::json!(12)),
            by: Writer::Agent,
            who: None,
        }),
        Event::Run(RunEvent::Rested { run, refused: Some(Port::Named("received".into())) }),
        Event::Run(RunEvent::Faulted {
            run,
            node: NodeIx(1),
            fault: FaultCause::NoList { path: "items".into() }.into(),
        }),
        Event::Run(RunEvent::Restarted { run, asked: true }),
        Event::Work(WorkEvent::Opened { item: OpenId(10), run, body: open::items().remove(1), trace: None }),
        Event::Work(WorkEvent::Closed { item: OpenId(10), run }),
        Event::Run(RunEvent::Looped { run, level: 0, at: Some(looped()) }),
        Event::Run(RunEvent::EventRecorded {
            run,
            key: "paid".into(),
            early: Some((Json(serde_json::json!({})), Time(9), true)),
            source: EventSource::Key { role: Role::Integration, subject: "erp".into() },
        }),
        Event::Run(RunEvent::EarlyUsed { run, keys: vec!["paid".into()], positions: vec![2] }),
    ];
    flows.into_iter().collect()
}

/// The kinds of effects, items and postponed moves that the lists above lack.
pub(crate) fn other_kinds() -> Vec<Event> {
    let run = RunId(1);
    let effects = [message(), confirm(), settle()]
        .map(|body| Event::Delivery(DeliveryEvent::Queued { effect: effect(body) }));
    let due = [Deferral::Take(ExitIx(1)), Deferral::Ended(Port::Named("received".into())), Deferral::Again];
    let item = OpenId(10);
    let opened = |body| Event::Work(WorkEvent::Opened { item, run, body, trace: None });
    let recorded = SessionEvent::MessageRecorded { message: [7; 16], until: Time(9) };
    let requester = Some("agent".into());
    let requested = RunEvent::Deferred { run, due: Deferral::Again, requester };
    let begins = RunEvent::Deferred { run, due: Deferral::Begin, requester: None };
    let tries = RunEvent::Deferred { run, due: Deferral::Try(ExitIx(1)), requester: None };
    let (key, value, who) = ("score".into(), Json(serde_json::json!(1)), Some("robot".into()));
    let wrote = RunEvent::Wrote { run, key, value, by: Writer::Worker, who };
    effects
        .into_iter()
        .chain(due.map(|due| Event::Run(RunEvent::Deferred { run, due, requester: None })))
        .chain(open::items().into_iter().map(opened))
        .chain([Event::Session(recorded), Event::Run(requested), Event::Run(begins)])
        .chain([Event::Run(tries), Event::Run(wrote)])
        .collect()
}
