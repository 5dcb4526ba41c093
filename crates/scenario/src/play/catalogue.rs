//! The tenant, its definitions, and the sessions that start from them.

use std::sync::Arc;
use switchward_engine::{pin_callees, pin_policies};
use switchward_formats::{Finding, Severity, compile_file};
use switchward_machine::{Digest, RunId, SessionId, TenantId};
use switchward_state::approval::MailKey;
use switchward_state::catalogue::{
    CatalogueCommand, CreateTenant, Deploy, EnsureTenancy, PutAssistant, Role, Settings, SourceFile,
};
use switchward_state::policy::{AttachPolicy, PinnedPolicy, PolicyCommand, SetTenantPolicy};
use switchward_state::run::Pinned;
use switchward_state::seal::{SEAL_NONCE_BYTES, Sealed};
use switchward_state::session::{Assisted, Queued, ReplyToken, SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Key, Reason, Rejection, Reply, Row, Scope};

use super::{Moved, Player, Refusal};
use crate::script::{self, Named, Scenario, StartAgain, TokenOf};
use crate::system::{Broken, read, ring};

const TENANT: &str = "scenario";
/// The key of all genuine tokens, so that one can be named by its entry.
const KEY_OF_ALL: [u8; 32] = [1; 32];
/// The key of forged tokens.
const KEY_OF_NONE: [u8; 32] = [2; 32];
const ASSISTANT: &str = "assistant";
/// A definition that does not compile is refused by the API, before the engine sees it.
const DEFINITION_INVALID: &str = "DEFINITION_INVALID";
/// The reasons if a definition calls one that does not exist.
const ABSENT: [Reason; 2] = [Reason::NoSuchWorkflow, Reason::NotFound];
/// Findings of a definition that a refusal shows.
const ERRORS_SHOWN_MAX: usize = 3;

/// What a session starts with.
struct First {
    of: Queued,
    workflows: Vec<Queued>,
    assistant: Option<Assisted>,
}

/// The version that a new session uses.
struct Active {
    number: u32,
    machine: Digest,
}

