//! Makes the certificates of a cluster: an authority, and a certificate for each process that it signs.
//!
//! A certificate contains the name [`PeerName::dns`], by which servers know whose it is, and any names or addresses of its
//! host, so that it can serve the public port too. It is for both ends of a connection.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::ServerName;

use crate::limits::{CERTIFICATE_DAYS_MAX, CERTIFICATE_HOSTS_MAX};
use crate::name::{PeerName, hex};

/// How long before it was made a certificate begins to be valid, for servers whose clocks are behind.
const EARLIER: Duration = DAY;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When certificates are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// When they are made; they are valid from one day before it.
    pub from: SystemTime,
    /// For how many days from then: 1 to [`CERTIFICATE_DAYS_MAX`].
    pub days: u32,
}

/// Why a certificate cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The number of days is not allowed.
    #[error("a certificate is valid for 1 to {CERTIFICATE_DAYS_MAX} days, not {0}")]
    Days(u32),
    /// There are too many hosts.
    #[error("a certificate can have {CERTIFICATE_HOSTS_MAX} hosts, not {0}")]
    Hosts(usize),
    /// A host is neither a DNS name nor an IP address.
    #[error("{0:?} is neither a host name nor an IP address")]
    Host(String),
    /// The authority cannot be read, or a key cannot be made.
    #[error("{0}")]
    Other(String),
}

impl From<rcgen::Error> for CertificateError {
    fn from(error: rcgen::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// The authority of a cluster, with its private key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    cert_pem: String,
}

/// A certificate and its private key, as PEM texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate.
    pub cert_pem: String,
    /// The private key. Only the server may read it.
    pub key_pem: String,
}

impl Authority {
    /// Makes the authority of a cluster, with a new key.
    ///
    /// # Errors
    ///
    /// The number of days is not allowed.
    pub fn generate(cluster: &[u8; 16], validity: Validity) -> Result<Self, CertificateError> {
        let mut params = params(Vec::new(), &format!("Switchward cluster {}", hex(cluster)), validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let cert_pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), cert_pem })
    }

    /// Reads an authority from its certificate and its private key.
    ///
    /// # Errors
    ///
    /// One of them cannot be read.
    pub fn from_pem(cert_pem: &str, key_pem: &str) -> Result<Self, CertificateError> {
        let key = KeyPair::from_pem(key_pem)?;
        Ok(Self { issuer: Issuer::from_ca_cert_pem(cert_pem, key)?, cert_pem: cert_pem.to_owned() })
    }

    /// Its certificate, which every server of the cluster needs.
    #[must_use]
    pub fn cert_pem(&self) -> &str {
        &self.cert_pem
    }

    /// Its private key, with which certificates for any server can be made. No server needs it.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Makes the certificate of a process, with a new key.
    ///
    /// # Errors
    ///
    /// The number of days is not allowed, a host is neither a DNS name nor an IP address, or there are too many.
    pub fn issue(
        &self,
        cluster: &[u8; 16],
        name: &PeerName,
        hosts: &[String],
        validity: Validity,
    ) -> Result<Issued, CertificateError> {
        if hosts.len() > CERTIFICATE_HOSTS_MAX {
            return Err(CertificateError::Hosts(hosts.len()));
        }
        if let Some(host) = hosts.iter().find(|host| ServerName::try_from(host.as_str()).is_err()) {
            return Err(CertificateError::Host(host.clone()));
        }
        let mut names = vec![name.dns(cluster)];
        names.extend_from_slice(hosts);
        self.issue_for(names, &format!("Switchward {name}"), validity)
    }

    /// Makes a certificate for any names; tests make wrong ones with it.
    fn issue_for(
        &self,
        names: Vec<String>,
        subject: &str,
        validity: Validity,
    ) -> Result<Issued, CertificateError> {
        let mut params = params(names, subject, validity)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let cert_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { cert_pem, key_pem: key.serialize_pem() })
    }
}

