//! Random commands, many of them valid.

use std::sync::Arc;
use switchward_machine::{Decision, Digest, Micros, OpenId, SessionId, TenantId, Time};
use switchward_state::approval::{ApprovalCommand, DecideGate, DiscussGate, Grant};
use switchward_state::catalogue::{
    ActivateVersion, CatalogueCommand, CreateKey, CreateTenant, DefaultEffect, DefaultSetIn, Deploy,
    InstallMachine, LinkAuth, Quotas, RevokeKey, Role, Settings, UpdateTenant,
};
use switchward_state::delivery::{Draft, Outgoing};
use switchward_state::policy::{Args, Authorize, PolicyCommand, RaiseCap, ReportCall, ReportUsage};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{Cancel, Pause, Resume, Session, SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Key, Reply, RequestId, Row, Scope, View};

use crate::definitions::{CAPABILITIES, Compiled, NAMES, random};
use crate::{Rng, start_of};

/// The tenants that the first commands create.
pub const TENANTS: [TenantId; 2] = [TenantId(1), TenantId(2)];
const ARGS: [&str; 3] = [r#"{"to":"kim@ours.example"}"#, r#"{"to":"eve@theirs.example"}"#, "{}"];
const SUBJECTS: [&str; 3] = ["agent-1", "kim", "omar"];
/// Commands that are kept to be sent again.
const KEPT: usize = 40;

/// Generates commands from what a caller knows.
#[derive(Debug, Default)]
pub struct CommandGenerator {
    deployed: Vec<(TenantId, Compiled, u32)>,
    sessions: Vec<(TenantId, SessionId)>,
    sent: Vec<(Command, Reply)>,
    count: u64,
}

impl CommandGenerator {
    /// Returns the commands that every harness begins with: tenants and their definitions.
    pub fn first(&mut self, rng: &mut Rng) -> Vec<Command> {
        let mut all = Vec::new();
        for (name, tenant) in ["acme", "globex"].into_iter().zip(TENANTS) {
            let body =
                CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
            all.push(self.command(
                rng,
                tenant,
                Scope::Catalogue,
                Body::Catalogue(CatalogueCommand::CreateTenant(body)),
            ));
            for name in NAMES {
                all.push(self.deploy(rng, tenant, name));
            }
        }
        all
    }

    /// Remembers the reply to a command, so that it can be sent again.
    pub fn answered(&mut self, command: &Command, reply: &Reply) {
        if let (Body::Catalogue(CatalogueCommand::Deploy(deploy)), Reply::Version { number, .. }) =
            (&command.body, reply)
        {
            let compiled = Compiled {
                name: deploy.name.clone(),
                source: Vec::new(),
                digest: deploy.source,
                machine: Arc::clone(&deploy.machine),
            };
            self.deployed.push((command.tenant, compiled, *number));
        } else if let (
            Body::Session(SessionCommand::Start(_)),
            Scope::Session(session),
            Reply::Session { .. },
        ) = (&command.body, &command.scope, reply)
        {
            self.sessions.push((command.tenant, *session));
        }
        if command.request.is_some() {
            self.sent.push((command.clone(), reply.clone()));
            if self.sent.len() > KEPT {
                self.sent.remove(0);
            }
        }
    }

    /// Draws a command that was sent before, with its reply; `None` before the first one.
    #[must_use]
    pub fn again(&self, rng: &mut Rng) -> Option<(Command, Reply)> {
        (!self.sent.is_empty()).then(|| rng.pick(&self.sent).clone())
    }

    /// Draws the next command. Gates and approvals are read from `rows`.
    #[must_use]
    pub fn next(&mut self, rng: &mut Rng, rows: &dyn View, now: Time) -> Command {
        let (tenant, id) = match self.sessions.as_slice() {
            [] => return self.start(rng),
            known => *rng.pick(known),
        };
        // Now and then the session of another tenant, which must not be found.
        let tenant = if rng.once_in(40) { *rng.pick(&TENANTS) } else { tenant };
        let (scope, body) = match rng.below(40) {
            0..=5 => return self.start(rng),
            6..=13 => (Scope::Session(id), Body::Run(RunCommand::Answer(answer(rng)))),
            14..=23 => {
                (Scope::Session(id), Body::Policy(PolicyCommand::Authorize(self.authorize(rng, rows, id))))
            }
            24..=26 => (Scope::Session(id), Body::Policy(PolicyCommand::ReportCall(self.report(rng)))),
            27 => {
                let usage = ReportUsage { cost: cents(rng), tokens: rng.between(0, 500) };
                (Scope::Session(id), Body::Policy(PolicyCommand::ReportUsage(usage)))
            }
            28..=33 => {
                (Scope::Session(id), Body::Approval(ApprovalCommand::DecideGate(decide(rng, rows, id))))
            }
            34 | 38 => return self.catalogue(rng, tenant, now),
            35 => {
                let param = rng.pick(&["cost_usd", "tokens"]);
                let raise = RaiseCap { param: (*param).into(), value: cents(rng).0 * 10 };
                (Scope::Session(id), Body::Policy(PolicyCommand::RaiseCap(raise)))
            }
            36 => {
                (Scope::Session(id), Body::Session(SessionCommand::Pause(Pause { comment: "wait".into() })))
            }
            37 => {
                (Scope::Session(id), Body::Session(SessionCommand::Resume(Resume { comment: String::new() })))
            }
            _ if rng.once_in(4) => {
                (Scope::Session(id), Body::Session(SessionCommand::Cancel(Cancel::written("enough"))))
            }
            _ if rng.once_in(3) => {
                (Scope::Session(id), Body::Approval(ApprovalCommand::DiscussGate(discuss(rng, rows, id))))
            }
            _ => (Scope::Session(id), Body::Run(RunCommand::Answer(answer(rng)))),
        };
        let mut command = self.command(rng, tenant, scope, body);
        if rng.once_in(20) {
            command.expected_sequence = Some(rng.between(0, 12));
        }
        command
    }

    fn start(&mut self, rng: &mut Rng) -> Command {
        let (tenant, compiled, version) = rng.pick(&self.deployed).clone();
        self.count += 1;
        // Now and then an old key: the session exists already.
        let key = format!("key {}", if rng.once_in(10) { self.count / 2 } else { self.count });
        let foreign = rng.once_in(12);
        let labels = (0..rng.below(4)).map(|at| (format!("label-{at}"), format!("{}", rng.below(9))));
        let body = Start {
            key: Some(key.clone()),
            labels: labels.collect(),
            input: if rng.once_in(3) { b"{\"a\":1}".to_vec() } else { Vec::new() },
            ..start_of(
                compiled.name.clone(),
                version,
                compiled.machine.digest(),
                if foreign { "visitor" } else { "agent" },
            )
        };
        let scope = Scope::Session(SessionId::from_key(tenant, &key));
        let mut command = self.command(rng, tenant, scope, Body::Session(SessionCommand::Start(body)));
        command.settings.allow_foreign_role = foreign && rng.once_in(2);
        command
    }

    fn deploy(&mut self, rng: &mut Rng, tenant: TenantId, name: &str) -> Command {
        let compiled = random(rng, name);
        let body = Deploy {
            findings: Vec::new(),
            name: compiled.name,
            format: "checkpoint".into(),
            files: vec![switchward_state::catalogue::SourceFile {
                path: "definition.json".into(),
                bytes: compiled.source,
            }],
            source: compiled.digest,
            machine: compiled.machine,
            activate: rng.once_in(2),
            etag: String::new(),
        };
        self.command(rng, tenant, Scope::Catalogue, Body::Catalogue(CatalogueCommand::Deploy(body)))
    }

    fn catalogue(&mut self, rng: &mut Rng, tenant: TenantId, now: Time) -> Command {
        let (_, known, _) = rng.pick(&self.deployed).clone();
        let name = *rng.pick(&NAMES);
        let effects = [DefaultEffect::Allow, DefaultEffect::Ask, DefaultEffect::Deny];
        let settings = Settings {
            default_effect: *rng.pick(&effects),
            allow_foreign_role: rng.once_in(2),
            default_set_in: DefaultSetIn::Tenant,
            any_approver_address: rng.once_in(2),
            link_auth: *rng.pick(&[None, Some(LinkAuth::Link), Some(LinkAuth::Code)]),
            browser_known_ms: rng.once_in(2).then_some(3_600_000),
            quotas: Quotas::default(),
        };
        let (scope, body) = match rng.below(6) {
            0 => return self.deploy(rng, tenant, name),
            1 => {
                let version = rng.between(1, 4).try_into().unwrap();
                let activate = ActivateVersion { name: name.into(), version, etag: String::new() };
                (Scope::Catalogue, Body::Catalogue(CatalogueCommand::ActivateVersion(activate)))
            }
            2 => {
                let key = CreateKey {
                    id: format!("key-{}", rng.below(2)),
                    tenant_name: "acme".into(),
                    hash: Digest::of(b"secret"),
                    role: Role::Approver,
                    subject: "kim".into(),
                    display_name: "Kim".into(),
                    expires: rng.once_in(2).then(|| now.after_ms(1_000)),
                };
                (Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateKey(key)))
            }
            3 => (
                Scope::Catalogue,
                Body::Catalogue(CatalogueCommand::RevokeKey(RevokeKey {
                    id: format!("key-{}", rng.below(2)),
                })),
            ),
            4 => (
                Scope::Catalogue,
                Body::Catalogue(CatalogueCommand::UpdateTenant(UpdateTenant {
                    name: "acme".into(),
                    settings,
                    etag: String::new(),
                })),
            ),
            _ => (
                Scope::Shard,
                Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine: known.machine })),
            ),
        };
        self.command(rng, tenant, scope, body)
    }

    fn authorize(&mut self, rng: &mut Rng, rows: &dyn View, id: SessionId) -> Authorize {
        self.count += 1;
        let known = ARGS.map(|args| Args::parse(args.as_bytes()).unwrap());
        let (mut capability, mut args) = (*rng.pick(&CAPABILITIES), rng.pick(&known).clone());
        // Prefer calls that were approved.
        if let Some(grant) = grant(rows, id).filter(|_| !rng.once_in(3)) {
            args = known.into_iter().find(|args| args.digest() == grant.digest).unwrap_or(args);
            capability = CAPABILITIES.into_iter().find(|it| *it == grant.capability).unwrap_or(capability);
        }
        let call_id = format!("call {}", if rng.once_in(12) { self.count / 2 } else { self.count });
        if capability == "resend-email" && self.count.is_multiple_of(2) {
            let to = vec![(*rng.pick(&["ann@ours.example", "x@else.example"])).to_owned()];
            let draft = Draft { to, text: "t".into(), ..Draft::default() };
            return Outgoing::new(draft).and_then(|mail| mail.call(call_id)).expect("it is a mail");
        }
        Authorize {
            capability: capability.into(),
            args,
            estimate: rng.once_in(2).then(|| cents(rng)),
            call_id,
            limits: None,
            mail: None,
        }
    }

    fn report(&mut self, rng: &mut Rng) -> ReportCall {
        let named = rng.once_in(2).then(|| format!("call {}", rng.between(1, self.count + 1)));
        ReportCall {
            call_id: named,
            capability: (!rng.once_in(5)).then(|| (*rng.pick(&CAPABILITIES)).into()),
            success: !rng.once_in(4),
            cost: if rng.once_in(3) { Micros(0) } else { cents(rng) },
            tokens: rng.between(0, 100),
        }
    }

    fn command(&mut self, rng: &mut Rng, tenant: TenantId, scope: Scope, body: Body) -> Command {
        self.count += 1;
        let decides = matches!(
            body,
            Body::Approval(ApprovalCommand::DecideGate(_)) | Body::Approval(ApprovalCommand::DiscussGate(_))
        );
        let roles = if decides { [Role::Approver, Role::Operator, Role::Agent] } else { [Role::Agent; 3] };
        let subject = if decides { *rng.pick(&SUBJECTS) } else { SUBJECTS[0] };
        let request = (!rng.once_in(4)).then(|| {
            // Now and then an old request id with another body.
            let id = format!("request {}", if rng.once_in(25) { self.count / 2 } else { self.count });
            RequestId { body: Digest::of_parts(&[id.as_bytes(), &self.count.to_be_bytes()]), id }
        });
        Command {
            tenant,
            scope,
            request,
            expected_sequence: None,
            actor: Actor { subject: subject.into(), role: *rng.pick(&roles) },
            settings: Settings::default(),
            trace: rng.once_in(9).then(|| "00-trace-01".into()),
            address: None,
            body,
        }
    }
}

