//! Verifies certificates as webpki does, and says so if a refused one is of another cluster.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

use crate::name::{PeerName, cluster_text};
use crate::tls::named_in;

/// Accepts what `by` accepts. Only the errors differ: an operator who has restored a cluster must see that an old server
/// tries to connect, and not only that a signature is wrong.
#[derive(Debug)]
pub(crate) struct OfCluster<V: ?Sized> {
    /// The cluster of this server.
    pub(crate) cluster: [u8; 16],
    pub(crate) by: Arc<V>,
}

/// The refused certificate names another cluster than that of this server. Nobody has verified it: it says what the other side
/// claims to be.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} belongs to another cluster: its certificate is of the cluster {}, and this server belongs to {}",
    cluster_text(theirs),
    cluster_text(own)
)]
pub(crate) struct OtherCluster {
    name: PeerName,
    theirs: [u8; 16],
    own: [u8; 16],
}

/// Returns the other cluster if a certificate was refused because of it.
pub(crate) fn other_cluster(why: &CertificateError) -> Option<&OtherCluster> {
    if let CertificateError::Other(other) = why { other.0.downcast_ref() } else { None }
}

impl<V: ?Sized> OfCluster<V> {
    /// The error of a certificate that `by` has refused.
    fn explained(&self, certificate: &CertificateDer<'_>, error: Error) -> Error {
        match named_in(certificate) {
            Ok((name, theirs)) if theirs != self.cluster => {
                let other = OtherCluster { name, theirs, own: self.cluster };
                Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(other))))
            }
            Ok(_) | Err(_) => error,
        }
    }
}

impl<V: ServerCertVerifier + ?Sized> ServerCertVerifier for OfCluster<V> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.by.verify_server_cert(certificate, intermediates, name, ocsp, now);
        verified.map_err(|error| self.explained(certificate, error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by.supported_verify_schemes()
    }
}

impl<V: ClientCertVerifier + ?Sized> ClientCertVerifier for OfCluster<V> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.by.verify_client_cert(certificate, intermediates, now);
        verified.map_err(|error| self.explained(certificate, error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by.supported_verify_schemes()
    }
}
