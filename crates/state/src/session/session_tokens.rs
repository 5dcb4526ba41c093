//! The reply tokens of one session, from its rows.

use switchward_machine::{SessionId, TenantId};

use crate::approval::MailKey;
use crate::session::ReplyTokens;
use crate::{View, ViewError};

impl ReplyTokens {
    /// Those of one session of the tenant with this name, made with the first of these keys.
    #[must_use]
    pub fn of_session_with(tenant: String, session: SessionId, keys: Vec<MailKey>) -> Self {
        Self::of_one(tenant, session, keys)
    }

    /// Those of one session; `None` if it has none.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn of_session(
        view: &dyn View,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<Option<Self>, ViewError> {
        let name = view.session(tenant, session)?.and_then(|row| row.reply_tenant.clone());
        let Some(name) = name else { return Ok(None) };
        Ok(Some(Self::of_one(name, session, view.mail_keys(tenant)?)))
    }
}