fn cents(rng: &mut Rng) -> Micros {
    Micros(rng.between(1, 60) * 10_000)
}

fn answer(rng: &mut Rng) -> Answer {
    Answer {
        state: rng.once_in(6).then(|| format!("state-{}", rng.below(4))),
        answer: format!("answer-{}", rng.below(3)),
        note: if rng.once_in(3) { "because".into() } else { String::new() },
    }
}

/// The session of this id, in any tenant.
fn session(rows: &dyn View, id: SessionId) -> Option<(TenantId, Session)> {
    TENANTS.iter().find_map(|tenant| {
        let row = rows.row(&Key::session(*tenant, id)).ok().flatten()?;
        let Row::Session(session) = &*row else { return None };
        Some((*tenant, session.clone()))
    })
}

/// The oldest unused approval of a session.
fn grant(rows: &dyn View, id: SessionId) -> Option<Grant> {
    let (tenant, session) = session(rows, id)?;
    let row = rows.row(&Key::grant(tenant, id, *session.grants.first()?)).ok().flatten()?;
    let Row::Grant(grant) = &*row else { return None };
    Some(grant.clone())
}

/// A comment at a gate, built like a decision.
fn discuss(rng: &mut Rng, rows: &dyn View, id: SessionId) -> DiscussGate {
    let DecideGate { gate, comment, shown, .. } = decide(rng, rows, id);
    DiscussGate { gate, comment, shown, proof: None }
}

/// A decision on one of the session's open gates, if it has any.
fn decide(rng: &mut Rng, rows: &dyn View, id: SessionId) -> DecideGate {
    let opens = session(rows, id).map(|(_, session)| session.gates().collect::<Vec<_>>()).unwrap_or_default();
    let gate =
        if opens.is_empty() || rng.once_in(10) { OpenId(rng.between(1, 9)) } else { *rng.pick(&opens) };
    DecideGate {
        gate,
        decision: if rng.once_in(3) { Decision::Refuse } else { Decision::Approve },
        comment: "seen".into(),
        shown: rng.once_in(15).then(|| Digest::of(b"something else")),
        limits: None,
        proof: None,
    }
}