impl Player<'_> {
    /// Sets the clock and creates the tenant.
    pub(super) fn open(&mut self, scenario: &Scenario) -> Result<(), Broken> {
        self.system.advance(scenario.start.at)?;
        let create =
            CreateTenant { name: TENANT.into(), display_name: String::new(), settings: self.settings };
        let command = Command {
            tenant: TenantId(0),
            scope: Scope::Catalogue,
            request: None,
            expected_sequence: None,
            actor: Actor::server(),
            settings: Settings::default(),
            trace: None,
            address: None,
            body: Body::Catalogue(CatalogueCommand::CreateTenant(create)),
        };
        match self.system.submit(command)? {
            Ok(Reply::Tenant(tenant)) => {
                self.tenant = tenant.id;
                self.give_tokens()
            }
            other => Err(Broken(format!("the tenant was not created: {other:?}"))),
        }
    }

    /// Gives the tenant its token key.
    fn give_tokens(&mut self) -> Result<(), Broken> {
        let any_approver_address = self.settings.any_approver_address;
        let ensure = EnsureTenancy { any_approver_address, link_auth: None, key: self.mail_key() };
        let body = Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure));
        match self.system.submit(Command::in_own_scope(self.tenant, body))? {
            Ok(_) => Ok(()),
            Err(no) => Err(Broken(format!("the tenant got no token key: {no:?}"))),
        }
    }

    fn mail_key(&self) -> Option<Sealed> {
        MailKey(KEY_OF_ALL).sealed(ring(), self.tenant, [0; SEAL_NONCE_BYTES])
    }

    /// Publishes files, and returns their names. A definition that calls one that does not exist yet waits for the
    /// others.
    pub(super) fn publish_all(&mut self, all: &[&Named]) -> Result<Result<Vec<String>, Refusal>, Broken> {
        let mut names: Vec<Option<String>> = vec![None; all.len()];
        let mut stored = false;
        loop {
            let before = names.iter().flatten().count();
            let mut waits = None;
            for (named, name) in all.iter().zip(&mut names).filter(|(_, name)| name.is_none()) {
                match self.publish(named, true)? {
                    Ok(published) => *name = Some(published),
                    Err(refusal) if ABSENT.iter().any(|reason| refusal.code == reason.code()) => {
                        waits.get_or_insert(refusal);
                    }
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
            match waits {
                None => return Ok(Ok(names.into_iter().flatten().collect())),
                Some(_) if names.iter().flatten().count() > before => {}
                Some(refusal) if stored => return Ok(Err(refusal)),
                // They call each other: all are stored before the first one is activated.
                Some(_) => {
                    for (named, _) in all.iter().zip(&names).filter(|(_, name)| name.is_none()) {
                        if let Err(refusal) = self.publish(named, false)? {
                            return Ok(Err(refusal));
                        }
                    }
                    stored = true;
                }
            }
        }
    }

    /// Publishes a file, and returns its name.
    fn publish(&mut self, named: &Named, activate: bool) -> Result<Result<String, Refusal>, Broken> {
        match self.compile(named)? {
            Ok(deploy) => self.deploy(Deploy { activate, ..deploy }),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// A `publish` step: the next version of something that is in the catalogue, because a name never changes.
    pub(super) fn publish_next(&mut self, named: &Named) -> Moved {
        let deploy = match self.compile(named)? {
            Ok(deploy) => deploy,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if self.active(&deploy.name)?.is_none() {
            let message = format!(
                "a published file must keep the name of a definition, and none has the name {:?}",
                deploy.name
            );
            return Ok(Err(Refusal::new(Reason::StateMismatch, message)));
        }
        Ok(self.deploy(deploy)?.map(|_| ()))
    }

    fn compile(&self, named: &Named) -> Result<Result<Deploy, Refusal>, Broken> {
        let bytes = self.files.iter().find(|(path, _)| *path == named.path).map(|(_, bytes)| bytes);
        let bytes = bytes.ok_or_else(|| Broken(format!("{} was not loaded", named.path)))?;
        let compiled = compile_file(&named.path, bytes, None);
        let (Some(format), Some(definition)) = (compiled.format, compiled.definition) else {
            return Ok(Err(invalid(&named.path, &compiled.findings)));
        };
        Ok(Ok(Deploy {
            findings: Vec::new(),
            name: definition.name,
            format: format.name().into(),
            files: vec![SourceFile { path: named.path.clone(), bytes: bytes.clone() }],
            source: definition.source,
            machine: Arc::new(definition.machine),
            activate: true,
            etag: String::new(),
        }))
    }

    fn deploy(&mut self, deploy: Deploy) -> Result<Result<String, Refusal>, Broken> {
        let before = self.active(&deploy.name)?.map(|active| active.number);
        let author = Actor { subject: "author".into(), role: Role::Author };
        match self.submit(Scope::Catalogue, author, Body::Catalogue(CatalogueCommand::Deploy(deploy)))? {
            Ok(Reply::Version { name, number, created, .. }) => {
                self.published.extend(created.then_some("definition.deployed"));
                self.published.extend((before != Some(number)).then_some("definition.activated"));
                Ok(Ok(name))
            }
            Ok(other) => Err(Broken(format!("a deployment got the answer {other:?}"))),
            Err(rejection) => Ok(Err(rejection.into())),
        }
    }

    /// Publishes the scenario's policy documents, attaches them to all of its definitions, and sets the tenant's.
    pub(super) fn hold(&mut self, scenario: &Scenario) -> Moved {
        let author = || Actor { subject: "author".into(), role: Role::Author };
        for named in &scenario.policies {
            let policy = match self.publish(named, true)? {
                Ok(name) => name,
                Err(refusal) => return Ok(Err(refusal)),
            };
            for definition in self.names.clone() {
                let (policy, etag) = (policy.clone(), String::new());
                let attach = AttachPolicy { definition, policy, attached: true, etag };
                if let Err(no) = self.submit(
                    Scope::Catalogue,
                    author(),
                    Body::Policy(PolicyCommand::AttachPolicy(attach)),
                )? {
                    return Ok(Err(no.into()));
                }
            }
        }
        for named in &scenario.tenant_policies {
            let name = match self.publish(named, true)? {
                Ok(name) => name,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let admin = Actor { subject: "admin".into(), role: Role::Admin };
            let set = SetTenantPolicy { name, version: None, key: self.mail_key() };
            if let Err(no) =
                self.submit(Scope::Catalogue, admin, Body::Policy(PolicyCommand::SetTenantPolicy(set)))?
            {
                return Ok(Err(no.into()));
            }
        }
        Ok(Ok(()))
    }

    /// Starts a session of the version that is active now; what follows is about it.
    pub(super) fn start(&mut self, start: &StartAgain) -> Moved {
        let first = match &start.assistant {
            Some(assistant) => self.assisted(assistant)?,
            None => self.plain()?,
        };
        let first = match first {
            Ok(first) => first,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut queue = Vec::new();
        for name in &start.queue {
            match self.queued(name)? {
                Ok(queued) => queue.push(queued),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let others = queue.iter().chain(&first.workflows).map(|other| other.machine);
        let machines: Vec<Digest> = [first.of.machine].into_iter().chain(others).collect();
        let pinned = read(self.system, self.tenant, &Scope::Catalogue, |view| {
            pin_callees(view, self.tenant, machines)
        })?;
        let callees = match pinned {
            Ok(callees) => callees,
            Err(rejection) => return Ok(Err(rejection.into())),
        };
        let policies = match self.pinned_policies(&first, &queue, &callees)? {
            Ok(policies) => policies,
            Err(rejection) => return Ok(Err(rejection.into())),
        };
        let request = self.request();
        let id = SessionId::from_request(self.tenant, &request.id);
        let body = Body::Session(SessionCommand::Start(Start {
            definition: first.of.definition,
            version: first.of.version,
            machine: first.of.machine,
            key: None,
            role: start.role.clone(),
            labels: Vec::new(),
            input: start.input.clone(),
            queue,
            contact: start.contact.clone(),
            workflows: first.workflows,
            assistant: first.assistant,
            message: start.message.clone(),
            callees,
            reply_tenant: Some(TENANT.into()),
            audience: start.audience.clone(),
            reminders: start.reminders,
            quorum: start.quorum,
            policies,
            escalation: start.escalation.clone(),
            any_approver_address: self.settings.any_approver_address,
        }));
        // What the user opens with is the user's own, and only an operator may choose another role than the usual
        // one.
        let usual = start.role == Role::Agent.word() && !self.settings.allow_foreign_role;
        let starter = match (usual, start.message.is_some()) {
            (true, true) => self.outside(),
            (true, false) => self.agent(),
            (false, _) => Actor { role: Role::Operator, ..self.agent() },
        };
        let command = self.command(Scope::Session(id), starter, body, Some(request));
        if let Err(rejection) = self.system.submit(command)? {
            return Ok(Err(rejection.into()));
        }
        self.session = Some(id);
        self.last = None;
        self.before = 0;
        Ok(Ok(()))
    }

    /// The current policy documents of the definitions that a session runs.
    fn pinned_policies(
        &self,
        first: &First,
        queue: &[Queued],
        callees: &[Pinned],
    ) -> Result<Result<Vec<PinnedPolicy>, Rejection>, Broken> {
        let runs = queue.iter().chain(&first.workflows).chain([&first.of]);
        let runs = runs.map(|run| run.definition.clone());
        let runs: Vec<String> = runs.chain(callees.iter().map(|pinned| pinned.callee.name.clone())).collect();
        read(self.system, self.tenant, &Scope::Catalogue, |view| pin_policies(view, self.tenant, runs))
    }

    /// The reply token of one entry of the session, genuine or forged.
    pub(super) fn reply_token(&self, token: &TokenOf) -> ReplyToken {
        // Without a session, an event is refused whatever it carries.
        let id = self.session.unwrap_or(SessionId([0; 16]));
        let key = MailKey(if token.forged { KEY_OF_NONE } else { KEY_OF_ALL });
        key.reply_token(TENANT, id, RunId(token.run), token.entry)
    }

    /// A session of the scenario's definition, which may switch to all others.
    fn plain(&self) -> Result<Result<First, Refusal>, Broken> {
        let active = match &self.definition {
            Some(name) => self.queued(name)?,
            None => Err(Refusal::new(Reason::NotFound, "there is no definition to start")),
        };
        let workflows = self.workflows()?;
        Ok(active.map(|of| First { of, workflows, assistant: None }))
    }

    /// A session with an assistant: of its only workflow, or of those that the first message chooses.
    fn assisted(&mut self, assistant: &script::Assistant) -> Result<Result<First, Refusal>, Broken> {
        let workflows =
            if assistant.workflows.is_empty() { self.names.clone() } else { assistant.workflows.clone() };
        let put = PutAssistant {
            name: ASSISTANT.into(),
            workflows: workflows.clone(),
            instructions: assistant.instructions.clone(),
            etag: String::new(),
        };
        let author = Actor { subject: "author".into(), role: Role::Author };
        if let Err(rejection) =
            self.submit(Scope::Catalogue, author, Body::Catalogue(CatalogueCommand::PutAssistant(put)))?
        {
            return Ok(Err(rejection.into()));
        }
        let key = Key::assistant(self.tenant, ASSISTANT);
        let row = read(self.system, self.tenant, &Scope::Catalogue, |view| view.row(&key))?;
        let Some(Row::Assistant(row)) = row.as_deref() else {
            return Err(Broken("an assistant was put, but does not exist".into()));
        };
        let assistant = Some(Assisted { name: row.name.clone(), instructions: row.instructions.clone() });
        let mut of_it = Vec::new();
        for name in &workflows {
            match self.queued(name)? {
                Ok(queued) => of_it.push(queued),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        if let [only] = of_it.as_slice() {
            return Ok(Ok(First { of: only.clone(), workflows: Vec::new(), assistant }));
        }
        let of = Queued { definition: String::new(), version: 0, machine: row.machine };
        Ok(Ok(First { of, workflows: of_it, assistant }))
    }

    /// The version of a definition that is active now.
    fn queued(&self, name: &str) -> Result<Result<Queued, Refusal>, Broken> {
        let missing = || Refusal::new(Reason::NotFound, format!("there is no definition {name:?}"));
        let active = self.active(name)?.ok_or_else(missing);
        Ok(active.map(|Active { number, machine }| Queued {
            definition: name.to_owned(),
            version: number,
            machine,
        }))
    }

    /// Everything in the catalogue, if it is more than one: the workflows that a conversation may switch between.
    fn workflows(&self) -> Result<Vec<Queued>, Broken> {
        if self.names.len() < 2 {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for name in &self.names {
            let active = self.active(name)?;
            all.extend(active.map(|active| Queued {
                definition: name.clone(),
                version: active.number,
                machine: active.machine,
            }));
        }
        Ok(all)
    }

    fn active(&self, name: &str) -> Result<Option<Active>, Broken> {
        read(self.system, self.tenant, &Scope::Catalogue, |view| {
            let number = match view.row(&Key::definition(self.tenant, name))?.as_deref() {
                Some(Row::Definition(definition)) => definition.active,
                Some(_) | None => None,
            };
            let Some(number) = number else { return Ok(None) };
            Ok(match view.row(&Key::version(self.tenant, name, number))?.as_deref() {
                Some(Row::Version(version)) => Some(Active { number, machine: version.machine }),
                Some(_) | None => None,
            })
        })
    }
}

fn invalid(path: &str, findings: &[Finding]) -> Refusal {
    let errors: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let mut messages: Vec<String> = errors
        .iter()
        .take(ERRORS_SHOWN_MAX)
        .map(|it| format!("{path}:{}:{}: {} {}", it.line, it.column, it.code, it.message))
        .collect();
    if errors.len() > ERRORS_SHOWN_MAX {
        messages.push(format!("and {} more", errors.len() - ERRORS_SHOWN_MAX));
    }
    Refusal { code: DEFINITION_INVALID, message: messages.join("; "), retry_after_ms: None }
}
