//! Random commands, and what must hold after each.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_engine::{Machines, SessionView, machines_of, pin_callees, public_events, session_view};
use switchward_expr::own_text;
use switchward_formats::compile_file;
use switchward_machine::{
    Decision, Digest, Machine, Micros, NodeIx, OpenId, Port, RunId, SessionId, Target, TenantId, Trigger,
    WorkKind,
};
use switchward_messages::{end_comment, fault};
use switchward_scenario::{Broken, System, ring};
use switchward_state::approval::{
    AnswerGate, ApprovalCommand, ApprovalEvent, DecideGate, DiscussGate, MailKey, RecordReply,
};
use switchward_state::catalogue::{
    CatalogueCommand, CreateTenant, Deploy, EnsureTenancy, PutAssistant, Role, Settings,
};
use switchward_state::delivery::{DeliveryCommand, DeliveryEvent, Effect, EffectBody, FailEffect};
use switchward_state::policy::{PolicyCommand, ReportCall};
use switchward_state::run::{EndTurn, RecordData, RecordEvent, RunCommand, RunEvent};
use switchward_state::seal::SEAL_NONCE_BYTES;
use switchward_state::session::{
    Assisted, Cancel, Pause, PostMessage, Queued, ReplyToken, Resume, SessionCommand, Start, SwitchRun,
};
use switchward_state::work::WorkEvent;
use switchward_state::{
    Actor, Body, Command, Event, Key, Kind, OpenItem, Reply, RequestId, Row, Scope, View,
};
use switchward_testkit::{CarefulMemory, Rng, careful, replayed, start_of};

use crate::tally::Seen;
use crate::workflow::{EVENTS, FAMILY, PEOPLE, REPLIES, SAID, TOOLS, key, value};
use crate::{approvals, guards, tasks, workers};

/// Refusals that a random command may get.
const MEANT: [&str; 11] = [
    "STATE_MISMATCH",
    "SCHEMA_VIOLATION",
    "RETRY_EXHAUSTED",
    "SESSION_TERMINAL",
    "LEASE_LOST",
    "QUOTA_EXCEEDED",
    "APPROVAL_PENDING",
    "NOT_AN_APPROVER",
    "NO_SUCH_WORKFLOW",
    "ALREADY_RESOLVED",
    "FIELD_INVALID",
];
const HOUR_MS: u64 = 3_600_000;
/// The second name under which an assistant has the first workflow.
const OTHER: &str = "other";

/// A workflow as it was written and as it was compiled.
struct Written {
    machine: Arc<Machine>,
    /// The type of each state, as its author wrote it.
    kinds: BTreeMap<String, String>,
    source: Value,
}

impl Written {
    fn of(source: &Value, machine: Machine) -> Self {
        let states = source["states"].as_array().cloned().unwrap_or_default();
        let kind = |state: &Value| {
            let of = if state["execution_mode"] == "deterministic" {
                "deterministic"
            } else if state["wait_for"] == "email_reply" {
                "reply"
            } else {
                state["type"].as_str()?
            };
            Some((state["name"].as_str()?.to_owned(), of.to_owned()))
        };
        let kinds = states.iter().filter_map(kind).collect();
        Self { machine: Arc::new(machine), kinds, source: source.clone() }
    }
}

/// Some workflows and one session of the first.
pub(crate) struct Harness {
    system: CarefulMemory,
    tenant: TenantId,
    session: SessionId,
    workflows: BTreeMap<String, Written>,
    /// The name of the first.
    first: String,
    requests: u64,
    /// Every lease that was ever given: its results may come late, twice, and in any order.
    leases: Vec<(OpenId, u64)>,
    /// Every reply token that was ever shown: one may be used late, and twice.
    tokens: Vec<ReplyToken>,
}

fn broken(error: Broken) -> String {
    error.0
}

