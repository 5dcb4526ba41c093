//! The way to the server: a connection, TLS on it, and a login.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Account;
use crate::limits::{IMAP_COMMAND_TIME_MAX, IMAP_CONNECT_TIME_MAX};

/// How the connection to a server is encrypted, with the system's trusted roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImapTls {
    /// TLS from the first byte on.
    Implicit,
    /// From `STARTTLS` on, which is required before the login.
    StartTls,
    /// Not at all: only for a server on this machine.
    None,
}

/// A mailbox cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImapError {
    /// The server does not answer.
    #[error("failed to connect to {0}: {1}")]
    Connect(String, std::io::Error),
    /// The TLS handshake failed.
    #[error("failed to speak TLS with {0}: {1}")]
    Tls(String, String),
    /// The server refuses the login.
    #[error("failed to log in as {0}: {1}")]
    Login(String, async_imap::error::Error),
    /// A folder cannot be used.
    #[error("failed to use the folder {0}: {1}")]
    Folder(String, async_imap::error::Error),
    /// The conversation broke.
    #[error("failed to {0}: {1}")]
    Broken(&'static str, async_imap::error::Error),
    /// The server has not answered in time.
    #[error("the server did not {0} in time")]
    TooSlow(&'static str),
}

/// A stream to read from and write to.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug> Wire for T {}

type Client = async_imap::Client<Box<dyn Wire>>;

/// A conversation after the login.
pub(super) type Session = async_imap::Session<Box<dyn Wire>>;

/// Waits for an answer as long as one may take.
pub(super) async fn within<T>(
    limit: Duration,
    what: &'static str,
    answer: impl Future<Output = Result<T, async_imap::error::Error>>,
) -> Result<T, ImapError> {
    let answer = tokio::time::timeout(limit, answer).await.map_err(|_| ImapError::TooSlow(what))?;
    answer.map_err(|error| ImapError::Broken(what, error))
}

/// Connects and logs in.
pub(super) async fn open(account: &Account) -> Result<Session, ImapError> {
    let connected = tokio::time::timeout(IMAP_CONNECT_TIME_MAX, connect(account)).await;
    let client = connected.map_err(|_| ImapError::TooSlow("connect"))??;
    let login = tokio::time::timeout(IMAP_COMMAND_TIME_MAX, client.login(&account.user, &account.password));
    let login = login.await.map_err(|_| ImapError::TooSlow("log in"))?;
    login.map_err(|(error, _)| ImapError::Login(account.user.clone(), error))
}

async fn connect(account: &Account) -> Result<Client, ImapError> {
    let at = format!("{}:{}", account.host, account.port);
    let stream = TcpStream::connect((account.host.as_str(), account.port)).await;
    let stream = stream.map_err(|error| ImapError::Connect(at.clone(), error))?;
    match account.tls {
        ImapTls::None => greeted(Box::new(stream)).await,
        ImapTls::Implicit => greeted(hidden(account, &at, Box::new(stream)).await?).await,
        ImapTls::StartTls => {
            let mut client = greeted(Box::new(stream)).await?;
            let asked = client.run_command_and_check_ok("STARTTLS", None).await;
            asked.map_err(|error| ImapError::Broken("begin TLS", error))?;
            // Everything that was received before TLS is dropped with this client.
            Ok(Client::new(hidden(account, &at, client.into_inner()).await?))
        }
    }
}

async fn greeted(stream: Box<dyn Wire>) -> Result<Client, ImapError> {
    let mut client = Client::new(stream);
    let greeting = client.read_response().await.map_err(async_imap::error::Error::from);
    match greeting.and_then(|greeting| greeting.ok_or(async_imap::error::Error::ConnectionLost)) {
        Ok(_) => Ok(client),
        Err(error) => Err(ImapError::Broken("send a greeting", error)),
    }
}

async fn hidden(account: &Account, at: &str, stream: Box<dyn Wire>) -> Result<Box<dyn Wire>, ImapError> {
    let broken = |why: String| ImapError::Tls(at.to_owned(), why);
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| broken(error.to_string()))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(account.host.clone()).map_err(|error| broken(error.to_string()))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Box::new(stream.map_err(|error| broken(error.to_string()))?))
}
