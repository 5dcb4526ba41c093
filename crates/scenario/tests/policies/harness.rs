//! One tenant with one definition, its policies, and one session.

use std::sync::Arc;
use switchward_engine::pin_policies;
use switchward_formats::compile_file;
use switchward_machine::{Decision, Digest, Micros, OpenId, SessionId, TenantId, Time};
use switchward_scenario::System;
use switchward_state::approval::{ApprovalCommand, DecideGate};
use switchward_state::catalogue::{
    CatalogueCommand, CreateTenant, DefaultEffect, DefaultSetIn, Deploy, Quotas, Role, Settings,
};
use switchward_state::limits::TENANT_LEDGER;
use switchward_state::policy::{Args, AttachPolicy, Authorize, PolicyCommand, ReportCall, SetTenantPolicy};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Key, Reply, RequestId, Row, Scope};
use switchward_testkit::{Rng, apart, careful, start_of};

use crate::document::{CALLS, Document};

/// A mail that documents allow, and one that they refuse; each with its weight.
const MAILS: [(&str, u32); 2] = [
    (r#"{"from":"bot@ours.example","to":["kim@ours.example"],"subject":"s","text":"t"}"#, 2),
    (r#"{"from":"bot@ours.example","to":["kim@else.example"],"subject":"s","text":"t"}"#, 1),
];

/// The policies of a session.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) attached: Vec<Document>,
    pub(crate) tenant: Vec<Document>,
    pub(crate) default_effect: DefaultEffect,
    /// True if everything is checked after each command.
    pub(crate) restart: bool,
}

impl Policies {
    /// The ledger, the role and the capability of every rule.
    pub(crate) fn counters(&self) -> Vec<(&'static str, String, String)> {
        let of = |process, documents: &[Document]| -> Vec<(&'static str, String, String)> {
            let counters = documents.iter().flat_map(Document::counters);
            counters.map(|(role, capability)| (process, role, capability)).collect()
        };
        [of("p", &self.attached), of(TENANT_LEDGER, &self.tenant)].concat()
    }
}

/// One move of a test.
#[derive(Debug)]
pub(crate) enum Move {
    Call {
        capability: &'static str,
        estimate: u64,
        args: &'static str,
    },
    /// Reports the oldest call that may be reported.
    Report {
        cost: u64,
    },
    /// Decides the newest gate.
    Decide(Decision),
    Wait {
        seconds: u64,
    },
}

impl Move {
    pub(crate) fn draw(rng: &mut Rng, step: usize) -> Self {
        match rng.below(if step == 0 { 4 } else { 9 }) {
            0..=4 => {
                // Documents limit the mails of a session, and most calls are not mails.
                let capability = if rng.once_in(6) { "resend-email" } else { *rng.pick(&CALLS) };
                let estimate = *rng.pick(&[0, 0, 300_000, 1_000_000]);
                let args = if capability == "resend-email" { *rng.weighted(&MAILS) } else { "{}" };
                Self::Call { capability, estimate, args }
            }
            5 => Self::Report { cost: *rng.pick(&[0, 200_000, 900_000]) },
            6 | 7 => Self::Decide(if rng.once_in(4) { Decision::Refuse } else { Decision::Approve }),
            _ => Self::Wait { seconds: *rng.pick(&[1, 61, 3_700]) },
        }
    }
}

/// A session under test.
pub(crate) struct Harness {
    system: Box<dyn System>,
    tenant: TenantId,
    settings: Settings,
    session: SessionId,
    calls: u64,
    open: Vec<String>,
    gates: Vec<OpenId>,
}

impl Harness {
    /// Deploys the definition and the documents, and starts a session of the role agent.
    pub(crate) fn begin(source: &str, policies: &Policies) -> Self {
        let settings = Settings {
            default_effect: policies.default_effect,
            allow_foreign_role: false,
            default_set_in: DefaultSetIn::Tenant,
            any_approver_address: false,
            link_auth: None,
            browser_known_ms: None,
            quotas: Quotas::default(),
        };
        let mut harness = Self {
            system: if policies.restart { Box::new(careful()) } else { Box::new(apart()) },
            tenant: TenantId(0),
            settings,
            session: SessionId([7; 16]),
            calls: 0,
            open: Vec::new(),
            gates: Vec::new(),
        };
        harness.system.advance(Time(1_767_603_600_000)).unwrap();
        let create = CreateTenant { name: "t".into(), display_name: String::new(), settings };
        let Reply::Tenant(tenant) = harness
            .submit(Scope::Catalogue, Role::Admin, Body::Catalogue(CatalogueCommand::CreateTenant(create)))
            .unwrap()
        else {
            panic!("a tenant is created")
        };
        harness.tenant = tenant.id;
        let machine = harness.deploy(source);
        for document in &policies.attached {
            harness.deploy(&document.text.to_string());
            let (definition, policy, etag) = ("p".into(), document.name.clone(), String::new());
            let attach = AttachPolicy { definition, policy, attached: true, etag };
            harness
                .submit(Scope::Catalogue, Role::Author, Body::Policy(PolicyCommand::AttachPolicy(attach)))
                .unwrap();
        }
        for document in &policies.tenant {
            harness.deploy(&document.text.to_string());
            let set = SetTenantPolicy { name: document.name.clone(), version: None, key: None };
            harness
                .submit(Scope::Catalogue, Role::Admin, Body::Policy(PolicyCommand::SetTenantPolicy(set)))
                .unwrap();
        }
        harness.start(machine);
        harness
    }

    fn start(&mut self, machine: Digest) {
        let mut policies = Vec::new();
        self.system
            .read(self.tenant, &Scope::Catalogue, &mut |view| {
                policies = pin_policies(view, self.tenant, ["p".to_owned()])?.unwrap();
                Ok(())
            })
            .unwrap();
        let start = Start { policies, ..start_of("p", 1, machine, "agent") };
        self.submit(Scope::Session(self.session), Role::Agent, Body::Session(SessionCommand::Start(start)))
            .unwrap();
    }

    fn deploy(&mut self, source: &str) -> Digest {
        let compiled = compile_file("p.json", source.as_bytes(), None);
        let format = compiled.format.unwrap().name().to_owned();
        let definition = compiled.definition.unwrap_or_else(|| panic!("{:?} {source}", compiled.findings));
        let digest = definition.machine.digest();
        let deploy = Deploy {
            findings: Vec::new(),
            name: definition.name,
            format,
            files: vec![switchward_state::catalogue::SourceFile {
                path: "p.json".into(),
                bytes: source.as_bytes().to_vec(),
            }],
            source: definition.source,
            machine: Arc::new(definition.machine),
            activate: true,
            etag: String::new(),
        };
        self.submit(Scope::Catalogue, Role::Author, Body::Catalogue(CatalogueCommand::Deploy(deploy)))
            .unwrap();
        digest
    }

    fn submit(&mut self, scope: Scope, role: Role, body: Body) -> Result<Reply, String> {
        self.calls += 1;
        let id = format!("r-{}", self.calls);
        let command = Command {
            tenant: self.tenant,
            scope,
            request: Some(RequestId { body: Digest::of(id.as_bytes()), id }),
            expected_sequence: None,
            actor: Actor { subject: role.word().into(), role },
            settings: self.settings,
            trace: None,
            address: None,
            body,
        };
        self.system.submit(command).unwrap().map_err(|no| no.reason.code().to_owned())
    }

    /// The session's tenant.
    pub(crate) fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// A row of a ledger.
    pub(crate) fn row(&self, process: &str, key: &Key) -> Option<Arc<Row>> {
        let mut found = None;
        let scope = Scope::Ledger(process.to_owned());
        self.system
            .read(self.tenant, &scope, &mut |view| {
                found = view.row(key)?;
                Ok(())
            })
            .unwrap();
        found
    }

    /// Makes a move, and returns its outcome.
    pub(crate) fn make(&mut self, next: &Move) -> Result<Reply, String> {
        let scope = Scope::Session(self.session);
        match next {
            Move::Call { capability, estimate, args } => {
                let call_id = format!("c-{}", self.calls);
                let call = Authorize {
                    capability: (*capability).into(),
                    args: Args::parse(args.as_bytes()).unwrap(),
                    estimate: (*estimate > 0).then_some(Micros(*estimate)),
                    call_id: call_id.clone(),
                    limits: None,
                    mail: None,
                };
                let reply = self.submit(scope, Role::Agent, Body::Policy(PolicyCommand::Authorize(call)));
                if let Ok(Reply::Authorized(said)) = &reply {
                    self.gates.extend(said.gate.filter(|gate| !self.gates.contains(gate)));
                    if said.effect == switchward_state::policy::CallEffect::Allow {
                        self.open.push(call_id);
                    }
                }
                reply
            }
            Move::Report { cost } => {
                if self.open.is_empty() {
                    return Ok(Reply::Done);
                }
                let call_id = Some(self.open.remove(0));
                let (capability, success, cost, tokens) = (None, true, Micros(*cost), 0);
                let report = ReportCall { call_id, capability, success, cost, tokens };
                self.submit(scope, Role::Agent, Body::Policy(PolicyCommand::ReportCall(report)))
            }
            Move::Decide(decision) => {
                let Some(gate) = self.gates.pop() else { return Ok(Reply::Done) };
                let (decision, comment, shown) = (*decision, String::new(), None);
                let decide = DecideGate { gate, decision, comment, shown, limits: None, proof: None };
                self.submit(scope, Role::Operator, Body::Approval(ApprovalCommand::DecideGate(decide)))
            }
            Move::Wait { seconds } => {
                let to = self.system.now().after_ms(seconds * 1_000);
                self.system.advance(to).unwrap();
                Ok(Reply::Done)
            }
        }
    }
}