impl Harness {
    /// Deploys the workflows, and starts a session of the first with a second run in its queue, or with an assistant.
    pub(crate) fn begin(rng: &mut Rng, family: &[Value]) -> Result<Self, String> {
        let input: &[u8] =
            if rng.once_in(2) { br#"{"title":"T","list":["a",1,"b"],"count":2}"# } else { b"" };
        let (queued, contact) = (rng.once_in(3), !rng.once_in(4));
        let message = rng.once_in(8).then(|| rng.once_in(2).then_some("Hello."));
        Self::with(family, input, queued, contact, message)
    }

    /// Starts a session with this input, and optionally a second queued run and a contact.
    pub(crate) fn open(family: &[Value], input: &[u8], queued: bool, contact: bool) -> Result<Self, String> {
        Self::with(family, input, queued, contact, None)
    }

    /// The same; with an assistant if `message` is given, which has the first workflow under two names.
    fn with(
        family: &[Value],
        input: &[u8],
        queued: bool,
        contact: bool,
        message: Option<Option<&str>>,
    ) -> Result<Self, String> {
        let mut harness = Self {
            system: careful(),
            tenant: TenantId(0),
            session: SessionId([0; 16]),
            workflows: BTreeMap::new(),
            first: String::new(),
            requests: 0,
            leases: Vec::new(),
            tokens: Vec::new(),
        };
        harness.tenant()?;
        // Each calls those after it, which must be deployed before.
        let deployed = family.iter().rev().map(|source| harness.deploy(source));
        let mut all = deployed.collect::<Result<Vec<Queued>, String>>()?;
        all.reverse();
        let mut callees = Err("no definition was compiled".to_owned());
        let tenant = harness.tenant;
        let look = &mut |view: &dyn View| {
            let machines = all.iter().map(|one| one.machine);
            callees = pin_callees(view, tenant, machines)?.map_err(|no| no.message);
            Ok(())
        };
        harness.system.read(tenant, &Scope::Catalogue, look).map_err(broken)?;
        harness.session = SessionId::from_request(harness.tenant, "start");
        harness.first.clone_from(&all[0].definition);
        let (first, workflows, assistant) = match message {
            None => (all[0].clone(), all, None),
            Some(_) => harness.assisted(&family[0], all)?,
        };
        let plain = start_of(first.definition.clone(), first.version, first.machine, "agent");
        let start = Start {
            input: input.to_vec(),
            queue: (queued && message.is_none()).then_some(first).into_iter().collect(),
            workflows,
            contact: contact.then(|| "sam@example.com".into()),
            assistant,
            message: message.flatten().map(str::to_owned),
            callees: callees?,
            reply_tenant: Some("random".into()),
            ..plain
        };
        harness
            .send(Scope::Session(harness.session), SessionCommand::Start(start).into())?
            .map_err(|no| no.message)?;
        harness.check()?;
        Ok(harness)
    }

    /// Creates the tenant, with a key for its tokens.
    fn tenant(&mut self) -> Result<(), String> {
        let tenant =
            CreateTenant { name: "t".into(), display_name: String::new(), settings: Settings::default() };
        if let Ok(Reply::Tenant(tenant)) =
            self.send(Scope::Catalogue, CatalogueCommand::CreateTenant(tenant).into())?
        {
            self.tenant = tenant.id;
        }
        let key = MailKey([3; 32]).sealed(ring(), self.tenant, [0; SEAL_NONCE_BYTES]);
        let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key };
        self.send(Scope::Catalogue, CatalogueCommand::EnsureTenancy(ensure).into())?
            .map_err(|no| no.message)?;
        Ok(())
    }

    /// The start of a session with an assistant.
    fn assisted(
        &mut self,
        first: &Value,
        mut all: Vec<Queued>,
    ) -> Result<(Queued, Vec<Queued>, Option<Assisted>), String> {
        let machine = Machine::clone(&self.workflows[&self.first].machine);
        self.workflows.insert(OTHER.into(), Written::of(first, machine));
        all.push(Queued { definition: OTHER.into(), ..all[0].clone() });
        let (assistant, instructions) = ("desk".to_owned(), "Be brief.".to_owned());
        let put = PutAssistant {
            name: assistant.clone(),
            workflows: vec![self.first.clone()],
            instructions: instructions.clone(),
            etag: String::new(),
        };
        self.send(Scope::Catalogue, CatalogueCommand::PutAssistant(put).into())?.map_err(|no| no.message)?;
        let mut found = None;
        let look = &mut |view: &dyn View| {
            found = view.row(&Key::assistant(self.tenant, &assistant))?;
            Ok(())
        };
        self.system.read(self.tenant, &Scope::Catalogue, look).map_err(broken)?;
        let Some(Row::Assistant(row)) = found.as_deref() else { return Err("no assistant".into()) };
        let first = Queued { definition: String::new(), version: 0, machine: row.machine };
        Ok((first, all, Some(Assisted { name: assistant, instructions })))
    }

