//! Finds whose link it is, and what it is about.

use http::HeaderMap;
use switchward_engine::{Comment, GateView};
use switchward_machine::{TenantId, Time};
use switchward_query::{FindLinkedGate, GetTenantNumbered, LinkedGate, Reader, Source};
use switchward_state::approval::{MailKey, MailToken, TokenUse, Vote};
use switchward_state::catalogue::{LinkAuth, Role, Tenant};
use switchward_state::limits::BROWSER_KNOWN_MS;
use switchward_state::session::Session;
use switchward_state::{Actor, SharedRow};

use super::browser;
use super::browser::Known;
use crate::api::Api;
use crate::auth::Caller;
use crate::error::Refusal;
use crate::refusals::{refusal, unreadable};

/// What a token leads to.
pub(super) enum TokenTarget {
    /// A gate that asks, or asked, the person that the token was made for.
    Gate(Box<ApproverLink>),
    /// No gate.
    Nothing,
}

/// A gate, and the person whose link it is.
pub(super) struct ApproverLink {
    pub(super) token: MailToken,
    pub(super) caller: Caller,
    pub(super) gate: GateView,
    pub(super) session: SharedRow<Session>,
    /// The comments on it so far.
    pub(super) said: Vec<Comment>,
    /// Whether they were asked again since, so that only the newest mail's link counts.
    pub(super) old: bool,
    /// Whether they are the requester, who cannot decide.
    pub(super) own: bool,
    /// Whether the directory led to them when they were asked, and does not any more, so that they cannot decide.
    pub(super) lost: bool,
    /// Their approval, if it counts and others must still approve.
    pub(super) vote: Option<Vote>,
    /// What is known about the browser.
    pub(super) visit: Visit,
}

impl ApproverLink {
    /// Returns true if a code recognises the person: their page requires one, and does not know them yet.
    pub(super) fn takes_codes(&self) -> bool {
        self.visit.wanted == LinkAuth::Code && self.visit.by.is_none()
    }

    /// Returns true if a sign-in recognises the person: their page requires one, and does not know them yet.
    pub(super) fn takes_sign_in(&self) -> bool {
        let visit = &self.visit;
        visit.wanted == LinkAuth::Oidc && visit.by.is_none() && visit.requester.is_none()
    }
}

/// What a page knows of the browser that shows it.
pub(super) struct Visit {
    /// How the person must be recognised.
    pub(super) wanted: LinkAuth,
    /// How they are recognised, if that is enough.
    pub(super) by: Option<LinkAuth>,
    /// The requester, if the page recognised them in this browser before.
    pub(super) requester: Option<String>,
    /// Whether a code was sent to the person that still counts.
    pub(super) coded: bool,
    /// Whether this server can sign people in.
    pub(super) signs_in: bool,
    /// What its cookies are signed with.
    pub(super) key: MailKey,
    /// What its cookies may have been signed with: the key and those that it has replaced.
    pub(super) keys: Vec<MailKey>,
    /// How long a browser stays known, milliseconds.
    pub(super) keep_ms: u64,
    /// The time; it says whether codes and cookies still count.
    pub(super) now: Time,
}

/// Reads what a token is about. The result is the same for a token that was never made and for one whose gate is gone.
pub(super) async fn find(api: &Api, token: MailToken, headers: &HeaderMap) -> Result<TokenTarget, Refusal> {
    let source = Source::session(token.session);
    let rows = Reader::of_source(&api.cluster, source).await.map_err(refusal)?;
    let now = api.cluster.now_or_median();
    let linked = rows.answer(&FindLinkedGate { token: token.clone() }).map_err(unreadable)?;
    let Some(LinkedGate { tenancy, session, gate, comments: said }) = linked else {
        return Ok(TokenTarget::Nothing);
    };
    let keys = tenancy.mail_keys(&api.cluster.ring(), token.tenant);
    let Some(asked) = &gate.open().body.asked else { return Ok(TokenTarget::Nothing) };
    let made = |person: &&String| keys.iter().any(|key| key.made(&token, TokenUse::Page, person));
    let Some(person) = asked.to.iter().find(made).cloned() else { return Ok(TokenTarget::Nothing) };
    let old = asked.request_of(&person) != Some(token.request);
    let theirs = |vote: &&Vote| vote.shown == asked.digest() && vote.is_of(&person, &tenancy.directory);
    let vote = asked.voting.iter().flat_map(|voting| &voting.votes).find(theirs).cloned();
    let gated = &gate.open().body;
    let own = gated.kind.needs_another() && tenancy.directory.one_person(&person, &gated.requester);
    let lost = gated.has_lost(&person, &tenancy.directory);
    let Some(tenant) = tenant_of(api, token.tenant)? else { return Ok(TokenTarget::Nothing) };
    let Some(key) = keys.first().cloned() else { return Ok(TokenTarget::Nothing) };
    let wanted = tenant.settings.link_auth.unwrap_or(api.pages.link_auth);
    let keep_ms = tenant.settings.browser_known_ms.unwrap_or(BROWSER_KNOWN_MS);
    let browser = browser::known(headers, token.tenant, &keys, now, keep_ms);
    let best = browser.iter().filter(|known| known.person.eq_ignore_ascii_case(&person));
    let best = best.map(|known| known.by).chain([LinkAuth::Link]).max();
    let asks = |known: &&Known| {
        gated.kind.needs_another() && tenancy.directory.one_person(&known.person, &gated.requester)
    };
    let visit = Visit {
        wanted,
        by: best.filter(|by| *by >= wanted),
        requester: browser.iter().find(asks).map(|known| known.person.clone()),
        coded: asked.codes_of(&person).is_some_and(|codes| codes.current(now).is_some()),
        signs_in: api.sign_in.is_some(),
        key,
        keys,
        keep_ms,
        now,
    };
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name,
        settings: tenant.settings,
        actor: Actor { subject: person, role: Role::Approver },
        key_id: String::new(),
    };
    Ok(TokenTarget::Gate(Box::new(ApproverLink {
        token,
        caller,
        gate,
        session,
        said,
        old,
        own,
        lost,
        vote,
        visit,
    })))
}

/// The tenant of this number, unless it is deleted: a shard may not know of that yet.
pub(crate) fn tenant_of(api: &Api, id: TenantId) -> Result<Option<Tenant>, Refusal> {
    let tenant = api.ask_stale(&GetTenantNumbered { tenant: id })?;
    Ok(tenant.filter(|tenant| tenant.deleted.is_none()))
}
