//! Shared by all services: the cluster, the caller, and the conversion of a request to a command and back.

use http::HeaderMap;
use prost::Message;
use std::ops::ControlFlow;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};
use switchward_engine::{PositionView, SessionView};
use switchward_machine::{Digest, SessionId, WorkKind};
use switchward_query::{Ask, AskStale, GetAnswered, GetSession, Reader, Source};
use switchward_shard::{Cluster, TenantPermits};
use switchward_state::catalogue::{DefaultEffect, LinkAuth, Quota, Role};
use switchward_state::limits::{REQUEST_ID_CHARS_MAX, WEIGHT_DEFAULT};
use switchward_state::run::RunAddress;
use switchward_state::{Body, Command, Reply, RequestId, Scope};
use tokio::sync::watch;
use tonic::{Request, metadata::MetadataMap};

use crate::admission::Authenticated;
use crate::auth::{self, Caller};
use crate::bodies::Bodies;
use crate::cpu_shares::CpuShares;
use crate::decision::SignIn;
use crate::error::{Reason, Refusal};
use crate::limits::{SIGN_INS_MAX, SIGN_INS_OF_TENANT_MAX};
use crate::mail::{QuarantineOfOthers, QuarantineStore};
use crate::names;
use crate::quotas::{self, QuotaDefaults};
use crate::refusals::{named, quota_of, refusal, unreadable};
use crate::run_address;
use crate::scans::{Scans, Share};
use crate::services::{Advances, Claims, Deleted, MovableClock, Pings};
use crate::session_request::SessionRequest;
use crate::stale;
use crate::trace::{TRACEPARENT, traceparent};
use crate::webhooks::{CallbackRates, SourceRates};

/// What the services share; cheap to clone.
#[derive(Clone)]
pub struct Api {
    pub(crate) cluster: Cluster,
    pub(crate) clock: Option<Arc<dyn MovableClock>>,
    /// Whether this is a development server, which accepts unsigned webhooks.
    pub(crate) development: bool,
    pub(crate) advances: Arc<Advances>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) scans: Arc<Scans>,
    /// The budgets of bodies that are being read.
    pub(crate) bodies: Bodies,
    /// The tenants' shares of the cores, for long work.
    pub(crate) shares: CpuShares,
    pub(crate) webhook_rates: Arc<SourceRates>,
    pub(crate) callback_rates: Arc<CallbackRates>,
    /// The quotas of tenants that set none of their own.
    pub(crate) quotas: QuotaDefaults,
    /// The request rate of each tenant, and how often its quotas refused something.
    pub(crate) rates: Arc<quotas::Rates>,
    /// Sends single messages to endpoints, if this server sends any.
    pub(crate) pings: Arc<OnceLock<Arc<dyn Pings>>>,
    /// Stores mail that was not accepted, if this server stores any.
    pub(crate) quarantine: Arc<OnceLock<Arc<dyn QuarantineStore>>>,
    /// The quarantines of the other servers, if there are any.
    pub(crate) quarantine_of_others: Arc<OnceLock<Arc<dyn QuarantineOfOthers>>>,
    /// Mails recently deleted from the quarantine.
    pub(crate) deleted: Arc<Deleted>,
    /// How many mails [`sweep`](fn@crate::mail::sweep) has deleted from the quarantine.
    pub(crate) swept: Arc<AtomicU64>,
    /// Kinds of work that the server does itself: a worker that polls for all kinds does not get these.
    pub(crate) own: Arc<[WorkKind]>,
    /// True once the server has begun to stop.
    pub(crate) draining: Arc<watch::Sender<bool>>,
    /// The configured effect for a call that no rule names and for which its tenant sets no default.
    default_effect: Option<DefaultEffect>,
    /// How decision pages recognise people.
    pub(crate) pages: PageSettings,
    /// Signs people in with an OpenID provider, if this server has one.
    pub(crate) sign_in: Option<Arc<dyn SignIn>>,
    /// The sign-ins whose codes are being exchanged.
    pub(crate) sign_ins: TenantPermits,
}