    fn deploy(&mut self, source: &Value) -> Result<Queued, String> {
        let text = source.to_string();
        let compiled = compile_file("random.json", text.as_bytes(), None);
        let Some(definition) = compiled.definition else { return Err(format!("{:#?}", compiled.findings)) };
        let written = Written::of(source, definition.machine);
        let machine = Arc::clone(&written.machine);
        self.workflows.insert(definition.name.clone(), written);
        let digest = machine.digest();
        let deploy = Deploy {
            findings: Vec::new(),
            name: definition.name.clone(),
            format: "conversation".into(),
            files: vec![switchward_state::catalogue::SourceFile {
                path: "random.json".into(),
                bytes: text.into_bytes(),
            }],
            source: definition.source,
            machine,
            activate: true,
            etag: String::new(),
        };
        self.send(Scope::Catalogue, CatalogueCommand::Deploy(deploy).into())?.map_err(|no| no.message)?;
        Ok(Queued { definition: definition.name, version: 1, machine: digest })
    }

    /// The workflow of each run.
    fn workflows(&self, events: &[Event]) -> Workflows<'_> {
        let mut names = BTreeMap::new();
        for event in events {
            if let Event::Run(RunEvent::Created { run, of, .. }) = event {
                // The session's own run has no workflow until the intent is known.
                let name = of.as_ref().map(|(name, _)| name).filter(|_| run.0 != 0);
                names.insert(*run, name.unwrap_or(&self.first).clone());
            } else if let Event::Run(RunEvent::ChildCreated { run, definition, .. }) = event {
                names.insert(*run, definition.clone());
            }
        }
        Workflows { workflows: &self.workflows, names }
    }

    fn send(&mut self, scope: Scope, body: Body) -> Result<switchward_scenario::Answer, String> {
        self.send_as("agent", Role::Agent, scope, body)
    }

    fn send_as(
        &mut self,
        who: &str,
        role: Role,
        scope: Scope,
        body: Body,
    ) -> Result<switchward_scenario::Answer, String> {
        self.requests += 1;
        let id = format!("r-{}", self.requests);
        let request = Some(RequestId { body: Digest::of(id.as_bytes()), id });
        let command = Command {
            tenant: self.tenant,
            scope,
            request,
            expected_sequence: None,
            actor: Actor { subject: who.into(), role },
            settings: Settings::default(),
            trace: None,
            address: None,
            body,
        };
        self.system.submit(command).map_err(broken)
    }

    /// Sends one command, and checks what must hold then. Returns false once the session has ended.
    pub(crate) fn step(&mut self, rng: &mut Rng) -> Result<bool, String> {
        if rng.once_in(4) {
            let by = *rng.pick(&[1_000, 30_000, HOUR_MS / 4, HOUR_MS, 3 * HOUR_MS]);
            self.system.advance(self.system.now().after_ms(by)).map_err(broken)?;
        } else {
            let view = self.view()?;
            let open = open_work(&view);
            let work = rng.once_in(3).then(|| workers::command(rng, &open, &self.leases)).flatten();
            let (who, role, mut body) = match work {
                Some(body) => ("w", Role::Worker, body),
                None => self.request(rng, &view)?,
            };
            if let Body::Run(RunCommand::RecordEvent(event)) = &mut body
                && rng.once_in(3)
                && !self.tokens.is_empty()
            {
                event.token = Some(rng.pick(&self.tokens).clone());
            }
            let void = void_token(&view, &body);
            match self.send_as(who, role, Scope::Session(self.session), body)? {
                Ok(_) if void => {
                    return Err("an event was accepted with the reply token of a state that was left".into());
                }
                Ok(Reply::Leased { item, fence, .. }) => self.leases.push((item, fence)),
                Ok(_) => {}
                Err(no) if MEANT.contains(&no.reason.code()) => {}
                Err(no) => return Err(format!("refused with {}: {}", no.reason.code(), no.message)),
            }
        }
        let view = self.check()?;
        let token = view.reply_token().filter(|token| !self.tokens.contains(token));
        self.tokens.extend(token);
        Ok(!view.session.status.ended())
    }

    /// A random command: from a person or a mail if an item waits for people, else from the agent.
    fn request(&self, rng: &mut Rng, view: &SessionView) -> Result<(&'static str, Role, Body), String> {
        let gate = view.session.gates().next_back();
        let leaf = view.below.last().map_or(&*view.run, |below| &below.run);
        // Nobody replies while the intent is not known.
        let written = self.workflows.get(&leaf.definition);
        let kind = view.node().and_then(|node| written?.kinds.get(&node.name)).map(String::as_str);
        let waits = kind == Some("reply");
        let often = if waits {
            2
        } else if gate.is_some() {
            3
        } else {
            20
        };
        let person = if rng.once_in(2) { PEOPLE[0] } else { *rng.pick(&PEOPLE) };
        if rng.once_in(often) {
            let text = *rng.pick(&REPLIES);
            let authenticated = rng.below(6) > 0;
            let reply = mailed(person, text, authenticated, rng.once_in(2));
            return Ok(("mail", Role::Operator, ApprovalCommand::RecordReply(reply).into()));
        }
        let Some(gate) = gate.filter(|_| rng.once_in(2)) else {
            let body = command(rng);
            // Half of the users' messages come through the agent.
            let outside = matches!(body, Body::Run(RunCommand::RecordEvent(_)))
                || (matches!(body, Body::Session(SessionCommand::PostMessage(_))) && rng.once_in(2));
            let role = if outside { Role::Integration } else { Role::Agent };
            return Ok(("agent", role, body));
        };
        let comment = "because".to_owned();
        if rng.once_in(if kind == Some("task") { 2 } else { 20 }) {
            let gate = self.part(rng, &view.session.gates().collect::<Vec<_>>())?.unwrap_or(gate);
            let answer = AnswerGate { gate, answer: value(rng), comment, shown: None, proof: None };
            return Ok((person, Role::Approver, ApprovalCommand::AnswerGate(answer).into()));
        }
        let body = match rng.below(4) {
            0 => ApprovalCommand::DiscussGate(DiscussGate { gate, comment, shown: None, proof: None }).into(),
            1 => ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision: Decision::Refuse,
                comment,
                shown: None,
                limits: None,
                proof: None,
            })
            .into(),
            _ => ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision: Decision::Approve,
                comment,
                shown: None,
                limits: None,
                proof: None,
            })
            .into(),
        };
        Ok((person, Role::Approver, body))
    }

    /// A participant answers the oldest open part of a task.
    pub(crate) fn answer(&mut self, by: &str, answer: Value) -> Result<(), String> {
        let gate = self.view()?.session.gates().next().ok_or("no open gates")?;
        let body = AnswerGate { gate, answer, comment: String::new(), shown: None, proof: None };
        let sent = self.send_as(
            by,
            Role::Approver,
            Scope::Session(self.session),
            ApprovalCommand::AnswerGate(body).into(),
        )?;
        sent.map(drop).map_err(|no| no.message)
    }

    /// The newest mail to this address that is under way cannot be delivered.
    pub(crate) fn undelivered(&mut self, to: &str) -> Result<(), String> {
        let mails = self.events()?.into_iter().filter_map(|event| {
            let Event::Delivery(DeliveryEvent::Queued { effect: Effect { number, body, .. } }) = event else {
                return None;
            };
            if let EffectBody::Message { to, .. } = body { Some((to, number)) } else { None }
        });
        let newest = mails.filter(|(one, _)| one == to).last();
        let (_, number) = newest.ok_or_else(|| format!("nothing was sent to {to}"))?;
        let code = "mailbox_unknown".parse().expect("a code");
        let body = FailEffect { number, code, detail: None, round: None };
        let sent = self.send(Scope::Session(self.session), DeliveryCommand::FailEffect(body).into())?;
        sent.map(drop).map_err(|no| no.message)
    }

    /// An event arrives with this value under one key.
    pub(crate) fn event(&mut self, value: Value) -> Result<(), String> {
        let data = Map::from_iter([("x".to_owned(), value)]);
        let (key, model) = ("e".into(), false);
        let body = RecordEvent { key, data, state: None, model, token: None, webhook: None, once: None };
        let sent = self.send(Scope::Session(self.session), RunCommand::RecordEvent(body).into())?;
        sent.map(drop).map_err(|no| no.message)
    }

    /// The agent records data, and its turn ends.
    pub(crate) fn turn(&mut self, values: Map<String, Value>) -> Result<(), String> {
        for body in [
            RunCommand::RecordData(RecordData { values }).into(),
            RunCommand::EndTurn(EndTurn { text: String::new() }).into(),
        ] {
            self.send(Scope::Session(self.session), body)?.map_err(|no| no.message)?;
        }
        Ok(())
    }

    /// Hours pass.
    pub(crate) fn hours(&mut self, hours: u64) -> Result<(), String> {
        self.system.advance(self.system.now().after_ms(hours * HOUR_MS)).map_err(broken)
    }

    /// One of the open gates, or one that was answered before.
    fn part(&self, rng: &mut Rng, opens: &[OpenId]) -> Result<Option<OpenId>, String> {
        if !opens.is_empty() && !rng.once_in(6) {
            return Ok(Some(*rng.pick(opens)));
        }
        let answered = self.events()?.into_iter().rev().find_map(|event| {
            if let Event::Approval(ApprovalEvent::Answered { gate, .. }) = event { Some(gate) } else { None }
        });
        Ok(answered)
    }

    fn view(&self) -> Result<SessionView, String> {
        let mut found = None;
        let look = &mut |view: &dyn View| {
            found = session_view(view, self.tenant, self.session)?;
            Ok(())
        };
        self.system.read(self.tenant, &Scope::Session(self.session), look).map_err(broken)?;
        found.ok_or_else(|| "the session does not exist".into())
    }

    pub(crate) fn events(&self) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        let prefix = Key::prefix_of_session(self.tenant, self.session, Kind::History);
        let look = &mut |view: &dyn View| {
            view.scan(&prefix, None, &mut |_, row| {
                if let Row::History(history) = &**row {
                    events.extend(history.events.iter().cloned());
                }
                ControlFlow::Continue(())
            })
        };
        self.system.read(self.tenant, &Scope::Session(self.session), look).map_err(broken)?;
        Ok(events)
    }

    /// The number of the session's decisions, and its view.
    pub(crate) fn decisions(&self) -> Result<(usize, SessionView), String> {
        let mut count = 0;
        let prefix = Key::prefix_of_session(self.tenant, self.session, Kind::History);
        let look = &mut |view: &dyn View| {
            view.scan(&prefix, None, &mut |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })
        };
        self.system.read(self.tenant, &Scope::Session(self.session), look).map_err(broken)?;
        Ok((count, self.view()?))
    }

    /// The text that the first run ended with.
    pub(crate) fn last_words(&self) -> Result<String, String> {
        let ended = self.events()?.into_iter().find_map(|event| {
            if let Event::Run(RunEvent::Ended { comment, .. }) = event {
                Some(end_comment(&comment))
            } else {
                None
            }
        });
        ended.ok_or_else(|| "no run has ended".into())
    }

    /// Every run is in a state that its author wrote, and came there by exits that lead there. Returns the
    /// session.
    fn check(&self) -> Result<SessionView, String> {
        let view = self.view()?;
        let written = self.workflows.get(&view.session.definition);
        if written.is_some_and(|written| !written.kinds.contains_key(view.at())) {
            return Err(format!("the run is at {:?}, which is not in the definition", view.at()));
        }
        let events = self.events()?;
        let workflows = self.workflows(&events);
        let mut at: BTreeMap<u32, Option<NodeIx>> = BTreeMap::new();
        for event in events.iter().filter(of_a_workflow) {
            if let Event::Run(RunEvent::Entered { run, node }) = event {
                let due = at.insert(run.0, Some(*node)).flatten();
                if due.is_some() {
                    return Err(format!("{event:?}, but the run had not left {due:?}"));
                }
            } else if let Event::Run(RunEvent::Left { run, node, exit }) = event {
                let stands = at.insert(run.0, None).flatten();
                let exits = workflows.of(*run).machine.node(*node).map(|node| &node.exits);
                let exit = exits.and_then(|exits| exits.get(usize::from(exit.0)));
                if stands != Some(*node) || exit.is_none() {
                    return Err(format!("{event:?}, but the run was at {stands:?}"));
                }
            }
        }
        approvals::check(&events, |run| workflows.of(run).machine.as_ref())?;
        tasks::check(&events, |run| workflows.of(run).machine.as_ref())?;
        led(&events, &view, &workflows)?;
        below(&events, &view)?;
        Ok(view)
    }

    /// Builds every shard's rows from its log, which must be those that were built live.
    pub(crate) fn replay(&self) -> Result<(), String> {
        replayed(&self.system).map_err(broken)
    }

    /// Counts what was seen.
    pub(crate) fn count(&self) -> Result<Seen, String> {
        let mut seen = Seen::default();
        let events = self.events()?;
        let workflows = self.workflows(&events);
        for _ in 0..guards::check(&events, |run| workflows.of(run).machine.as_ref())? {
            seen.add("exit whose guards were looked at again".into());
        }
        seen.add_kinds(self.system.observer().kinds().map_err(broken)?);
        let mut children = BTreeSet::new();
        let mut machines = Machines::default();
        let look = &mut |view: &dyn View| {
            machines = machines_of(view, self.tenant, self.session, &events)?;
            Ok(())
        };
        self.system.read(self.tenant, &Scope::Session(self.session), look).map_err(broken)?;
        for (_, event) in public_events(&events, &machines) {
            seen.add(format!("event {}", event.kind));
        }
        for event in &events {
            if !of_a_workflow(&event) {
                seen.add("state intent".into());
            } else if let Event::Run(RunEvent::Entered { run, node }) = event {
                workflows.of(*run).entered(*node, &mut seen);
            } else if let Event::Run(RunEvent::Left { run, node, exit }) = event {
                workflows.of(*run).left(*node, usize::from(exit.0), &mut seen);
            } else if let Event::Run(RunEvent::Wrote { run, key, .. }) = event {
                let reducer = &workflows.of(*run).source["state_schema"][key.as_str()]["reducer"];
                seen.add(format!("reducer {}", reducer.as_str().unwrap_or("overwrite")));
            } else if let Event::Run(RunEvent::ChildCreated { run, parent, .. }) = event {
                children.insert(*run);
                let below = workflows.names.get(&parent.run).is_some_and(|name| name != FAMILY[0]);
                seen.add(if below { "grandchild".into() } else { "child".into() });
            } else if let Event::Run(RunEvent::Ended { run, ending, .. }) = event
                && children.contains(run)
            {
                seen.add(format!("child {}", ending.outcome.status().word()));
            }
        }
        Ok(seen)
    }
}

