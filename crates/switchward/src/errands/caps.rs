//! Whether a mail may go out in this hour. The rows of the shard count the mails that have gone out; the leader adds those
//! that are out and have not arrived. What finds no room is put off to the next hour, and its session's history says so.

use std::collections::BTreeMap;

use switchward_engine::{
    Body, DeferEffect, Due, Key, MailCount, MailFull, Row, View as _, mail_counts, mail_full,
};
use switchward_shard::{Failure, Shard, StateView};

use super::effects::{submit, unreadable};

/// The mails that are out, by the counts that they will be a part of.
#[derive(Debug, Default)]
pub(super) struct Caps(BTreeMap<Key, u32>);

impl Caps {
    /// The counts that an effect will be a part of, none where it is not counted; `None` where it must wait for the next
    /// hour, which its session then says.
    ///
    /// # Errors
    /// The shard takes nothing, or a row cannot be read.
    pub(super) async fn counted(
        &self,
        shard: &Shard,
        view: &StateView,
        due: &Due,
    ) -> Result<Option<Vec<MailCount>>, Failure> {
        let row = view.row(&due.key).map_err(|error| unreadable(&error))?;
        let (Some(Row::Outbox(effect)), Some(session)) = (row.as_deref(), due.key.session_of()) else {
            return Ok(Some(Vec::new()));
        };
        let (at, now) = ((due.key.tenant_of(), session), shard.now());
        let counts = mail_counts(view, at, effect, now).map_err(|error| unreadable(&error))?;
        let full = mail_full(view, at, (effect, &counts), now, |key| self.out(key));
        let Some(MailFull { cap, until }) = full.map_err(|error| unreadable(&error))? else {
            return Ok(Some(counts));
        };
        let (number, attempt) = (effect.number, effect.attempt());
        let (code, message) = (cap.code().to_owned(), cap.to_string());
        let defer = DeferEffect { number, attempt, until, code, message, made: false };
        submit(shard, at.0, session, Body::DeferEffect(defer)).await.map(|()| None)
    }

    /// Counts a mail that has been put on the bus.
    pub(super) fn add(&mut self, counts: &[MailCount]) {
        for count in counts {
            *self.0.entry(count.key.clone()).or_default() += 1;
        }
    }

    /// Stops counting it: the rows count it now, or it was not delivered.
    pub(super) fn remove(&mut self, counts: &[MailCount]) {
        for MailCount { key, .. } in counts {
            let left = self.out(key).saturating_sub(1);
            if left == 0 {
                self.0.remove(key);
            } else {
                self.0.insert(key.clone(), left);
            }
        }
    }

    fn out(&self, key: &Key) -> u32 {
        self.0.get(key).copied().unwrap_or_default()
    }
}
