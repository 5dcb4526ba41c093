//! What the DNS publishes for our own domains, for their operator.

use mail_auth::dmarc::Dmarc;
use mail_auth::spf::Spf;
use mail_auth::{AuthenticatedMessage, DkimResult, DnsError, Error};

use super::Dns;
use crate::limits::{DMARC_PARENTS_MAX, DNS_TIME_MAX};

/// Whether something is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// It is there, and can be used.
    There,
    /// It is not there.
    Missing,
    /// It is there and cannot be used, or the DNS cannot be asked; the text says why.
    Unusable(String),
}

impl Published {
    fn of<T>(found: Result<T, Error>) -> Self {
        match found {
            Ok(_) => Self::There,
            Err(Error::Dns(DnsError::RecordNotFound(_))) => Self::Missing,
            Err(error) => Self::Unusable(error.to_string()),
        }
    }
}

impl Dns {
    /// Whether a domain says which hosts send for it (SPF).
    pub async fn senders_of(&self, domain: &str) -> Published {
        let found = self.authenticator.txt_lookup::<Spf>(domain, Some(self.texts())).await;
        Published::of(found)
    }

    /// Whether a domain, or one above it, has a policy for mail that is not proved to be its own (DMARC).
    pub async fn policy_of(&self, domain: &str) -> Published {
        let mut found = Published::Missing;
        let parents =
            std::iter::successors(Some(domain), |domain| domain.split_once('.').map(|(_, rest)| rest));
        for domain in parents.filter(|domain| domain.contains('.')).take(DMARC_PARENTS_MAX) {
            let name = format!("_dmarc.{domain}");
            found = Published::of(self.authenticator.txt_lookup::<Dmarc>(name, Some(self.texts())).await);
            if found != Published::Missing {
                break;
            }
        }
        found
    }

    /// The hosts that take a domain's mail, the first ones first; an error is one of [`Published::Missing`] and
    /// [`Published::Unusable`].
    pub async fn mail_hosts_of(&self, domain: &str) -> Result<Vec<String>, Published> {
        match self.authenticator.mx_lookup(domain, Some(self.hosts())).await {
            Ok(found) => {
                let hosts = found.rrset.iter().flat_map(|rank| rank.exchanges.iter());
                Ok(hosts.map(|host| host.trim_end_matches('.').to_owned()).collect())
            }
            Err(error) => Err(Published::of(Err::<(), _>(error))),
        }
    }

    /// Whether the signature of this message holds by the key that its signer publishes.
    pub async fn signature_of(&self, raw: &[u8]) -> Published {
        let Some(message) = AuthenticatedMessage::parse(raw) else {
            return Published::Unusable("the message cannot be read".into());
        };
        let checked = self.authenticator.verify_dkim(self.asking(&message));
        let Ok(checked) = tokio::time::timeout(DNS_TIME_MAX, checked).await else {
            return Published::Unusable("the DNS has not answered in time".into());
        };
        match checked.first().map(|output| output.result().clone()) {
            None | Some(DkimResult::None) => Published::Unusable("it is not signed".into()),
            Some(DkimResult::Pass) => Published::There,
            Some(
                DkimResult::Neutral(error)
                | DkimResult::Fail(error)
                | DkimResult::PermError(error)
                | DkimResult::TempError(error),
            ) => Published::of(Err::<(), _>(error)),
        }
    }
}