/// The work that is open in a session.
fn open_work(view: &SessionView) -> Vec<(OpenId, WorkKind)> {
    let work = |(id, item): &(OpenId, OpenItem)| match item {
        OpenItem::Work(open) => Some((*id, open.body.kind)),
        OpenItem::Gate(_) | OpenItem::Wait(_) | OpenItem::Timer(_) => None,
    };
    view.items.iter().filter_map(work).collect()
}

/// Returns true if a command carries a reply token of a state that no run is in any more.
fn void_token(view: &SessionView, body: &Body) -> bool {
    let Body::Run(RunCommand::RecordEvent(RecordEvent { token: Some(token), .. })) = body else {
        return false;
    };
    let below = view.below.iter().map(|below| (below.id, below.run.entry));
    let mut entries = below.chain([(view.session.root, view.run.entry)]);
    !entries.any(|at| at == (token.run, token.entry))
}

/// Each state that is entered is the target of the exit before it, or the start of a run.
fn led(events: &[Event], view: &SessionView, workflows: &Workflows<'_>) -> Result<(), String> {
    let mut to: BTreeMap<u32, Target> = BTreeMap::new();
    for event in events.iter().filter(of_a_workflow) {
        if let Event::Run(RunEvent::Left { run, node, exit }) = event {
            let exit = &workflows.of(*run).machine.node(*node).unwrap().exits[usize::from(exit.0)];
            to.insert(run.0, exit.to.clone());
        } else if let Event::Run(RunEvent::Entered { run, node }) = event {
            let led = to.remove(&run.0).unwrap_or(Target::Node(workflows.of(*run).machine.start));
            if led != Target::Node(*node) {
                return Err(format!("{event:?}, but the exit leads to {led:?}"));
            }
        } else if let Event::Run(RunEvent::Faulted { fault: faulted, .. }) = event
            && fault(faulted).is_empty()
        {
            return Err(format!("{event:?} has no comment"));
        }
    }
    let mut done = BTreeSet::new();
    for event in events {
        if let Event::Work(WorkEvent::Done { item, .. }) = event
            && !done.insert(*item)
        {
            return Err(format!("{item:?} was done twice"));
        }
    }
    let open = !view.session.items.is_empty();
    let open = view.session.status.ended() && open;
    if open { Err("there are open items after the end".into()) } else { Ok(()) }
}

