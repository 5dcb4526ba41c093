//! MailService: shows and deletes inbound mail in quarantine.

mod deleted;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_api::v1::{self, mail_service_server::MailService};
use switchward_mail::incoming::{legible, withholding};
use switchward_query::GetTenantRecord;
use switchward_state::catalogue::Role;
use switchward_state::session::Retention;
use tonic::{Request, Response, Status};

pub(crate) use deleted::Deleted;

use super::tenants::FIRST;
use crate::api::{Api, Call};
use crate::auth::{Caller, roles};
use crate::convert::timestamp;
use crate::error::{QUARANTINED_MAIL, Reason, Refusal};
use crate::limits::{MAIL_KEPT_BYTES_MAX, MAIL_KEPT_MS_MAX};
use crate::mail::{QuarantineStore, QuarantinedMail, delete_until, kept_ms};
use crate::mask::Mask;
use crate::pages::{Page, order};
use crate::{hide, names};

type Answered<T> = Result<Response<T>, Status>;

/// When a call about a mail is worth repeating that a server may have which did not answer.
const AGAIN: Duration = Duration::from_secs(1);

#[tonic::async_trait]
impl MailService for Api {
    async fn list_quarantined_mail(
        &self,
        request: Request<v1::ListQuarantinedMailRequest>,
    ) -> Answered<v1::ListQuarantinedMailResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("QuarantinedMail", message.read_mask)?;
        order(&message.order_by, "create_time desc")?;
        let list = ["quarantine", call.caller.tenant_name.as_str()];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let Seen { mails: found, unreachable } = seen(&call).await?;
        let found = found.into_iter().map(|mail| {
            let position = [&(!mail.at.0).to_be_bytes()[..], mail.id.as_bytes()].concat();
            (position, masked(of_mail(&call.caller, &mail)))
        });
        let (mails, next_page_token) = page.cut(found.collect());
        let mails = mask.keep_each(mails);
        Ok(Response::new(v1::ListQuarantinedMailResponse { mails, next_page_token, unreachable }))
    }

    async fn get_quarantined_mail(
        &self,
        request: Request<v1::GetQuarantinedMailRequest>,
    ) -> Answered<v1::GetQuarantinedMailResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let mask = Mask::read("QuarantinedMail", message.read_mask)?;
        let mail = found(&message.name, &call, &seen(&call).await?)?;
        let id = mail.id.clone();
        let mut content = in_quarantine(&call, move |quarantine| quarantine.content(&id)).await?;
        let mut unreachable = Vec::new();
        if let (None, Some(others)) = (&content, self.quarantine_of_others.get()) {
            let elsewhere = others.content(&mail.id).await;
            (content, unreachable) = (elsewhere.found, names_of(&elsewhere.unreachable));
        }
        let content = content.ok_or_else(|| missing(&message.name, &unreachable))?;
        let read = legible(&content);
        let shown = v1::QuarantinedMail {
            headers: read.headers,
            text: read.text,
            truncated: u64::try_from(content.len()).is_ok_and(|kept| kept < mail.bytes),
            content: withholding(&content, &|text| hide::without_any(text).is_some()).into(),
            ..of_mail(&call.caller, &mail)
        };
        Ok(Response::new(v1::GetQuarantinedMailResponse { mail: Some(mask.keep(masked(shown))) }))
    }

    async fn delete_quarantined_mail(
        &self,
        request: Request<v1::DeleteQuarantinedMailRequest>,
    ) -> Answered<v1::DeleteQuarantinedMailResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let id = names::quarantined(&call.caller, "name", &message.name)?.to_owned();
        let seen = seen(&call).await?;
        let mail = match found(&message.name, &call, &seen) {
            Ok(mail) => mail,
            Err(_) if self.deleted.has(call.caller.tenant, &id) => {
                let unreachable = seen.unreachable;
                return Ok(Response::new(v1::DeleteQuarantinedMailResponse { unreachable }));
            }
            Err(refused) => return Err(refused.into()),
        };
        let (tenant, deleted, last) = (call.caller.tenant, Arc::clone(&self.deleted), mail.at);
        let mut unreachable = Vec::new();
        if let Some(others) = self.quarantine_of_others.get() {
            unreachable = names_of(&others.delete(tenant, &id, last).await.unreachable);
        }
        // A concurrent delete counts as success, unless the mail came once more. Recorded inside the blocking task,
        // because the caller may have disconnected.
        let delete = move |quarantine: &dyn QuarantineStore| {
            if delete_until(quarantine, &id, last)? || quarantine.list().iter().all(|one| one.id != id) {
                deleted.note(tenant, id);
            }
            Ok(())
        };
        in_quarantine(&call, delete).await?;
        Ok(Response::new(v1::DeleteQuarantinedMailResponse { unreachable }))
    }
}

