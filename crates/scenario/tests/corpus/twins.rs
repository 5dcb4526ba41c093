//! A system in which a second tenant repeats every step of the first one.

use std::collections::BTreeMap;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_scenario::{Answer, Broken, Memory, System, ring};
use switchward_state::approval::MailKey;
use switchward_state::catalogue::{CatalogueCommand, EnsureTenancy};
use switchward_state::policy::PolicyCommand;
use switchward_state::run::{RecordEvent, RunCommand};
use switchward_state::seal::SEAL_NONCE_BYTES;
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command, Key, Reply, Row, Scope, View, ViewError};

/// The twin's name.
const NAME: &str = "twin";
/// The key of the twin's tokens.
const TWINS_KEY: MailKey = MailKey([9; 32]);
/// The first tenant of a system.
const FIRST: TenantId = TenantId(1);

/// No data of one tenant may reach the other, so both must get the same answers. If there are two ways to express the
/// same, the twin uses the other one.
pub(crate) struct Twins {
    system: Memory,
    twin: TenantId,
    sessions: BTreeMap<SessionId, SessionId>,
    /// The name that the first tenant's reply tokens carry.
    first: Option<String>,
    /// The key of those tokens.
    key: Option<MailKey>,
}

impl Twins {
    pub(crate) fn of(system: Memory) -> Self {
        Self { system, twin: TenantId(0), sessions: BTreeMap::new(), first: None, key: None }
    }

    fn twin_of(&mut self, command: &Command) -> Command {
        let mut twin = command.clone();
        if let Body::Session(SessionCommand::Start(start)) = &command.body {
            self.first.clone_from(&start.reply_tenant);
        }
        if let Body::Catalogue(CatalogueCommand::CreateTenant(create)) = &mut twin.body {
            create.name = NAME.into();
            return twin;
        }
        twin.tenant = self.twin;
        if let Scope::Session(id) = command.scope {
            let request = command.request.as_ref().map_or("", |request| request.id.as_str());
            let fresh = SessionId::from_request(self.twin, request);
            twin.scope = Scope::Session(*self.sessions.entry(id).or_insert(fresh));
        }
        self.keyed(&command.body, &mut twin);
        if let Body::Policy(PolicyCommand::ReportCall(report)) = &mut twin.body
            && let Some(name) = self.oldest(&twin.scope, report.capability.as_deref())
        {
            // One names the capability, the other the call that is meant by it.
            (report.call_id, report.capability) = (Some(name), None);
        }
        twin
    }

    /// The twin's reply tokens are made with a key of its own; a token that the first tenant's session has made is
    /// replaced by the twin's.
    fn keyed(&mut self, of_first: &Body, twin: &mut Command) {
        if let Body::Session(SessionCommand::Start(start)) = &mut twin.body {
            start.reply_tenant = Some(NAME.into());
        }
        if let Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure)) = &mut twin.body {
            ensure.key = TWINS_KEY.sealed(ring(), self.twin, [0; SEAL_NONCE_BYTES]);
        }
        if let Body::Catalogue(CatalogueCommand::EnsureTenancy(EnsureTenancy { key: Some(key), .. })) =
            of_first
        {
            self.key = MailKey::open(ring(), FIRST, key).ok();
        }
        let (Body::Run(RunCommand::RecordEvent(event)), Scope::Session(id)) = (&mut twin.body, &twin.scope)
        else {
            return;
        };
        let Body::Run(RunCommand::RecordEvent(RecordEvent { token: Some(token), .. })) = of_first else {
            return;
        };
        let named = self.first.as_ref() == Some(&token.tenant);
        let own = named && self.key.as_ref().is_some_and(|key| key.made_reply(token));
        let twins = || TWINS_KEY.reply_token(NAME, *id, token.run, token.entry);
        event.token = own.then(twins).or(event.token.take());
    }

    /// The twin's oldest unreported call of a capability, by its name.
    fn oldest(&self, scope: &Scope, capability: Option<&str>) -> Option<String> {
        let Scope::Session(id) = *scope else { return None };
        let mut found = None;
        let look = |view: &dyn View| {
            let session = view.row(&Key::session(self.twin, id))?;
            let Some(Row::Session(session)) = session.as_deref() else { return Ok(()) };
            for number in &session.calls {
                let row = view.row(&Key::call(self.twin, id, *number))?;
                if let Some(Row::Call(call)) = row.as_deref()
                    && Some(call.capability.as_str()) == capability
                {
                    found = Some(call.call_id.clone());
                    break;
                }
            }
            Ok(())
        };
        let mut look = look;
        self.system.read(self.twin, scope, &mut look).expect("the rows can be read");
        found
    }
}

impl System for Twins {
    fn now(&self) -> Time {
        self.system.now()
    }

    fn submit(&mut self, command: Command) -> Result<Answer, Broken> {
        let twin = self.twin_of(&command);
        let answer = self.system.submit(command)?;
        let other = self.system.submit(twin)?;
        if let Ok(Reply::Tenant(tenant)) = &other {
            self.twin = tenant.id;
        }
        let (one, two) = (apart(&answer), apart(&other));
        if one == two { Ok(answer) } else { Err(Broken(format!("one tenant gets {one}, the other {two}"))) }
    }

    fn read(
        &self,
        tenant: TenantId,
        scope: &Scope,
        look: &mut dyn FnMut(&dyn View) -> Result<(), ViewError>,
    ) -> Result<(), Broken> {
        self.system.read(tenant, scope, look)
    }

    fn advance(&mut self, to: Time) -> Result<(), Broken> {
        self.system.advance(to)
    }
}

/// An answer without anything that names its tenant or its session.
fn apart(answer: &Answer) -> String {
    match answer {
        Ok(Reply::Session { sequence, .. }) => format!("a session at {sequence}"),
        Ok(Reply::Recorded { sequence, event, .. }) => format!("event {event} of a session at {sequence}"),
        Ok(Reply::Replied { sequence, outcome, .. }) => format!("{outcome:?}, a session at {sequence}"),
        Ok(Reply::Worked { sequence, wrong, .. }) => format!("a session at {sequence}, {wrong:?}"),
        Ok(Reply::Metered { sequence, meters, usd_cap, mail_cap, .. }) => {
            format!("{meters:?} of {usd_cap:?} and {mail_cap:?}, a session at {sequence}")
        }
        Ok(Reply::Effect { sequence, effect, .. }) => format!("{effect:?}, a session at {sequence}"),
        Ok(Reply::Tenant(_)) => "a tenant".into(),
        Ok(reply) => format!("{reply:?}"),
        Err(rejection) => format!("{:?} {}", rejection.reason, rejection.message),
    }
}