/// A run ends once and does nothing afterwards, and no child outlives the run that called it.
fn below(events: &[Event], view: &SessionView) -> Result<(), String> {
    let mut waits_for: BTreeMap<RunId, RunId> = BTreeMap::new();
    let mut over = BTreeSet::new();
    for event in events {
        if let Event::Run(RunEvent::ChildCreated { run, parent, .. }) = event {
            if over.contains(&parent.run) || waits_for.insert(parent.run, *run).is_some() {
                return Err(format!("{event:?}, but its parent has ended or waits for another run"));
            }
        } else if let Event::Run(RunEvent::Entered { run, .. })
        | Event::Run(RunEvent::Left { run, .. })
        | Event::Run(RunEvent::Ended { run, .. }) = event
        {
            if over.contains(run) || waits_for.contains_key(run) {
                return Err(format!(
                    "{event:?}, but the run had ended or waits for {:?}",
                    waits_for.get(run)
                ));
            }
            if let Event::Run(RunEvent::Ended { .. }) = event {
                over.insert(*run);
                waits_for.retain(|_, child| child != run);
            }
        }
    }
    let chain: Vec<RunId> = view.below.iter().map(|below| below.id).collect();
    let mut running = Vec::new();
    let mut at = view.session.root;
    while let Some(child) = waits_for.get(&at) {
        running.push(*child);
        at = *child;
    }
    if chain == running { Ok(()) } else { Err(format!("{chain:?} are shown, but {running:?} are running")) }
}

