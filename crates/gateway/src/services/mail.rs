//! MailService.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchward_api::v1;
use switchward_api::v1::mail_service_server::MailService;
use switchward_engine::{Key, Role, Row};
use switchward_machine::TenantId;
use switchward_mail::incoming::{legible, withholding};
use tonic::{Request, Response, Status};

use super::tenants::FIRST;
use crate::auth::{Caller, roles};
use crate::convert::timestamp;
use crate::door::{Call, Door};
use crate::error::{Reason, Refusal};
use crate::hide;
use crate::limits::{MAIL_DELETED_MAX, MAIL_KEPT_BYTES_MAX, MAIL_KEPT_MS_MAX};
use crate::mail::{Kept, Shelf, kept_ms};
use crate::mask::Mask;
use crate::names;
use crate::pages::{Page, order};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl MailService for Door {
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
        let found = seen(&call).await?.into_iter().map(|mail| {
            let place = [&(!mail.at.0).to_be_bytes()[..], mail.id.as_bytes()].concat();
            (place, masked(of_mail(&call.caller, &mail)))
        });
        let (mails, next_page_token) = page.cut(found.collect());
        let mails = mask.keep_each(mails);
        Ok(Response::new(v1::ListQuarantinedMailResponse { mails, next_page_token }))
    }

    async fn get_quarantined_mail(
        &self,
        request: Request<v1::GetQuarantinedMailRequest>,
    ) -> Answered<v1::GetQuarantinedMailResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let mask = Mask::read("QuarantinedMail", message.read_mask)?;
        let mail = found(&call, &message.name).await?;
        let id = mail.id.clone();
        let content = on_shelf(&call, move |shelf| shelf.content(&id)).await?;
        let content = content.ok_or_else(|| missing(&message.name))?;
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
        if self.deleted.has(call.caller.tenant, &id) {
            return Ok(Response::new(v1::DeleteQuarantinedMailResponse {}));
        }
        let mail = found(&call, &message.name).await?;
        let (tenant, deleted) = (call.caller.tenant, Arc::clone(&self.deleted));
        // Deleted by somebody else meanwhile, it is deleted as well, unless it came once more. It is noted where it is done, as
        // the caller may be gone.
        let delete = move |shelf: &dyn Shelf| {
            if shelf.delete(&mail)? || shelf.list().iter().all(|one| one.id != id) {
                deleted.note(tenant, id);
            }
            Ok(())
        };
        on_shelf(&call, delete).await?;
        Ok(Response::new(v1::DeleteQuarantinedMailResponse {}))
    }
}

/// Mails that were deleted lately, by whose key: a caller who asks again because no answer came is answered the same.
#[derive(Default)]
pub(crate) struct Deleted(Mutex<VecDeque<(TenantId, String)>>);

impl Deleted {
    fn has(&self, tenant: TenantId, id: &str) -> bool {
        self.0.lock().iter().any(|(known, one)| *known == tenant && one == id)
    }

    fn note(&self, tenant: TenantId, id: String) {
        let mut known = self.0.lock();
        known.push_front((tenant, id));
        known.truncate(MAIL_DELETED_MAX);
    }

    /// It came once more, and is there again.
    pub(crate) fn forget(&self, id: &str) {
        self.0.lock().retain(|(_, one)| one != id);
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::not_found("mail in quarantine", name)
}

/// Whether a caller is shown a mail: the tenant's that it names, and what names none whoever looks after the server.
fn shows(caller: &Caller, mail: &Kept) -> bool {
    match mail.tenant {
        Some(tenant) => tenant == caller.tenant,
        None => caller.tenant == FIRST && caller.actor.role == Role::Admin,
    }
}

/// Returns what of the quarantine the caller is shown. A rule about how long it is kept holds at once, and not only when
/// the mail is deleted.
async fn seen(call: &Call<'_>) -> Result<Vec<Kept>, Refusal> {
    if call.door.shelf.get().is_none() {
        return Ok(Vec::new());
    }
    let retention = call.catalogued(Key::tenancy_record(call.caller.tenant), |row| {
        if let Row::Tenancy(row) = row { Some(row.retention.clone()) } else { None }
    });
    let (of_tenant, of_nobody) = (kept_ms(&retention.await?.unwrap_or_default()), MAIL_KEPT_MS_MAX);
    let now = call.door.cluster.now();
    let mut mails = on_shelf(call, |shelf| Ok(shelf.list())).await?;
    mails.retain(|mail| {
        let kept_ms = if mail.tenant.is_some() { of_tenant } else { of_nobody };
        shows(&call.caller, mail) && now.since_ms(mail.at) <= kept_ms
    });
    Ok(mails)
}

/// The mail of a name, where the caller is shown it.
async fn found(call: &Call<'_>, name: &str) -> Result<Kept, Refusal> {
    let id = names::quarantined(&call.caller, "name", name)?;
    let mail = seen(call).await?.into_iter().find(|mail| mail.id == id);
    mail.ok_or_else(|| missing(name))
}

/// Has something done by whoever keeps the mail, where others do not wait for it.
async fn on_shelf<T: Send + 'static>(
    call: &Call<'_>,
    task: impl FnOnce(&dyn Shelf) -> Result<T, String> + Send + 'static,
) -> Result<T, Refusal> {
    let broken = |error: String| {
        tracing::error!(error, "failed to look after the quarantine");
        Refusal::new(Reason::InternalError, "the server failed to look after its quarantine")
    };
    let Some(shelf) = call.door.shelf.get().map(Arc::clone) else {
        return Err(broken("nothing is kept here".to_owned()));
    };
    let done = tokio::task::spawn_blocking(move || task(&*shelf)).await;
    done.map_err(|error| error.to_string()).flatten().map_err(broken)
}

/// A mail as it is shown: what opens a way in is left out, as whoever looks after the quarantine is not whom the mail of ours
/// went to that it answers.
fn masked(mail: v1::QuarantinedMail) -> v1::QuarantinedMail {
    hide::masked("QuarantinedMail", mail)
}

fn of_mail(caller: &Caller, mail: &Kept) -> v1::QuarantinedMail {
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