/// How decision pages recognise the people whose links they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSettings {
    /// The method for a tenant that does not set one.
    pub link_auth: LinkAuth,
    /// Whether people reach the pages by TLS, so that browsers send the cookies over TLS only.
    pub secure: bool,
}

impl Default for PageSettings {
    /// A code is mailed, and pages are reached by TLS.
    fn default() -> Self {
        Self { link_auth: LinkAuth::Code, secure: true }
    }
}

/// A call: who makes it, and under which trace.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Api,
    pub(crate) caller: Caller,
    pub(crate) trace: Option<String>,
}

impl Api {
    /// Creates the API of this cluster. Calls can advance `clock` if it is given.
    #[must_use]
    pub fn new(cluster: Cluster, clock: Option<Arc<dyn MovableClock>>) -> Self {
        let draining = Arc::new(watch::channel(false).0);
        Self {
            cluster,
            development: clock.is_some(),
            clock,
            advances: Arc::default(),
            claims: Arc::default(),
            scans: Arc::default(),
            bodies: Bodies::default(),
            shares: CpuShares::default(),
            webhook_rates: Arc::new(SourceRates::of_sources()),
            callback_rates: Arc::new(CallbackRates::new()),
            quotas: QuotaDefaults::default(),
            rates: Arc::default(),
            pings: Arc::default(),
            quarantine: Arc::default(),
            quarantine_of_others: Arc::default(),
            deleted: Arc::default(),
            swept: Arc::default(),
            own: Arc::new([]),
            draining,
            default_effect: None,
            pages: PageSettings::default(),
            sign_in: None,
            sign_ins: TenantPermits::new(SIGN_INS_MAX, SIGN_INS_OF_TENANT_MAX),
        }
    }

    /// Sets the effect for a call that no rule names and for which its tenant sets no default.
    #[must_use]
    pub fn defaulting(self, default_effect: Option<DefaultEffect>) -> Self {
        Self { default_effect, ..self }
    }

    /// Sets the quotas of tenants that set none of their own; without it they have none.
    #[must_use]
    pub fn limiting(self, quotas: QuotaDefaults) -> Self {
        Self { quotas, ..self }
    }

    /// Sets the memory that the server may use, in bytes; without it, [`MEMORY_BYTES_DEFAULT`].
    ///
    /// [`MEMORY_BYTES_DEFAULT`]: crate::limits::MEMORY_BYTES_DEFAULT
    #[must_use]
    pub fn within_memory(self, bytes: usize) -> Self {
        Self { bodies: Bodies::within(bytes), ..self }
    }

    /// How often each quota of tenants has refused something on this server.
    #[must_use]
    pub fn quota_refusals(&self) -> [(Quota, u64); Quota::ALL.len()] {
        self.rates.refusals()
    }

    /// Sets how decision pages recognise people.
    #[must_use]
    pub fn recognising(self, pages: PageSettings) -> Self {
        Self { pages, ..self }
    }

    /// Lets decision pages sign people in with this provider, if there is one.
    #[must_use]
    pub fn signing_in(self, sign_in: Option<Arc<dyn SignIn>>) -> Self {
        Self { sign_in, ..self }
    }

    /// Makes this the API of a development server.
    #[must_use]
    pub fn of_development(self) -> Self {
        Self { development: true, ..self }
    }

    /// Leaves these kinds of work to the server itself, unless a worker names them.
    #[must_use]
    pub fn leaving(self, own: Vec<WorkKind>) -> Self {
        Self { own: own.into(), ..self }
    }

    /// Sends single messages to endpoints with `pings` from now on; only the first call counts.
    pub fn pinging(&self, pings: Arc<dyn Pings>) {
        let _ = self.pings.set(pings);
    }

    /// Stores mail that was not accepted in `quarantine` from now on; only the first call counts.
    pub fn keeping(&self, quarantine: Arc<dyn QuarantineStore>) {
        let _ = self.quarantine.set(quarantine);
    }

