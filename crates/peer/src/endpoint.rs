//! What all parts of a server's end share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::contact::PeerCell;
use crate::handler::Handler;
use crate::hello::{Greeting, Hello, Purpose};
use crate::limits::PEERS_MAX;
use crate::name::PeerName;
use crate::options::{PeerLimits, PeerOptions, WallClock};
use crate::reports::Reports;
use crate::request::Traffic;
use crate::tls::{Configs, TlsError, TlsPem};

/// What all parts of a server's end share.
pub(crate) struct Core {
    pub(crate) limits: PeerLimits,
    pub(crate) clock: WallClock,
    pub(crate) runtime: Handle,
    commands: Handle,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) reports: Reports,
    hello: Mutex<Hello>,
    tls: RwLock<Arc<Configs>>,
    cells: Mutex<BTreeMap<u64, Arc<PeerCell>>>,
    /// The servers that may never connect again. Changed only while `cells` is locked.
    removed: watch::Sender<BTreeSet<u64>>,
    closed: watch::Sender<bool>,
}

impl Core {
    pub(crate) fn new(options: PeerOptions, handler: Arc<dyn Handler>) -> Result<Self, TlsError> {
        let tls = Configs::new(&options.tls, &options.hello)?;
        Ok(Self {
            limits: options.limits,
            clock: options.clock,
            runtime: options.runtime,
            commands: options.commands,
            handler,
            reports: Reports::default(),
            hello: Mutex::new(options.hello),
            tls: RwLock::new(Arc::new(tls)),
            cells: Mutex::default(),
            removed: watch::Sender::default(),
            closed: watch::Sender::new(false),
        })
    }

    /// This server's identity, with the time of its clock.
    pub(crate) fn hello(&self) -> Hello {
        Hello { clock_ms: (self.clock)(), ..self.hello.lock().clone() }
    }

    /// This server's first frame on a connection.
    pub(crate) fn greeting(&self, to: u64, purpose: Purpose) -> Greeting {
        Greeting { hello: self.hello(), to, purpose }
    }

    pub(crate) fn change_hello(&self, change: impl FnOnce(&mut Hello)) {
        change(&mut self.hello.lock());
    }

    pub(crate) fn tls(&self) -> Arc<Configs> {
        Arc::clone(&self.tls.read())
    }

    pub(crate) fn set_tls(&self, tls: &TlsPem) -> Result<(), TlsError> {
        let configs = Arc::new(Configs::new(tls, &self.hello.lock())?);
        *self.tls.write() = configs;
        Ok(())
    }

    /// What the connections with a server share, after a handshake with it.
    ///
    /// # Errors
    /// There are too many servers, or this one was removed.
    pub(crate) fn shook_hands(&self, hello: &Hello) -> Result<Arc<PeerCell>, String> {
        let mut cells = self.cells.lock();
        self.check_present(hello.server)?;
        if let Some(cell) = cells.get(&hello.server) {
            cell.shook_hands(hello);
            return Ok(Arc::clone(cell));
        }
        if cells.len() >= PEERS_MAX {
            return Err(format!("{PEERS_MAX} other servers are known already"));
        }
        let cell = Arc::new(PeerCell::new(hello.clone()));
        cells.insert(hello.server, Arc::clone(&cell));
        Ok(cell)
    }

    pub(crate) fn cell(&self, server: u64) -> Option<Arc<PeerCell>> {
        self.cells.lock().get(&server).cloned()
    }

    pub(crate) fn forget(&self, server: u64) {
        if let Some(cell) = self.cells.lock().remove(&server) {
            cell.end();
        }
    }

    /// As [`forget`](Self::forget), and refuses the server from now on. A handshake that ends later finds it here, and the
    /// connections of one that has ended before end now.
    pub(crate) fn remove(&self, server: u64) {
        let mut cells = self.cells.lock();
        self.removed.send_modify(|removed| {
            removed.insert(server);
        });
        if let Some(cell) = cells.remove(&server) {
            cell.end();
        }
    }

    /// Refuses a server that was removed.
    ///
    /// # Errors
    /// It was.
    pub(crate) fn check_present(&self, server: u64) -> Result<(), String> {
        if self.removed.borrow().contains(&server) {
            return Err(format!("server {server} was removed from the cluster"));
        }
        Ok(())
    }

    /// Waits until a server is removed. Waits for ever for a gateway or a delivery process: only servers are removed.
    pub(crate) async fn removed(&self, name: &PeerName) {
        let PeerName::Server(server) = name else { return std::future::pending().await };
        // The sender lives as long as `self`.
        let mut removed = self.removed.subscribe();
        let _removed = removed.wait_for(|removed| removed.contains(server)).await;
    }

    /// The largest body on a connection, bytes.
    pub(crate) fn body_max(&self, traffic: Traffic) -> usize {
        match traffic {
            Traffic::Control => self.limits.control_body_bytes,
            Traffic::Bulk | Traffic::Commands => self.limits.bulk_body_bytes,
        }
    }

    /// The number of requests of one class of traffic that are not answered yet.
    pub(crate) fn requests_max(&self, traffic: Traffic) -> usize {
        match traffic {
            Traffic::Control => self.limits.control_requests,
            Traffic::Bulk | Traffic::Commands => self.limits.bulk_requests,
        }
    }

    /// The runtime on which connections for this traffic run.
    pub(crate) fn runtime_of(&self, traffic: Traffic) -> &Handle {
        match traffic {
            Traffic::Control | Traffic::Bulk => &self.runtime,
            Traffic::Commands => &self.commands,
        }
    }

    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Waits until [`close`](Self::close) is called.
    pub(crate) async fn closed(&self) {
        // The sender lives as long as `self`.
        let mut closed = self.closed.subscribe();
        let _closed = closed.wait_for(|closed| *closed).await;
    }

    /// Logs a refused or broken connection from an address, once in a while for each reason.
    pub(crate) fn report_inbound(&self, from: SocketAddr, reason: &str) {
        if self.reports.is_new(&from.ip().to_string(), reason) {
            tracing::warn!("refused a connection from {from}: {reason}");
        }
    }
}
