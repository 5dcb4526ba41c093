//! A quarantine in memory, and how servers ask each other about theirs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use switchward_gateway::Api;
use switchward_gateway::mail::{QuarantineStore, QuarantinedMail, QuarantinesByTransport, serve_quarantine};
use switchward_machine::{TenantId, Time};
use switchward_shard::{PeerConnection, PeerError, PeerRequest, PeerStream, Transport};

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

/// Brings questions about quarantines to the servers of a test, in the form that they have between real servers.
#[derive(Default)]
pub(crate) struct Quarantines(Mutex<BTreeMap<u64, Option<Api>>>);

impl Quarantines {
    /// Lets a server answer the others, and ask them.
    pub(crate) fn join(self: &Arc<Self>, number: u64, api: &Api) {
        self.0.lock().insert(number, Some(api.clone()));
        let all = Arc::clone(self);
        let others = move || all.0.lock().keys().copied().filter(|other| *other != number).collect();
        let asking = QuarantinesByTransport::new(Arc::clone(self) as Arc<dyn Transport>, Box::new(others));
        api.keeping_elsewhere(Arc::new(asking));
    }

    /// Lets a server answer nothing any more.
    pub(crate) fn silence(&self, number: u64) {
        self.0.lock().insert(number, None);
    }

    /// Lets go of all servers: they hold this.
    pub(crate) fn end(&self) {
        self.0.lock().clear();
    }
}

#[tonic::async_trait]
impl Transport for Quarantines {
    async fn call(
        &self,
        to: u64,
        _over: PeerConnection,
        request: PeerRequest,
        _deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let api = self.0.lock().get(&to).cloned().flatten();
        let api = api.ok_or_else(|| PeerError::NotSent("the server does not answer".to_owned()))?;
        serve_quarantine(&api, &request.body).await.map_err(|error| PeerError::Refused(error.to_string()))
    }

    async fn stream(&self, _to: u64, _request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        Err(PeerError::NotSent("there are no streams".to_owned()))
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
