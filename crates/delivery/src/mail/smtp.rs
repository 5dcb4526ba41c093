//! Mail over SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::{AsyncSmtpTransport, Error as SmtpError, PoolConfig};
use lettre::{AsyncTransport as _, Tokio1Executor};

use super::{Composed, Post};
use crate::limits::{MAIL_ANSWER_BYTES_MAX, MAIL_CONNECTIONS_MAX, MAIL_SECONDS_MAX};
use crate::{Failed, Reason, Secret};

/// How a mail server is reached.
#[derive(Debug, Clone)]
pub struct SmtpConfig {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the way there is hidden.
    pub tls: SmtpTls,
    /// Who we are there, with the password; nothing where it does not ask.
    pub login: Option<(String, Secret)>,
    /// What we call ourselves; nothing: the machine's name.
    pub hello: Option<String>,
}

/// How the way to a mail server is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// From the first byte on.
    Implicit,
    /// From `STARTTLS` on, without which nothing is sent.
    StartTls,
    /// Not at all: only for a server on this machine, or in a network of one's own.
    Plain,
}

/// A [`Post`] that hands mails to a server, over connections that it keeps.
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
}

impl Smtp {
    /// A post that has not connected yet.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(config: &SmtpConfig) -> Result<Self, Failed> {
        let tls = || TlsParameters::new(config.host.clone()).map_err(|error| broken(&error));
        let tls = match config.tls {
            SmtpTls::Implicit => Tls::Wrapper(tls()?),
            SmtpTls::StartTls => Tls::Required(tls()?),
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
            builder = builder.hello_name(lettre::transport::smtp::extension::ClientId::Domain(hello.clone()));
        }
        Ok(Self { transport: builder.build() })
    }

    /// Whether the server answers, takes who we are, and would take mail.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn probe(&self) -> Result<(), Failed> {
        match self.transport.test_connection().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failed::new(Reason::ConnectFailed, "the mail server does not answer")),
            Err(error) => Err(failed(&error)),
        }
    }
}

#[async_trait]
impl Post for Smtp {
    async fn send(&self, _tenant: u32, mail: &Composed) -> Result<(), Failed> {
        let envelope = mail.envelope()?;
        self.transport.send_raw(&envelope, &mail.raw).await.map(drop).map_err(|error| failed(&error))
    }
}

fn broken(error: &SmtpError) -> Failed {
    Failed::new(Reason::TlsFailed, format!("TLS cannot be set up: {error}"))
}

/// What a failure means for the next attempt: a server that says 5xx says so again.
fn failed(error: &SmtpError) -> Failed {
    let mut told = error.to_string();
    told.truncate(told.floor_char_boundary(MAIL_ANSWER_BYTES_MAX));
    let reason = if error.is_permanent() {
        Reason::MailRejected
    } else if error.is_transient() {
        Reason::MailDeferred
    } else if error.is_timeout() {
        Reason::Timeout
    } else if error.is_tls() {
        Reason::TlsFailed
    } else if error.is_response() {
        Reason::AnswerBroken
    } else {
        Reason::ConnectFailed
    };
    Failed::new(reason, told)
}
