//! What of a bus over Redis can be set, and whether it can be used.

use std::fmt;
use std::time::Duration;

use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};

use crate::bus::Settings;
use crate::limits::{CONSUMER_GONE_MS, PREFIX_BYTES_MAX, RESPONSE_MS};

/// What of a [`Redis`](super::Redis) can be set.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// Where it is: `redis://host:port`, `rediss://` for TLS, `redis+unix:///path`; a number after the host's slash is
    /// the number of the database, a name before the `@` that of the user. Holds no password.
    pub url: String,
    /// Its password, if it wants one.
    pub password: Option<String>,
    /// What its keys begin with, before a colon: 1 to [`PREFIX_BYTES_MAX`] letters, digits, `_`, `-`, `.` and `:`. All who
    /// have the same share their streams.
    pub prefix: String,
    /// Whose bus it is: comes behind the prefix, with the same signs and the same length at most. What two owners put under
    /// one prefix stays apart. Nothing: whoever has the prefix.
    pub owner: Option<String>,
    /// What every bus has. The idle time is counted in whole milliseconds, at least one.
    pub settings: Settings,
    /// How long one command may take.
    pub response: Duration,
    /// After how long without a sign of life a consumer that holds nothing is forgotten.
    pub consumer_gone: Duration,
}

impl RedisConfig {
    /// A server at this address, without a password, and with the numbers of [`limits`](crate::limits).
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

    /// What the names of its keys begin with, up to the colon before that of the stream.
    pub(super) fn space(&self) -> String {
        self.owner.as_ref().map_or_else(|| self.prefix.clone(), |owner| format!("{}:{owner}", self.prefix))
    }

    /// What connects, and the words for where it connects to.
    pub(super) fn client(&self) -> Result<(Client, String), OpenError> {
        if [Some(&self.prefix), self.owner.as_ref()].into_iter().flatten().any(|part| !fits(part)) {
            return Err(OpenError::Prefix);
        }
        // What comes after this sign switches checks of the certificate off.
        if self.url.contains('#') {
            return Err(OpenError::Address("it has a part after a #".to_owned()));
        }
        // An error's words may repeat what was asked, and with it a password.
        let no_address =
            |_| OpenError::Address("it is no redis://, rediss:// or redis+unix:// address".to_owned());
        let info: ConnectionInfo = self.url.as_str().into_connection_info().map_err(no_address)?;
        if info.redis_settings().password().is_some() {
            let told = "it holds a password, which must be given apart from it";
            return Err(OpenError::Address(told.to_owned()));
        }
        let place = place(info.addr());
        let mut settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(settings)).map_err(no_address)?;
        Ok((client, place))
    }
}

/// Whether this may stand in the names of keys.
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

/// Why a bus over Redis was not opened. A server that cannot be reached is no reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The address is none that can be used.
    #[error("the address of Redis cannot be used: {0}")]
    Address(String),
    /// The prefix has other characters than it may have, or too many, or none.
    #[error("the prefix must have 1 to {PREFIX_BYTES_MAX} letters, digits, _, -, . and :")]
    Prefix,
    /// The server was reached and does not take the password, or wants one.
    #[error("failed to open Redis at {place}: {told}")]
    Password {
        /// Where it is.
        place: String,
        /// What it says.
        told: &'static str,
    },
}

/// Where it is, in words that tell no secret.
fn place(address: &ConnectionAddr) -> String {
    if let ConnectionAddr::Tcp(host, port) = address {
        format!("{host}:{port}")
    } else if let ConnectionAddr::TcpTls { host, port, .. } = address {
        format!("{host}:{port} (TLS)")
    } else {
        address.to_string()
    }
}