    /// Shows and deletes also what `others` keep from now on; only the first call counts.
    pub fn keeping_elsewhere(&self, others: Arc<dyn QuarantineOfOthers>) {
        let _ = self.quarantine_of_others.set(others);
    }

    /// Returns how many mails have been deleted from the quarantine because they are kept no longer.
    #[must_use]
    pub fn quarantine_deleted(&self) -> u64 {
        self.swept.load(Ordering::Relaxed)
    }

    /// Ends the open streams, which would otherwise hold up a server that stops. Their callers resume elsewhere.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// The call of a caller who is known.
    pub(crate) fn call_of(&self, mut caller: Caller, metadata: &MetadataMap) -> Call<'_> {
        caller.settings.quotas = self.quotas.under(caller.settings.quotas);
        let headers: &HeaderMap = metadata.as_ref();
        let trace = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        let trace = trace.and_then(traceparent);
        Call { api: self, caller, trace }
    }

    /// The answer to a query, from rows that are not older than anything that was answered before.
    pub(crate) async fn ask<Q: Ask>(&self, query: &Q) -> Result<Q::Answer, Refusal> {
        self.reader(query.source()).await?.answer(query).map_err(unreadable)
    }

    /// The rows of one shard, not older than anything that was answered before, for several queries.
    pub(crate) async fn reader(&self, source: Source) -> Result<Reader, Refusal> {
        Reader::of_source(&self.cluster, source).await.map_err(refusal)
    }

    /// The answer to a query, from the rows as this server has them.
    pub(crate) fn ask_stale<Q: AskStale>(&self, query: &Q) -> Result<Q::Answer, Refusal> {
        stale::answer(&self.cluster, query)
    }

    /// Carries out the command of a session that a request asks for, as its caller.
    ///
    /// # Errors
    /// As [`Self::open`], [`request_id`], `body`, [`Call::execute`] and [`position_after`]; NOT_FOUND under the name that the
    /// request gave.
    pub(crate) async fn drive<T: SessionRequest>(
        &self,
        request: Request<T>,
        roles: &[Role],
        body: impl FnOnce(&Call<'_>, T) -> Result<Body, Refusal>,
    ) -> Result<Driven, Refusal> {
        let (call, mut message) = self.open(request, roles)?;
        let request = request_id(message.request_id(), T::METHOD, &message)?;
        let (expected, name) = (message.expected_sequence(), message.take_name());
        let address = message.take_address();
        let body = body(&call, message)?;
        let session = names::session(&call.caller, "name", &name)?;
        let address = run_address::of(&call.caller, session, address)?;
        let reply = call.execute_at(Scope::Session(session), address, request, expected, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "session", &name))?;
        let view = position_after(session, reply, &name)?;
        Ok(Driven { caller: call.caller, view })
    }

    /// The call that a request is, and its message. Looks at the credential, unless what the guard has found still holds, and
    /// refuses a role that may not make the call.
    pub(crate) fn open<T>(&self, mut request: Request<T>, roles: &[Role]) -> Result<(Call<'_>, T), Refusal> {
        let found = request.extensions_mut().remove::<Authenticated>();
        let headers: &HeaderMap = request.metadata().as_ref();
        let caller = match found.and_then(|found| found.caller_now(&self.cluster, headers)) {
            Some(caller) => caller,
            None => auth::caller(&self.cluster, auth::credential(headers))?,
        };
        let mut caller = caller.allow(roles)?;
        caller.settings = caller.settings.or_configured(self.default_effect);
        let call = self.call_of(caller, request.metadata());
        Ok((call, request.into_inner()))
    }
}

/// A command of a session that was carried out.
pub(crate) struct Driven {
    pub(crate) caller: Caller,
    /// Where the session stands after the command.
    pub(crate) view: PositionView,
}

