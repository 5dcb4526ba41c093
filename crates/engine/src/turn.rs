//! The working object of one command.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use switchward_expr::{Fuel, Patterns};
use switchward_machine::{
    Digest, Machine, Node, NodeIx, OpenId, RunId, SessionId, Status, TenantId, Time, WaitOn,
    reserved_keys::REPLY_TOKEN,
};
use switchward_state::approval::{MailKey, MailToken, Settled, TokenUse};
use switchward_state::catalogue::{Directory, Tenancy};
use switchward_state::delivery::{DeliveryEvent, Effect, EffectBody, EffectSource};
use switchward_state::limits::{CALL_DEPTH_MAX, EVENT_FUEL, TURN_FUEL};
use switchward_state::run::{Run, RunAddress};
use switchward_state::session::{Removing, ReplyMark, Session};
use switchward_state::work::{OpenItemBody, WorkEvent};
use switchward_state::{
    Command, Event, ItemKind, Key, ReadRows, Reason, Rejection, Reply, SharedRow, Site, ViewError, apply,
};

use crate::budget::Budget;
use crate::next::{Move, Next};
use crate::run::address::Active;
use crate::stamp::Stamp;
use crate::working::Working;

/// Why a command came to nothing.
pub(crate) enum Stop {
    /// The caller's request is refused. Possible only before the first event.
    Refused(Rejection),
    /// A row cannot be read; the whole batch is discarded.
    Broken(ViewError),
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

impl From<ViewError> for Stop {
    fn from(error: ViewError) -> Self {
        Self::Broken(error)
    }
}

/// One command at work.
pub(crate) struct Turn<'a, 'b> {
    pub(crate) rows: &'a mut Working<'b>,
    pub(crate) command: &'a Command,
    pub(crate) site: Site<'a>,
    /// Of the batch: what came in after its level is not written.
    pub(crate) stamp: Stamp,
    pub(crate) events: Vec<Event>,
    /// What it has written so far.
    pub(crate) budget: Budget,
    /// The regular expressions that it has compiled.
    pub(crate) patterns: Patterns,
    /// What it may still compute.
    pub(crate) fuel: Fuel,
    /// The nodes that were entered in this turn, in their order, with their machines.
    pub(crate) trail: Vec<(Digest, NodeIx)>,
    /// The original requester, if it differs from the command's actor. Deciding a gate does not make the decider a
    /// requester.
    pub(crate) asker: Option<String>,
    /// The trace that what happens belongs to: the caller's, else that of what has ended before it.
    pub(crate) trace: Option<String>,
    /// What is left to do for the driver, in its order.
    pub(crate) moves: VecDeque<Move>,
}

impl<'a, 'b> Turn<'a, 'b> {
    pub(crate) fn new(rows: &'a mut Working<'b>, command: &'a Command, stamp: Stamp) -> Self {
        let site = Site { tenant: command.tenant, scope: &command.scope, at: stamp.now };
        Self {
            rows,
            command,
            site,
            stamp,
            events: Vec::new(),
            budget: Budget::default(),
            patterns: Patterns::default(),
            fuel: Fuel::new(TURN_FUEL),
            trail: Vec::new(),
            asker: None,
            trace: command.trace.clone(),
            moves: VecDeque::new(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.stamp.now
    }

    pub(crate) fn tenant(&self) -> TenantId {
        self.site.tenant
    }

    /// The requester of a gate that opens now, who cannot decide it.
    pub(crate) fn requester(&self) -> String {
        self.asker.clone().unwrap_or_else(|| self.command.actor.subject.clone())
    }

    /// What happens now follows from something that belonged to this trace; a caller's own comes first.
    pub(crate) fn follows(&mut self, trace: Option<&String>) {
        self.trace = self.trace.take().or_else(|| trace.cloned());
    }

    /// Leaves it to the driver what a run does next, once the command has done its own part.
    pub(crate) fn go(&mut self, run: RunId, next: impl Into<Next>) {
        self.moves.push_back(Move { run, entry: None, next: next.into(), asker: None });
    }

    /// As [`go`](Self::go), for one of several runs: it moves if those before it leave it where it stands now.
    pub(crate) fn go_if_there(
        &mut self,
        run: RunId,
        next: impl Into<Next>,
        asker: Option<String>,
    ) -> Result<(), ViewError> {
        let entry = Some(self.run(run)?.entry);
        self.moves.push_back(Move { run, entry, next: next.into(), asker });
        Ok(())
    }

    /// A fact: it is applied at once, so that what comes later in the turn reads what is true.
    pub(crate) fn emit(&mut self, event: impl Into<Event>) -> Result<(), ViewError> {
        let event = event.into();
        apply(self.rows, &self.site, &event)?;
        let before = self.budget.bytes();
        self.budget.count(&event);
        self.fuel.spend(EVENT_FUEL);
        self.fuel.spend_bytes(self.budget.bytes().saturating_sub(before), 1);
        self.events.push(event);
        Ok(())
    }

    /// The session that the command is about.
    pub(crate) fn session_id(&self) -> Result<SessionId, ViewError> {
        self.site.session()
    }

    /// Its row; a session of another tenant does not exist here.
    pub(crate) fn session(&self) -> Result<SharedRow<Session>, Stop> {
        let found = self.rows.session(self.tenant(), self.session_id()?)?;
        let none = || Rejection::new(Reason::NotFound, "there is no such session");
        let session = found.ok_or_else(none)?;
        // What a removal leaves is for the removal alone.
        let not_own = || !self.command.body.traits().in_removed_session;
        match session.removal.as_deref().filter(|_| not_own()).map(|removal| removal.how) {
            Some(how) if how.hides() => Err(none().into()),
            Some(Removing::Erased) => Err(ended(&session).into()),
            Some(_) | None => Ok(session),
        }
    }

    /// Its row, if it has not ended and is at the sequence that the caller saw.
    pub(crate) fn live_session(&self) -> Result<SharedRow<Session>, Stop> {
        let session = self.session()?;
        if session.status.ended() {
            return Err(ended(&session).into());
        }
        self.expect_sequence(&session)?;
        Ok(session)
    }

    pub(crate) fn expect_sequence(&self, session: &Session) -> Result<(), Rejection> {
        match self.command.expected_sequence {
            Some(seen)
                if !(session.stable_from.unwrap_or(session.sequence)..=session.sequence).contains(&seen) =>
            {
                let now = session.sequence;
                let message =
                    format!("the session is at sequence {now}, not at {seen}; look again before you go on");
                Err(Rejection::new(Reason::SequenceConflict, message).fact("sequence", now))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn run(&self, run: RunId) -> Result<SharedRow<Run>, ViewError> {
        self.rows.run(self.tenant(), self.session_id()?, run)
    }

    /// The run that the command is about, if it names nothing open: the only active leaf, or the one of its address.
    pub(crate) fn leaf(&self) -> Result<RunId, Stop> {
        let session = self.session()?;
        Ok(self.active(&session)?.of_command(&session, self.command)??)
    }

    /// The same; if the command has no address, of several active leaves the one that stands at this node.
    pub(crate) fn leaf_at(&self, node: Option<&String>) -> Result<RunId, Stop> {
        let session = self.session()?;
        let (active, address) = (self.active(&session)?, self.command.address.as_ref());
        match node.filter(|_| address.is_none()) {
            Some(node) if active.leaves(2)?.len() > 1 => {
                let address = RunAddress { node: Some(node.clone()), ..RunAddress::default() };
                Ok(active.one(Some(&address))??)
            }
            Some(_) | None => Ok(active.of_command(&session, self.command)??),
        }
    }

    /// The active leaves that the command may be about: all of them, or the one of its address.
    pub(crate) fn leaves(&self) -> Result<Vec<RunId>, Stop> {
        if self.command.address.is_some() {
            return Ok(vec![self.leaf()?]);
        }
        Ok(self.active(&*self.session()?)?.leaves(usize::MAX)?)
    }

    /// The active runs of its session.
    pub(crate) fn active(&self, session: &Session) -> Result<Active<'_>, ViewError> {
        Ok(Active::of(self.rows, self.tenant(), self.session_id()?, session))
    }

    /// The only active leaf, or the run that waits for several children.
    pub(crate) fn stem(&self) -> Result<RunId, Stop> {
        let root = self.session()?.root;
        Ok(self.rows.stem(self.tenant(), self.session_id()?, root)?)
    }

    /// The mark of the reply token of a run's node, if it takes events from outside and the token can be read like data.
    pub(crate) fn reply_mark(&self, run: RunId) -> Result<Option<ReplyMark>, ViewError> {
        let id = self.session_id()?;
        let Some(session) = self.rows.session(self.tenant(), id)? else { return Ok(None) };
        let Some(tenant) = session.reply_tenant.as_ref() else { return Ok(None) };
        let at = self.run(run)?;
        let machine = self.machine(&at)?;
        if !machine.reserves(REPLY_TOKEN) || !machine.node(at.node).is_some_and(Node::listens_to_events) {
            return Ok(None);
        }
        let keys = self.mail_keys()?;
        Ok(keys.first().map(|key| key.reply_mark(&key.reply_token(tenant, id, run, at.entry))))
    }

    /// What the tenant's tokens are made with, the newest first; empty if it has none that can be opened.
    pub(crate) fn mail_keys(&self) -> Result<Vec<MailKey>, ViewError> {
        self.rows.mail_keys(self.tenant())
    }

    /// Who is who in the tenant.
    pub(crate) fn directory(&self) -> Result<DirectoryRow, ViewError> {
        DirectoryRow::of(self.rows, self.tenant())
    }

    /// What holds for the gates of a run, by the start and the directory.
    pub(crate) fn settled(&self, run: RunId) -> Result<Settled, Stop> {
        let session = self.session()?;
        Ok(settled(self.rows, self.tenant(), self.session_id()?, &session, run)?)
    }

    /// The definition of a run, and those by which it was called, the nearest first.
    pub(crate) fn definitions(&self, run: RunId) -> Result<Vec<String>, Stop> {
        Ok(definitions(self.rows, self.tenant(), self.session_id()?, run)?)
    }

    /// Whether a mail token was made for this session, this use and this person.
    pub(crate) fn made(&self, token: &MailToken, usage: TokenUse, address: &str) -> Result<bool, Stop> {
        if token.session != self.session_id()? || token.tenant != self.tenant() {
            return Ok(false);
        }
        Ok(self.mail_keys()?.iter().any(|key| key.made(token, usage, address)))
    }

    /// Whether this is the code that was sent then to the person of a page's token, which was looked at. Takes the same time
    /// for every code of the right length.
    pub(crate) fn is_page_code(
        &self,
        token: &MailToken,
        address: &str,
        sent: Time,
        code: &str,
    ) -> Result<bool, Stop> {
        let same = |key: &MailKey| {
            let right = key.page_code(token, address, sent);
            right.len() == code.len()
                && right.bytes().zip(code.bytes()).fold(0, |odd, (one, other)| odd | (one ^ other)) == 0
        };
        Ok(self.mail_keys()?.iter().any(same))
    }

    /// Returns the first of these addresses that a mail token was made for; `None` if it is for somebody else.
    pub(crate) fn made_for(
        &self,
        token: &MailToken,
        usage: TokenUse,
        addresses: &[String],
    ) -> Result<Option<String>, Stop> {
        for address in addresses {
            if self.made(token, usage, address)? {
                return Ok(Some(address.clone()));
            }
        }
        Ok(None)
    }

    /// The machine of a run; it is installed before the run is created.
    pub(crate) fn machine(&self, run: &Run) -> Result<Arc<Machine>, ViewError> {
        let found = self.rows.machine(self.tenant(), run.machine)?;
        found.ok_or_else(|| ViewError(format!("machine {} is not installed", run.machine)))
    }

    /// Puts a need for the outside into the outbox.
    pub(crate) fn send(&mut self, run: RunId, body: EffectBody) -> Result<u64, Stop> {
        let at = self.run(run)?;
        let source = EffectSource::Run { run, node: at.node, entry: at.entry };
        let number = self.session()?.next_id;
        let trace = self.trace.clone();
        let effect = Effect { source, number, deliver_at: self.now(), trace, body, progress: None };
        self.emit(DeliveryEvent::Queued { effect })?;
        Ok(number)
    }

    /// Opens work, a wait or a timer of the entry that a run is in.
    pub(crate) fn open(&mut self, run: RunId, body: OpenItemBody) -> Result<OpenId, Stop> {
        let item = OpenId(self.session()?.next_id);
        self.emit(WorkEvent::Opened { item, run, body, trace: self.trace.clone() })?;
        Ok(item)
    }

    /// What is open of this kind in a run, oldest first.
    pub(crate) fn open_in(&self, run: RunId, kind: ItemKind) -> Result<Vec<OpenId>, Stop> {
        Ok(self.session()?.open_in(run, kind).collect())
    }

    /// The wait of a run for this; `None` if it does not wait for it.
    pub(crate) fn open_wait(&self, run: RunId, on: WaitOn) -> Result<Option<OpenId>, Stop> {
        for item in self.open_in(run, ItemKind::Wait)? {
            if self.rows.wait_at(&self.item_key(item)?)?.is_some_and(|wait| wait.body.on == on) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// The key of an open item of the session.
    pub(crate) fn item_key(&self, item: OpenId) -> Result<Key, ViewError> {
        Ok(Key::item(self.tenant(), self.session_id()?, item))
    }

    /// The reply of a command that moved the session.
    pub(crate) fn moved(&self) -> Result<Reply, Stop> {
        Ok(Reply::Session { sequence: self.session()?.sequence, position: None })
    }
}

/// What holds for the gates of a run: as its own definition says, else as those that called it.
pub(crate) fn settled(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    run: RunId,
) -> Result<Settled, ViewError> {
    let names = definitions(rows, tenant, id, run)?;
    Ok(Settled::of(&session.start_settings(), &names, &*DirectoryRow::of(rows, tenant)?))
}

/// Who is who in a tenant, as its row says; nobody if it has none. All who read the row share what is known of its names.
pub(crate) struct DirectoryRow {
    tenancy: Option<SharedRow<Tenancy>>,
    none: Directory,
}

impl DirectoryRow {
    pub(crate) fn of(rows: &dyn ReadRows, tenant: TenantId) -> Result<Self, ViewError> {
        Ok(Self { tenancy: rows.tenancy_at(&Key::tenancy(tenant))?, none: Directory::default() })
    }
}

impl Deref for DirectoryRow {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        self.tenancy.as_deref().map_or(&self.none, |tenancy| &tenancy.directory)
    }
}

/// The definition of a run, and those by which it was called, the nearest first.
fn definitions(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    run: RunId,
) -> Result<Vec<String>, ViewError> {
    let (mut names, mut next) = (Vec::new(), Some(run));
    while let Some(run) = next.filter(|_| names.len() <= CALL_DEPTH_MAX) {
        let run = rows.run(tenant, id, run)?;
        names.push(run.definition.clone());
        next = run.parent.map(|parent| parent.run);
    }
    Ok(names)
}

/// The refusal of a session that is at its end.
pub(crate) fn ended(session: &Session) -> Rejection {
    let status = session.status.word();
    Rejection::new(Reason::SessionTerminal, format!("the session has ended: {status}")).fact("status", status)
}

/// The refusal of a caller's move while the session is paused.
pub(crate) fn not_paused(session: &Session) -> Result<(), Rejection> {
    if session.status == Status::Suspended {
        return Err(Rejection::new(Reason::StateMismatch, "the session is paused; resume it first"));
    }
    Ok(())
}

/// The refusal of a caller's move while a person is asked whether the node may be left.
pub(crate) fn not_held(run: &Run, node: &Node) -> Result<(), Rejection> {
    if run.held.is_some() {
        let message = format!("a person is asked first whether {:?} may be left", node.name);
        return Err(Rejection::new(Reason::ApprovalPending, message).fact("state", &node.name));
    }
    Ok(())
}

/// Checks that the etag that the caller saw is that of the current state; an empty one matches any.
pub(crate) fn check_etag(what: &str, seen: &str, now: Option<String>) -> Result<(), Rejection> {
    if seen.is_empty() || now.as_deref() == Some(seen) {
        return Ok(());
    }
    let message = format!("the {what} has changed since you looked; look again before you change it");
    Err(Rejection::new(Reason::EtagMismatch, message).fact("etag", now.unwrap_or_default()))
}

/// Checks that a text is within its limit.
pub(crate) fn check_text(field: &'static str, text: &str, bytes_max: usize) -> Result<(), Rejection> {
    check_size(field, text.len(), bytes_max, "bytes")
}

/// Checks that a field is within its limit.
pub(crate) fn check_size(field: &'static str, size: usize, max: usize, unit: &str) -> Result<(), Rejection> {
    if size > max {
        let message = format!("{field} is more than {max} {unit}");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", field).fact("max", max));
    }
    Ok(())
}
