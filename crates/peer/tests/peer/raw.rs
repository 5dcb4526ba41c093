//! A client that sends any bytes, as the documents of the transport describe them.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use switchward_peer::{Hello, TlsPem, server_name};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const HELLO: u8 = 1;
pub(crate) const REFUSE: u8 = 2;
pub(crate) const ACCEPT: u8 = 3;
pub(crate) const REQUEST: u8 = 4;
pub(crate) const ANSWER: u8 = 5;
pub(crate) const PING: u8 = 9;
pub(crate) const CONTROL: u8 = 1;
pub(crate) const STREAM: u8 = 3;

/// Whether a client shows its certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Certificate,
    Nothing,
}

/// A connection after TLS.
pub(crate) struct Raw(TlsStream<TcpStream>);

impl Raw {
    /// Connects to the server with this identity.
    pub(crate) async fn connect(address: SocketAddr, to: &Hello, pem: &TlsPem, shows: Shows) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem.ca).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shows {
            Shows::Nothing => builder.with_no_client_auth(),
            Shows::Certificate => {
                let chain = vec![CertificateDer::from_pem_slice(&pem.cert).unwrap()];
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&pem.key).unwrap())
                    .unwrap()
            }
        };
        let tcp = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(server_name(&to.cluster, to.server)).unwrap();
        Self(TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap())
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The server may have closed it already.
        let _sent = self.0.write_all(bytes).await;
        let _sent = self.0.flush().await;
    }

    /// The type and the body of the next frame; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 32];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).await.ok()?;
        assert_eq!(frame(head[1], head[2], &head[8..24], &body)[..32], head);
        Some((head[1], body))
    }

    /// Waits for the end of the connection.
    pub(crate) async fn closed(&mut self) {
        while self.next().await.is_some() {}
    }

    /// Makes the handshake as this server.
    pub(crate) async fn greet(&mut self, own: &Hello, to: u64, purpose: u8) {
        self.send(&frame(HELLO, 0, &[0; 16], &greeting(own, to, purpose))).await;
        assert_eq!(self.next().await.map(|(op, _)| op), Some(HELLO));
        self.send(&frame(ACCEPT, 0, &[0; 16], b"")).await;
    }
}

/// A request for the control connection.
pub(crate) fn request(id: u64, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut numbers = [0; 16];
    numbers[8..].copy_from_slice(&id.to_be_bytes());
    frame(REQUEST, kind, &numbers, body)
}

/// A frame; `numbers` are its group and id.
pub(crate) fn frame(op: u8, kind: u8, numbers: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, op, kind, 0];
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(numbers);
    let sum = xxh3_64_with_seed(body, xxh3_64(&bytes));
    bytes.extend(sum.to_be_bytes());
    bytes.extend(body);
    bytes
}

pub(crate) fn greeting(own: &Hello, to: u64, purpose: u8) -> Vec<u8> {
    let mut bytes = own.protocol.to_be_bytes().to_vec();
    bytes.extend(own.cluster);
    bytes.extend(own.server.to_be_bytes());
    bytes.extend(own.folder);
    bytes.extend(own.boot.to_be_bytes());
    bytes.extend(own.boot_id);
    bytes.extend(own.lowest_level.to_be_bytes());
    bytes.extend(own.highest_level.to_be_bytes());
    bytes.extend(own.keys);
    bytes.extend(own.clock_ms.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.push(purpose);
    bytes
}
