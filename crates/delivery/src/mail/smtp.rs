//! Mail over SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Tls, TlsParameters};
use lettre::transport::smtp::commands::{Mail, Rset};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::{AsyncSmtpTransport, Error as SmtpError, PoolConfig};
use lettre::{AsyncTransport as _, Tokio1Executor};
use switchward_state::delivery::MailProblem;

use super::compose::address;
use super::{Composed, Post};
use crate::limits::{MAIL_ANSWER_BYTES_MAX, MAIL_CONNECTIONS_MAX, MAIL_SECONDS_MAX};
use crate::{DeliveryReason, Failed, Secret};

/// How a mail server is reached.
#[derive(Debug, Clone)]
pub struct SmtpConfig {
    /// A name or an IP address.
    pub host: String,
    /// The TCP port of the server.
    pub port: u16,
    /// The encryption of the connection.
    pub tls: SmtpTls,
    /// The user and password; `None` if the server requires none.
    pub login: Option<(String, Secret)>,
    /// The name in `EHLO`; `None` for the machine's name.
    pub hello: Option<String>,
}

/// How the connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// TLS from the first byte on.
    Implicit,
    /// TLS from `STARTTLS` on, without which nothing is sent.
    StartTls,
    /// No encryption: only for a server on this machine, or in a private network.
    Plain,
}

/// A [`Post`] that sends mails to a server over pooled connections.
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    config: SmtpConfig,
}

impl Smtp {
    /// Creates a transport that has not connected yet.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(config: &SmtpConfig) -> Result<Self, Failed> {
        let tls = match config.tls {
            SmtpTls::Implicit => Tls::Wrapper(parameters(config)?),
            SmtpTls::StartTls => Tls::Required(parameters(config)?),
            SmtpTls::Plain => Tls::None,
        };
        let pool = PoolConfig::new().max_size(MAIL_CONNECTIONS_MAX).idle_timeout(Duration::from_secs(30));
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls)
            .timeout(Some(Duration::from_secs(MAIL_SECONDS_MAX)))
            .pool_config(pool);
        if let Some((user, password)) = &config.login {
            builder = builder.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
        }
        if let Some(hello) = &config.hello {
            builder = builder.hello_name(ClientId::Domain(hello.clone()));
        }
        Ok(Self { transport: builder.build(), config: config.clone() })
    }

    /// Checks that the server answers, accepts the login, and would accept mail from these addresses. Sends nothing.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn probe(&self, senders: &[String]) -> Result<(), Failed> {
        let most = Duration::from_secs(MAIL_SECONDS_MAX);
        let late = |_| Failed::new(DeliveryReason::Timeout, MailProblem::NoReply);
        tokio::time::timeout(most, self.talk(senders)).await.map_err(late)?
    }

    async fn talk(&self, senders: &[String]) -> Result<(), Failed> {
        let config = &self.config;
        let hello = config.hello.clone().map_or_else(ClientId::default, ClientId::Domain);
        let at = (config.host.as_str(), config.port);
        let wrapped = (config.tls == SmtpTls::Implicit).then(|| parameters(config)).transpose()?;
        let most = Some(Duration::from_secs(MAIL_SECONDS_MAX));
        let connected = AsyncSmtpConnection::connect_tokio1(at, most, &hello, wrapped, None).await;
        let mut talk = connected.map_err(|error| failed(&error))?;
        if config.tls == SmtpTls::StartTls {
            talk.starttls(parameters(config)?, &hello).await.map_err(|error| failed(&error))?;
        }
        if let Some((user, password)) = &config.login {
            let login = Credentials::new(user.clone(), password.reveal().to_owned());
            let ways = [Mechanism::Plain, Mechanism::Login];
            talk.auth(&ways, &login).await.map_err(|error| failed(&error))?;
        }
        for sender in senders {
            let from = address(sender)?;
            talk.command(Mail::new(Some(from), Vec::new())).await.map_err(|error| failed(&error))?;
            talk.command(Rset).await.map_err(|error| failed(&error))?;
        }
        // A failed goodbye does not matter.
        let _gone = talk.quit().await;
        Ok(())
    }
}

fn parameters(config: &SmtpConfig) -> Result<TlsParameters, Failed> {
    TlsParameters::new(config.host.clone()).map_err(|error| broken(&error))
}

#[async_trait]
impl Post for Smtp {
    async fn send(&self, _tenant: u32, mail: &Composed) -> Result<(), Failed> {
        let envelope = mail.envelope()?;
        self.transport.send_raw(&envelope, &mail.raw).await.map(drop).map_err(|error| failed(&error))
    }
}

fn broken(error: &SmtpError) -> Failed {
    Failed::new(DeliveryReason::TlsFailed, MailProblem::Tls { diagnostic: error.to_string() })
}

/// The codes of answers that refuse this server's login and not the mail, which goes out once the login is right.
/// Source: RFC 4954, 6; RFC 5248.
const LOGIN_REFUSED: [u16; 5] = [525, 530, 534, 535, 538];

/// Maps an SMTP failure to a reason: a 5xx answer about the mail is permanent.
fn failed(error: &SmtpError) -> Failed {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(MAIL_ANSWER_BYTES_MAX));
    let login = error.status().is_some_and(|code| LOGIN_REFUSED.contains(&code.into()));
    let reason = if error.is_permanent() && !login {
        DeliveryReason::MailRejected
    } else if error.is_transient() || login {
        DeliveryReason::MailDeferred
    } else if error.is_timeout() {
        DeliveryReason::Timeout
    } else if error.is_tls() {
        DeliveryReason::TlsFailed
    } else if error.is_response() {
        DeliveryReason::AnswerBroken
    } else {
        DeliveryReason::ConnectFailed
    };
    Failed::quoting(reason, text)
}