fn params(
    names: Vec<String>,
    subject: &str,
    validity: Validity,
) -> Result<CertificateParams, CertificateError> {
    let Validity { from, days } = validity;
    if days == 0 || days > CERTIFICATE_DAYS_MAX {
        return Err(CertificateError::Days(days));
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    params.not_before = (from - EARLIER).into();
    params.not_after = (from + days * DAY).into();
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::{Hello, PROTOCOL};
    use crate::tls::{Configs, TlsPem};

    const CLUSTER: [u8; 16] = [0xab; 16];

    fn year() -> Validity {
        Validity { from: SystemTime::now(), days: 365 }
    }

    fn hello(server: u64) -> Hello {
        Hello {
            cluster: CLUSTER,
            server,
            folder: [0; 16],
            boot: 1,
            boot_id: [0; 16],
            protocol: PROTOCOL,
            lowest_level: 1,
            highest_level: 1,
            keys: [0; 32],
            clock_ms: 0,
        }
    }

    fn usable(ca: &str, issued: &Issued, own: &Hello) -> Result<(), String> {
        let pem = TlsPem {
            ca: ca.as_bytes().to_vec(),
            cert: issued.cert_pem.as_bytes().to_vec(),
            key: issued.key_pem.as_bytes().to_vec(),
        };
        Configs::new(&pem, own).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_can_use_its_own_certificate_and_no_other() {
        let authority = Authority::generate(&CLUSTER, year()).unwrap();
        let hosts = ["node3.example".to_owned(), "10.0.0.3".to_owned(), "::1".to_owned()];
        let third = authority.issue(&CLUSTER, &PeerName::Server(3), &hosts, year()).unwrap();
        assert_eq!(usable(authority.cert_pem(), &third, &hello(3)), Ok(()));
        let refused = usable(authority.cert_pem(), &third, &hello(4)).unwrap_err();
        assert!(refused.contains("does not contain the name server-4.abab"), "{refused}");
        let fourth = authority.issue(&CLUSTER, &PeerName::Server(4), &[], year()).unwrap();
        let mixed = Issued { cert_pem: third.cert_pem, key_pem: fourth.key_pem };
        assert!(usable(authority.cert_pem(), &mixed, &hello(3)).is_err());
    }

    #[test]
    fn a_gateway_cannot_be_a_server() {
        let authority = Authority::generate(&CLUSTER, year()).unwrap();
        let gateway = PeerName::gateway("server-3").expect("a name");
        let issued = authority.issue(&CLUSTER, &gateway, &[], year()).unwrap();
        let refused = usable(authority.cert_pem(), &issued, &hello(3)).unwrap_err();
        assert!(refused.contains("does not contain the name server-3."), "{refused}");
    }

    #[test]
    fn an_authority_that_was_read_back_signs_for_the_same_cluster() {
        let made = Authority::generate(&CLUSTER, year()).unwrap();
        let read = Authority::from_pem(made.cert_pem(), &made.key_pem()).unwrap();
        let issued = read.issue(&CLUSTER, &PeerName::Server(1), &[], year()).unwrap();
        assert_eq!(usable(made.cert_pem(), &issued, &hello(1)), Ok(()));
        assert!(Authority::from_pem("nothing", &made.key_pem()).is_err());
        assert!(Authority::from_pem(made.cert_pem(), "nothing").is_err());
    }

    #[test]
    fn what_no_certificate_can_have_is_refused() {
        let authority = Authority::generate(&CLUSTER, year()).unwrap();
        let issue = |hosts: &[String], days| {
            authority.issue(&CLUSTER, &PeerName::Server(1), hosts, Validity { days, ..year() }).err()
        };
        assert_eq!(issue(&[], 0), Some(CertificateError::Days(0)));
        assert_eq!(issue(&[], u32::MAX), Some(CertificateError::Days(u32::MAX)));
        assert_eq!(issue(&["a b".to_owned()], 1), Some(CertificateError::Host("a b".to_owned())));
        let many = vec!["a.example".to_owned(); CERTIFICATE_HOSTS_MAX + 1];
        assert_eq!(issue(&many, 1), Some(CertificateError::Hosts(many.len())));
    }
}
