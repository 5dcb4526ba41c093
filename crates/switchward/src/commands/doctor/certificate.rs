//! The certificate of the port, verified as a client does.

use jiff::{SignedDuration, Timestamp};
use rustls::{
    CertificateError, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::path::Path;
use std::sync::Arc;
use switchward_messages::cli::doctor::certificate as texts;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer as _, X509Certificate},
};

use super::CheckResult;
use crate::config::Tls;
use crate::tls;

/// The time before its end at which a certificate must be replaced.
pub(super) const LEFT: SignedDuration = SignedDuration::from_hours(14 * 24);
const WHAT: &str = "tls";

/// Checks that the certificate matches its key, is valid today and is accepted by clients.
pub(super) fn look(config: &Tls) -> CheckResult {
    let file = &config.cert_file;
    let chain = match tls::read(config).and_then(|_| tls::chain(&config.cert_file)) {
        Ok(chain) => chain,
        Err(error) => return CheckResult::fail(WHAT, format!("{error:#}"), texts::USE_MATCHING_FILES),
    };
    let Some(leaf) = chain.first().and_then(|der| X509Certificate::from_der(der).ok()) else {
        return CheckResult::warn(WHAT, texts::unparsable(file), texts::CHECK_VALIDITY);
    };
    let (names, from, until) =
        (names(&leaf.1), at(leaf.1.validity().not_before), at(leaf.1.validity().not_after));
    let now = Timestamp::now();
    let dated = from.zip(until).map(|(from, until)| dated(WHAT, file, from, until, now));
    if let Some(wrong) = dated.clone().filter(|found| found.status == super::CheckStatus::Fail) {
        return wrong;
    }
    if names.is_empty() {
        return CheckResult::fail(WHAT, texts::without_host(file), texts::NAME_HOST);
    }
    if let Some(refused) = refused(file, &chain, &names) {
        return refused;
    }
    let Some(mut found) = dated else {
        return CheckResult::warn(WHAT, texts::unreadable_dates(file), texts::CHECK_VALIDITY);
    };
    found.said = texts::with_hosts(&found.said, &names);
    found
}

/// The reason why clients would refuse the certificate; `None` if they accept it.
fn refused(file: &Path, chain: &[CertificateDer<'static>], names: &[String]) -> Option<CheckResult> {
    let system = rustls_native_certs::load_native_certs().certs;
    let error = match verified(chain, &names[0], system) {
        Ok(()) => return None,
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            // As a client does that was given this file with --ca.
            match verified(chain, &names[0], chain.to_vec()) {
                Ok(()) => return None,
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    if error == rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) {
        return Some(CheckResult::warn(WHAT, texts::unknown_issuer(file), texts::ADD_ISSUER));
    }
    let reason = format!("{error:?}");
    if reason.contains("CaUsedAsEndEntity") {
        return Some(CheckResult::fail(WHAT, texts::of_authority(file), texts::ISSUE_SERVER_CERTIFICATE));
    }
    Some(CheckResult::fail(WHAT, texts::refused(file, &error), texts::GET_NEW))
}

/// Verifies a certificate chain as a client does that trusts these authorities.
///
/// # Errors
/// The client refuses it.
pub(super) fn verified(
    chain: &[CertificateDer<'static>],
    name: &str,
    anchors: Vec<CertificateDer<'static>>,
) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(anchors);
    let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|_| unknown())?;
    // Any name that a wildcard matches will do.
    let name = ServerName::try_from(name.replace('*', "any"))
        .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::NotValidForName))?;
    let (leaf, rest) = chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
    verifier.verify_server_cert(leaf, rest, &name, &[], UnixTime::now()).map(drop)
}

/// The hosts that a certificate names.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| {
        if let GeneralName::DNSName(name) = name {
            return Some((*name).to_owned());
        }
        let GeneralName::IPAddress(bytes) = name else { return None };
        let four = <[u8; 4]>::try_from(*bytes).map(|it| std::net::IpAddr::from(it).to_string());
        four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(|it| std::net::IpAddr::from(it).to_string())).ok()
    };
    names.value.general_names.iter().filter_map(name).collect()
}