/// Where a session stands after a command, by the command's own reply; `name` is the session's name in a refusal.
///
/// # Errors
/// NOT_FOUND if the session is gone by now.
pub(crate) fn position_after(id: SessionId, reply: Reply, name: &str) -> Result<PositionView, Refusal> {
    let view = reply.into_position().and_then(|position| PositionView::of(id, position));
    view.ok_or_else(|| Refusal::not_found("session", name))
}

/// Prefixes of the request ids that the server itself makes.
const OWN_IDS: [&str; 8] =
    ["call:", "confirm:", "delivery:", "lease:", "mail:", "page:", "settle:", "webhook:"];

/// The request id of a message, with the digest of the method and of the message.
///
/// The digest is of the message encoded again, not of the bytes that came: a repetition may give fields and entries of maps
/// in another order, or come as JSON after Protobuf, and is the same request all the same. Encoding is deterministic, as
/// maps are ordered here. Fields that this version does not know have no part in it.
///
/// # Errors
/// FIELD_INVALID for one that is too long, holds control characters, or has a prefix of the server's own: a later mail or
/// webhook with that id would then count as a repetition.
pub(crate) fn request_id(
    id: &str,
    method: &str,
    message: &impl Message,
) -> Result<Option<RequestId>, Refusal> {
    if id.is_empty() {
        return Ok(None);
    }
    if id.chars().count() > REQUEST_ID_CHARS_MAX || names::has_control(id) {
        let problem = format!("must be 1 to {REQUEST_ID_CHARS_MAX} characters without control characters");
        return Err(Refusal::field("request_id", problem));
    }
    if let Some(own) = OWN_IDS.iter().find(|own| id.starts_with(**own)) {
        return Err(Refusal::field(
            "request_id",
            format!("must not begin with {own:?}, which is reserved for the server"),
        ));
    }
    let body = Digest::of_parts(&[method.as_bytes(), &message.encode_to_vec()]);
    Ok(Some(RequestId { id: id.to_owned(), body }))
}

