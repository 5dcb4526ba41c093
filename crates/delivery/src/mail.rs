//! Outbound mail: its content ([`OutboundMail`]), its composition ([`compose`]), and its transport ([`Post`]).

mod compose;
mod html;
mod outbound;
mod smtp;

use async_trait::async_trait;

pub use compose::{Composed, compose};
pub use outbound::{Choice, Fact, Head, OutboundMail, Purpose};
pub use smtp::{Smtp, SmtpConfig, SmtpTls};

use switchward_mail::Signer;
use switchward_state::delivery::MailProblem;

use crate::{DeliveryReason, Failed};

/// A transport for mails.
#[async_trait]
pub trait Post: Send + Sync + 'static {
    /// Sends a mail. [`DeliveryReason::MailRejected`] and [`DeliveryReason::MailInvalid`] are permanent failures, every other reason may
    /// be transient.
    async fn send(&self, tenant: u32, mail: &Composed) -> Result<(), Failed>;
}

/// The sender of mails, and where replies go.
#[derive(Debug)]
pub struct Sender {
    /// The `From` header: a name and the address, or the address.
    pub from: String,
    /// The pattern of the addresses that replies go to, with `{token}` in the part before the `@`; `None` if replies cannot
    /// be read.
    pub reply: Option<String>,
    /// What precedes `/a/` in the addresses of decision pages; `None` if there are none.
    pub pages: Option<String>,
    /// The other addresses that `From` may have: addresses, `*@domain`, or `*` for any. Without this list a caller could
    /// have a mail signed that seems to come from any mailbox of the domain.
    pub authors: Vec<String>,
    /// The DKIM signer; `None` if the mail server signs.
    pub dkim: Option<Signer>,
}

/// The most bytes that the part of an address before its `@` may have. Source: RFC 5321, 4.5.3.1.1.
const LOCAL_BYTES_MAX: usize = 64;
/// Matches any address in a list of authors.
const ANYBODY: &str = "*";
/// The placeholder of a token in the pattern of reply addresses.
const TOKEN: &str = "{token}";
/// The longest usual token, bytes: of a tenant's number below 16,384 and a gate's below 2,097,152.
const TOKEN_BYTES: usize = 61;

impl Sender {
    /// Checks that mails can be composed with it.
    ///
    /// # Errors
    /// Fails if `from` is not an address, or if the pattern is too long for a token.
    pub fn check(&self) -> Result<(), String> {
        let from: Result<lettre::message::Mailbox, _> = self.from.parse();
        from.map_err(|error| format!("from: {:?} is not an address: {error}", self.from))?;
        for author in self.authors.iter().filter(|author| *author != ANYBODY) {
            let sample: Result<lettre::Address, _> = author.replacen(ANYBODY, "a", 1).parse();
            if sample.is_err() || (author.contains(ANYBODY) && !author.starts_with("*@")) {
                return Err(format!("authors: {author:?} must be an address, *@domain or *"));
            }
        }
        let Some(reply) = &self.reply else { return Ok(()) };
        let (local, host) = reply.rsplit_once('@').ok_or_else(|| format!("reply: {reply:?} has no @"))?;
        if local.matches(TOKEN).count() != 1 || host.is_empty() || host.contains(TOKEN) {
            return Err(format!("reply: {reply:?} must contain {TOKEN} once, before the @"));
        }
        let bytes = local.len() - TOKEN.len() + TOKEN_BYTES;
        if bytes > LOCAL_BYTES_MAX {
            let most = LOCAL_BYTES_MAX - TOKEN_BYTES;
            return Err(format!("reply: at most {most} bytes are allowed beside {TOKEN} before the @"));
        }
        let sample: Result<lettre::Address, _> = reply.replace(TOKEN, "a").parse();
        sample.map(drop).map_err(|error| format!("reply: {reply:?} is not an address: {error}"))
    }

    /// Returns true if mails may have this address in `From` beside the own one. Case does not matter.
    fn writes_for(&self, author: &str) -> bool {
        let author = author.to_lowercase();
        self.authors.iter().map(|known| known.to_lowercase()).any(|known| match known.strip_prefix(ANYBODY) {
            Some(domain) => author.ends_with(domain),
            None => author == known,
        })
    }

    /// Returns true if a mail to this address would come back as a reply, with or without a token. Case does not matter.
    fn is_reply_address(&self, address: &str) -> bool {
        let Some((before, after)) = self.reply.as_ref().and_then(|reply| reply.split_once(TOKEN)) else {
            return false;
        };
        let (address, before, after) = (address.to_lowercase(), before.to_lowercase(), after.to_lowercase());
        let Some((_, host)) = after.rsplit_once('@') else { return false };
        let Some((local, of)) = address.rsplit_once('@') else { return false };
        let untagged = before.trim_end_matches(|char: char| !char.is_alphanumeric());
        // A quoted part means the same unquoted (RFC 5321, 4.1.2): nobody here has such an address.
        let fits = local == untagged || local.starts_with(&before) || local.contains('"');
        of.trim_end_matches('.') == host && fits
    }

    /// The address that a reply with this token goes to.
    fn reply_to(&self, token: &str) -> Option<String> {
        self.reply.as_ref().map(|reply| reply.replacen(TOKEN, token, 1))
    }

    /// The host part of message ids.
    fn host(&self) -> &str {
        let address = self.reply.as_deref().unwrap_or(&self.from);
        address.rsplit_once('@').map_or("localhost", |(_, host)| host.trim_end_matches('>'))
    }

    fn page(&self, token: &str) -> Option<String> {
        self.pages.as_ref().map(|pages| format!("{}/a/{token}", pages.trim_end_matches('/')))
    }
}

fn invalid(problem: MailProblem) -> Failed {
    Failed::new(DeliveryReason::MailInvalid, problem)
}

/// A mail that a library refuses to compose.
fn not_composed(error: impl ToString) -> Failed {
    Failed::quoting(DeliveryReason::MailInvalid, error.to_string())
}