/// The refusal of a mail that no server has that answered. The others may have it.
fn missing(name: &str, unreachable: &[String]) -> Refusal {
    if unreachable.is_empty() {
        return Refusal::not_found(QUARANTINED_MAIL, name);
    }
    let message =
        format!("no server that answered has the mail {name:?}; {} did not answer", unreachable.join(", "));
    Refusal::new(Reason::ServerUnreachable, message).retry_after(AGAIN)
}

/// The names of servers in answers.
fn names_of(servers: &[u64]) -> Vec<String> {
    servers.iter().map(|number| format!("servers/{number}")).collect()
}

/// Returns true if a caller may see a mail: mail that names their tenant, and for the first tenant's admins also mail that
/// names none.
fn shows(caller: &Caller, mail: &QuarantinedMail) -> bool {
    match mail.tenant {
        Some(tenant) => tenant == caller.tenant,
        None => caller.tenant == FIRST && caller.actor.role == Role::Admin,
    }
}

/// The mails that a caller may see.
#[derive(Default)]
struct Seen {
    mails: Vec<QuarantinedMail>,
    /// The names of the servers whose mails are missing.
    unreachable: Vec<String>,
}

/// Returns the mails in quarantine that the caller may see. A retention rule hides mail at once, not only when the mail is
/// deleted.
async fn seen(call: &Call<'_>) -> Result<Seen, Refusal> {
    if call.api.quarantine.get().is_none() {
        return Ok(Seen::default());
    }
    let record = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    let of_tenant =
        record.map_or_else(|| kept_ms(&Retention::default()), |record| kept_ms(&record.retention));
    let of_nobody = MAIL_KEPT_MS_MAX;
    let now = call.api.cluster.now();
    let here = in_quarantine(call, |quarantine| Ok(quarantine.list())).await?;
    let (mut mails, mut unreachable) = (here, Vec::new());
    if let Some(others) = call.api.quarantine_of_others.get() {
        let elsewhere = others.list(call.caller.tenant).await;
        (mails, unreachable) = (merged(mails, elsewhere.found), names_of(&elsewhere.unreachable));
    }
    mails.retain(|mail| {
        let kept_ms = if mail.tenant.is_some() { of_tenant } else { of_nobody };
        shows(&call.caller, mail) && now.since_ms(mail.at) <= kept_ms
    });
    Ok(Seen { mails, unreachable })
}

/// Lists a mail that came to several servers once, as it came last.
fn merged(here: Vec<QuarantinedMail>, elsewhere: Vec<QuarantinedMail>) -> Vec<QuarantinedMail> {
    let mut mails: BTreeMap<String, QuarantinedMail> = BTreeMap::new();
    for mail in here.into_iter().chain(elsewhere) {
        if mails.get(&mail.id).is_none_or(|known| known.at < mail.at) {
            mails.insert(mail.id.clone(), mail);
        }
    }
    mails.into_values().collect()
}

/// Returns the mail of a name, if the caller may see it.
fn found(name: &str, call: &Call<'_>, seen: &Seen) -> Result<QuarantinedMail, Refusal> {
    let id = names::quarantined(&call.caller, "name", name)?;
    let mail = seen.mails.iter().find(|mail| mail.id == id);
    mail.cloned().ok_or_else(|| missing(name, &seen.unreachable))
}

/// Runs a task on the quarantine store, on a blocking thread.
async fn in_quarantine<T: Send + 'static>(
    call: &Call<'_>,
    task: impl FnOnce(&dyn QuarantineStore) -> Result<T, String> + Send + 'static,
) -> Result<T, Refusal> {
    let broken = |error: String| {
        tracing::error!(error, "failed to read or change the quarantine");
        Refusal::new(Reason::InternalError, "the server failed to read or change its quarantine")
    };
    let Some(quarantine) = call.api.quarantine.get().map(Arc::clone) else {
        return Err(broken("this server has no quarantine".to_owned()));
    };
    let done = tokio::task::spawn_blocking(move || task(&*quarantine)).await;
    done.map_err(|error| error.to_string()).flatten().map_err(broken)
}

/// A mail without its tokens: an operator of the quarantine is not the recipient of the mail that it answers.
fn masked(mail: v1::QuarantinedMail) -> v1::QuarantinedMail {
    hide::masked("QuarantinedMail", mail)
}

fn of_mail(caller: &Caller, mail: &QuarantinedMail) -> v1::QuarantinedMail {
    let most = u64::try_from(MAIL_KEPT_BYTES_MAX).unwrap_or(u64::MAX);
    v1::QuarantinedMail {
        name: names::of_quarantined(caller, &mail.id),
        outcome: mail.outcome.clone(),
        reason: mail.why.clone(),
        unmatched: mail.tenant.is_none(),
        sender: mail.sender.clone(),
        recipients: mail.recipients.clone(),
        from: mail.from.clone(),
        subject: mail.subject.clone(),
        size_bytes: mail.bytes,
        truncated: mail.bytes > most,
        session: mail.session.map(|session| names::of_session(caller, session)).unwrap_or_default(),
        create_time: Some(timestamp(mail.at)),
        ..v1::QuarantinedMail::default()
    }
}