/// The workflow of each run.
struct Workflows<'g> {
    workflows: &'g BTreeMap<String, Written>,
    names: BTreeMap<RunId, String>,
}

impl<'g> Workflows<'g> {
    fn of(&self, run: RunId) -> &'g Written {
        &self.workflows[&self.names[&run]]
    }
}

impl Written {
    fn entered(&self, node: NodeIx, seen: &mut Seen) {
        let name = &self.machine.node(node).unwrap().name;
        seen.add(format!("state {}", self.kinds[name]));
    }

    fn left(&self, node: NodeIx, exit: usize, seen: &mut Seen) {
        let node = self.machine.node(node).unwrap();
        let (exit, kind) = (&node.exits[exit], &self.kinds[&node.name]);
        let failed = matches!(&exit.on, Trigger::Port(port) if port.word() == "error");
        if !failed {
            // Everything that the state lists has run by then, up to a branch that was taken.
            let states = self.source["states"].as_array().unwrap();
            let state = states.iter().find(|state| state["name"] == *node.name);
            operations(&state.unwrap()["operations"], seen);
        }
        match &exit.on {
            Trigger::Port(Port::Branch(_)) => seen.add("port branch".into()),
            Trigger::Port(port) if port.word() == "timeout" => seen.add(format!("port timeout of {kind}")),
            Trigger::Port(port) => seen.add(format!("port {}", port.word())),
            Trigger::Auto { .. } if exit.label == "port done" => seen.add("port done".into()),
            Trigger::Auto { .. } => {
                for guard in exit.label.split(" and ") {
                    seen.add(format!("guard {guard}"));
                }
            }
            Trigger::Answer(_) | Trigger::Agent(_) => {}
        }
        if exit.hold.is_some() {
            seen.add("exit held".into());
        }
    }
}