pub(super) fn at(time: x509_parser::time::ASN1Time) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}

/// Judges the dates of a certificate for the check of this name.
pub(super) fn dated(
    what: &'static str,
    file: &Path,
    from: Timestamp,
    until: Timestamp,
    now: Timestamp,
) -> CheckResult {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    if now < from || now > until {
        let said = texts::not_valid_today(file, &day(from), &day(until));
        return CheckResult::fail(what, said, texts::REPLACE_NOW);
    }
    let said = texts::valid_until(file, &day(until));
    if until.duration_since(now) < LEFT {
        return CheckResult::warn(what, said, texts::REPLACE_SOON);
    }
    CheckResult::ok(what, said)
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use std::fs;

    /// A folder with this certificate and this key.
    fn files(chain: &str, key: &KeyPair) -> (tempfile::TempDir, Tls) {
        let folder = tempfile::tempdir().unwrap();
        let tls = Tls { cert_file: folder.path().join("tls.crt"), key_file: folder.path().join("tls.key") };
        fs::write(&tls.cert_file, chain).unwrap();
        fs::write(&tls.key_file, key.serialize_pem()).unwrap();
        (folder, tls)
    }

    fn looked(chain: &str, key: &KeyPair) -> CheckResult {
        let (_folder, tls) = files(chain, key);
        look(&tls)
    }

    #[test]
    fn an_expiring_certificate_is_reported_in_time() {
        let now = Timestamp::now();
        let days = |days: i64| now + SignedDuration::from_hours(days * 24);
        for (from, until, status) in [
            (-1, 90, CheckStatus::Ok),
            (-1, 13, CheckStatus::Warn),
            (-9, -1, CheckStatus::Fail),
            (1, 90, CheckStatus::Fail),
        ] {
            let found = dated(WHAT, Path::new("tls.crt"), days(from), days(until), now);
            assert_eq!(found.status, status, "{from} {until}: {found:?}");
        }
    }

    #[test]
    fn a_certificate_is_judged_as_a_client_does() {
        let key = KeyPair::generate().unwrap();
        let named = |names: &[&str]| {
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
        };
        let mut good = named(&["switchward.example", "10.0.0.1"]);
        good.not_after = rcgen::date_time_ymd(2090, 1, 1);
        let found = looked(&good.clone().self_signed(&key).unwrap().pem(), &key);
        assert_eq!(found.status, CheckStatus::Ok, "{found:?}");
        assert!(found.said.ends_with("for switchward.example, 10.0.0.1"), "{found:?}");

        // What `openssl req -x509` makes.
        let mut authority = good.clone();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(rcgen::DnType::CommonName, "an authority of our own");
        let own = authority.self_signed(&key).unwrap();
        let found = looked(&own.pem(), &key);
        assert_eq!(found.status, CheckStatus::Fail, "{found:?}");
        assert!(found.said.contains("CA:TRUE") && found.advice.contains("CA:FALSE"), "{found:?}");

        let nameless = looked(&named(&[]).self_signed(&key).unwrap().pem(), &key);
        assert_eq!(nameless.status, CheckStatus::Fail, "{nameless:?}");
        assert!(nameless.said.contains("subjectAltName"), "{nameless:?}");

        let leaf_key = KeyPair::generate().unwrap();
        let leaf = good.signed_by(&leaf_key, &Issuer::from_params(&authority, &key)).unwrap();
        let alone = looked(&leaf.pem(), &leaf_key);
        assert_eq!(alone.status, CheckStatus::Warn, "{alone:?}");
        assert!(alone.said.contains("this machine does not trust the issuer"), "{alone:?}");
        let whole = looked(&format!("{}{}", leaf.pem(), own.pem()), &leaf_key);
        assert_eq!(whole.status, CheckStatus::Ok, "{whole:?}");
        let fit = looked(&leaf.pem(), &key);
        assert!(fit.status == CheckStatus::Fail && fit.said.contains("does not belong"), "{fit:?}");
    }
}