impl Call<'_> {
    /// The weight of the caller's tenant.
    pub(crate) fn weight(&self) -> u32 {
        self.caller.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT)
    }

    /// Computes a list of the caller's tenant on a blocking thread, slice by slice, until `work` breaks off with what it has
    /// found; see [`Share::pace`].
    ///
    /// # Errors
    /// As `work`, and QUOTA_EXCEEDED if too many lists of the tenant are waiting.
    pub(crate) async fn look_for<T: Send + 'static>(
        &self,
        work: impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<T>, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let scan = self.api.scans.begin(self.caller.tenant).await?;
        self.in_slices(scan.share(1), work).await
    }

    /// As [`look_for`](Self::look_for), as part of a list that has begun.
    pub(crate) async fn in_slices<T: Send + 'static>(
        &self,
        mut share: Share,
        mut work: impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<T>, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        loop {
            let permit = self.api.shares.enter(self.caller.tenant, self.weight()).await?;
            let (api, caller) = (self.api.clone(), self.caller.clone());
            let slice = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                share.begin();
                let flow = work(&Call { api: &api, caller, trace: None }, &mut share)?;
                Ok::<_, Refusal>((share, work, flow))
            });
            let failed = |_| Refusal::new(Reason::InternalError, "failed to read the list");
            let flow;
            (share, work, flow) = slice.await.map_err(failed)??;
            if let ControlFlow::Break(found) = flow {
                return Ok(found);
            }
        }
    }

    /// Carries out a command of this caller.
    pub(crate) async fn execute(
        &self,
        scope: Scope,
        request: Option<RequestId>,
        expected_sequence: Option<u64>,
        body: Body,
    ) -> Result<Reply, Refusal> {
        self.execute_at(scope, None, request, expected_sequence, body).await
    }

    /// As [`execute`](Self::execute), for a command about one run of a session, if an address names one.
    pub(crate) async fn execute_at(
        &self,
        scope: Scope,
        address: Option<RunAddress>,
        request: Option<RequestId>,
        expected_sequence: Option<u64>,
        body: Body,
    ) -> Result<Reply, Refusal> {
        let command = Command {
            tenant: self.caller.tenant,
            scope,
            request,
            expected_sequence,
            actor: self.caller.actor.clone(),
            settings: self.caller.settings,
            trace: self.trace.clone(),
            body,
            address,
        };
        let outcome = self.api.cluster.execute(command).await;
        outcome.map_err(|failure| match quota_of(&failure) {
            None => refusal(failure),
            Some(quota) => {
                self.api.rates.count_refusal(quota);
                let limit = self.caller.settings.quotas.get(quota).unwrap_or_default();
                refusal(failure).meta("limit", limit)
            }
        })
    }

    /// As [`execute`](Self::execute), for a command whose kind says its scope, as those about the catalogue do.
    pub(crate) async fn execute_in_own_scope(
        &self,
        request: Option<RequestId>,
        body: Body,
    ) -> Result<Reply, Refusal> {
        self.execute(body.traits().scope.own(), request, None, body).await
    }

    /// The answer to a query, from rows that are not older than anything that was answered before.
    pub(crate) async fn ask<Q: Ask>(&self, query: &Q) -> Result<Q::Answer, Refusal> {
        self.api.ask(query).await
    }

    /// A session of the caller's tenant.
    pub(crate) async fn session(&self, id: SessionId, name: &str) -> Result<SessionView, Refusal> {
        let found = self.ask(&GetSession { tenant: self.caller.tenant, session: id }).await?;
        found.ok_or_else(|| Refusal::not_found("session", name))
    }

    /// As [`execute`](Self::execute), for a command that is prepared from what is stored now. If that refuses it, a request
    /// that was answered before is answered the same again, whatever has become of what it is about.
    ///
    /// # Errors
    /// As [`execute`](Self::execute) and `prepare`.
    pub(crate) async fn execute_prepared(
        &self,
        scope: Scope,
        request: Option<RequestId>,
        prepare: impl Future<Output = Result<Body, Refusal>>,
    ) -> Result<Reply, Refusal> {
        match (prepare.await, request) {
            (Ok(body), request) => self.execute(scope, request, None, body).await,
            (Err(refused), Some(request)) => self.answered(scope, request).await?.ok_or(refused),
            (Err(refused), None) => Err(refused),
        }
    }

    /// What the request was answered with before, if that is still remembered.
    ///
    /// # Errors
    /// REQUEST_ID_REUSED if the request had another body then.
    pub(crate) async fn answered(&self, scope: Scope, request: RequestId) -> Result<Option<Reply>, Refusal> {
        let query = GetAnswered { tenant: self.caller.tenant, scope, request };
        match self.ask(&query).await? {
            None => Ok(None),
            Some(known) if known.body == query.request.body => Ok(Some(known.reply)),
            Some(_) => {
                let id = query.request.id;
                let message = format!("request id {id:?} was used before with another body; use a new one");
                Err(Refusal::new(Reason::RequestIdReused, message).meta("request_id", id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_api::v1::StartSessionRequest;

    #[test]
    fn a_request_in_another_order_of_fields_and_labels_is_the_same() {
        let team: &[u8] = b"\x32\x06\x0a\x01t\x12\x01w";
        let size: &[u8] = b"\x32\x06\x0a\x01s\x12\x01l";
        let id: &[u8] = b"\x7a\x01r";
        let digest = |parts: &[&[u8]], method: &str| {
            let message = StartSessionRequest::decode(parts.concat().as_slice()).expect("a message");
            let request = request_id(&message.request_id, method, &message).expect("a valid id");
            request.expect("an id").body
        };
        let first = digest(&[team, size, id], "StartSession");
        assert_eq!(first, digest(&[id, size, team], "StartSession"));
        assert_ne!(first, digest(&[team, id], "StartSession"), "a label less");
        assert_ne!(first, digest(&[team, size, id], "EndSession"));
    }
}