/// Returns true for an event in a run of a workflow, not in the session's own.
fn of_a_workflow(event: &&Event) -> bool {
    !matches!(event, Event::Run(RunEvent::Entered { run, .. }) | Event::Run(RunEvent::Left { run, .. }) if run.0 == 0)
}

fn operations(list: &Value, seen: &mut Seen) {
    for operation in list.as_array().into_iter().flatten() {
        seen.add(format!("operation {}", operation["type"].as_str().unwrap_or_default()));
        operations(&operation["config"]["operations"], seen);
    }
}

fn command(rng: &mut Rng) -> Body {
    match rng.below(36) {
        0..=2 | 19..=22 => {
            SessionCommand::PostMessage(PostMessage { text: (*rng.pick(&SAID)).to_owned() }).into()
        }
        3..=7 => {
            let one = |_| match rng.below(6) {
                0 | 1 => ((*rng.pick(&["flag", "free"])).to_owned(), Value::Bool(rng.once_in(2))),
                2 => ("prefs".to_owned(), serde_json::json!({ "k": rng.between(0, 9) })),
                _ => (key(rng).to_owned(), value(rng)),
            };
            let values: Map<String, Value> = [0, 1].map(one).into_iter().collect();
            RunCommand::RecordData(RecordData { values }).into()
        }
        8 | 9 | 16 | 17 => PolicyCommand::ReportCall(ReportCall {
            call_id: None,
            capability: Some((*rng.pick(&TOOLS)).to_owned()),
            success: rng.once_in(2),
            cost: Micros(0),
            tokens: 0,
        })
        .into(),
        10 => RunCommand::SignalCompletion.into(),
        16..=18 | 23..=25 => RunCommand::RecordEvent(RecordEvent {
            key: (*rng.pick(&EVENTS)).to_owned(),
            data: Map::from_iter([(key(rng).to_owned(), value(rng))]),
            state: None,
            model: rng.once_in(2),
            token: None,
            webhook: None,
            once: None,
        })
        .into(),
        11 => RunCommand::RetryNode.into(),
        12 if rng.once_in(2) => SessionCommand::Pause(Pause { comment: String::new() }).into(),
        13 | 14 => SessionCommand::Resume(Resume { comment: String::new() }).into(),
        26 if rng.once_in(3) => {
            let to = *rng.pick(&[FAMILY[0], FAMILY[1], FAMILY[2], OTHER, "nothing"]);
            SessionCommand::SwitchRun(SwitchRun { workflow: to.to_owned() }).into()
        }
        15 if rng.once_in(10) => SessionCommand::Cancel(Cancel::written("")).into(),
        _ => RunCommand::EndTurn(EndTurn { text: String::new() }).into(),
    }
}

/// A reply by mail.
fn mailed(from: &str, text: &str, authenticated: bool, model: bool) -> RecordReply {
    RecordReply {
        from: from.to_owned(),
        subject: String::new(),
        text: own_text(text),
        authenticated,
        signed: authenticated,
        pages_only: false,
        brought_by: None,
        vouched: false,
        model,
        token: None,
        evidence: None,
        limits: None,
    }
}
