//! A quarantine in memory.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use switchward_gateway::mail::{QuarantineStore, QuarantinedMail};
use switchward_machine::{TenantId, Time};

/// See the module.
#[derive(Default)]
pub(crate) struct Memory {
    kept: Mutex<BTreeMap<String, (QuarantinedMail, Vec<u8>)>>,
    /// If true, every write fails.
    pub(crate) full: std::sync::atomic::AtomicBool,
}

impl QuarantineStore for Memory {
    fn keep(&self, mail: QuarantinedMail, content: &[u8]) -> Result<(), String> {
        if self.full.load(std::sync::atomic::Ordering::Relaxed) {
            return Err("the disk is full".to_owned());
        }
        self.kept.lock().insert(mail.id.clone(), (mail, content.to_vec()));
        Ok(())
    }

    fn list(&self) -> Vec<QuarantinedMail> {
        self.kept.lock().values().map(|(mail, _)| mail.clone()).collect()
    }

    fn content(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.kept.lock().get(id).map(|(_, content)| content.clone()))
    }

    fn delete(&self, mail: &QuarantinedMail) -> Result<bool, String> {
        let mut kept = self.kept.lock();
        let same = kept.get(&mail.id).is_some_and(|(known, _)| known.at == mail.at);
        Ok(same && kept.remove(&mail.id).is_some())
    }
}

/// A quarantined mail of a tenant.
pub(crate) fn mail(id: &str, tenant: Option<TenantId>, at: Time) -> (QuarantinedMail, &'static [u8]) {
    let raw = b"From: ann@example.com\r\nSubject: Hello\r\n\r\nWho are you?\r\n";
    let text = |text: &str| text.to_owned();
    let mail = QuarantinedMail {
        id: text(id),
        at,
        tenant,
        session: None,
        outcome: text("quarantined"),
        why: text("no_token"),
        sender: Some(text("ann@example.com")),
        recipients: vec![text("r+x@reply.example.com")],
        from: text("ann@example.com"),
        subject: text("Hello"),
        bytes: u64::try_from(raw.len()).expect("few"),
    };
    (mail, raw)
}
