//! The configuration of a bus over Redis, and its validation.

use std::fmt;
use std::time::Duration;

use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};

use crate::bus::Settings;
use crate::limits::{CONSUMER_GONE_MS, PREFIX_BYTES_MAX, RESPONSE_MS};

/// The configuration of a [`Redis`](super::Redis).
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// Its address: `redis://host:port`, `rediss://` for TLS, `redis+unix:///path`; a number after the host's slash is
    /// the number of the database, a name before the `@` that of the user. Holds no password.
    pub url: String,
    /// Its password, if it requires one.
    pub password: Option<String>,
    /// The prefix of its keys, before a colon: 1 to [`PREFIX_BYTES_MAX`] letters, digits, `_`, `-`, `.` and `:`. Buses with
    /// the same prefix share their streams.
    pub prefix: String,
    /// The owner: follows the prefix, with the same characters and maximum length. Separates the streams of two owners with
    /// one prefix. `None` if all with the prefix share one bus.
    pub owner: Option<String>,
    /// The settings of every bus. The idle time is in whole milliseconds, at least one.
    pub settings: Settings,
    /// How long one command may take.
    pub response: Duration,
    /// After how long without a command a consumer without deliveries is deleted.
    pub consumer_gone: Duration,
}

impl RedisConfig {
    /// A server at this address, without a password, and with the values of [`limits`](crate::limits).
    #[must_use]
    pub fn new(url: String) -> Self {
        Self {
            url,
            password: None,
            prefix: "switchward".to_owned(),
            owner: None,
            settings: Settings::default(),
            response: Duration::from_millis(RESPONSE_MS),
            consumer_gone: Duration::from_millis(CONSUMER_GONE_MS),
        }
    }

    /// Returns what the names of its keys begin with, up to the colon before the name of the stream.
    pub(super) fn space(&self) -> String {
        self.owner.as_ref().map_or_else(|| self.prefix.clone(), |owner| format!("{}:{owner}", self.prefix))
    }

    /// Returns the client, and its address without secrets.
    pub(super) fn client(&self) -> Result<(Client, String), OpenError> {
        if [Some(&self.prefix), self.owner.as_ref()].into_iter().flatten().any(|part| !fits(part)) {
            return Err(OpenError::Prefix);
        }
        // What follows this character disables checks of the certificate.
        if self.url.contains('#') {
            return Err(OpenError::Address("it must not contain a #".to_owned()));
        }
        // The message of the error may repeat the address, and with it a password.
        let no_address =
            |_| OpenError::Address("it is not a redis://, rediss:// or redis+unix:// address".to_owned());
        let info: ConnectionInfo = self.url.as_str().into_connection_info().map_err(no_address)?;
        if info.redis_settings().password().is_some() {
            let message = "it contains a password, which must be set separately";
            return Err(OpenError::Address(message.to_owned()));
        }
        let address = describe(info.addr());
        let mut settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(settings)).map_err(no_address)?;
        Ok((client, address))
    }
}

/// Returns true if this may be part of the names of keys.
fn fits(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=PREFIX_BYTES_MAX).contains(&part.len()) && part.bytes().all(plain)
}

impl fmt::Debug for RedisConfig {
    /// Everything but the password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "...");
        out.debug_struct("RedisConfig")
            .field("url", &self.url)
            .field("password", &password)
            .field("prefix", &self.prefix)
            .field("owner", &self.owner)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why a bus over Redis was not opened. A server that cannot be reached is not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be used.
    #[error("the address of Redis cannot be used: {0}")]
    Address(String),
    /// The prefix is empty, too long, or has characters that are not allowed.
    #[error("the prefix must have 1 to {PREFIX_BYTES_MAX} letters, digits, _, -, . and :")]
    Prefix,
    /// The server was reached and refuses the password, or requires one.
    #[error("failed to open Redis at {address}: {message}")]
    Password {
        /// The address without its secrets.
        address: String,
        /// What the server answered.
        message: &'static str,
    },
}

/// Renders an address without its secrets.
fn describe(address: &ConnectionAddr) -> String {
    if let ConnectionAddr::Tcp(host, port) = address {
        format!("{host}:{port}")
    } else if let ConnectionAddr::TcpTls { host, port, .. } = address {
        format!("{host}:{port} (TLS)")
    } else {
        address.to_string()
    }
}
