//! Sign-in with an OpenID provider: the provider's page for the browser, and the address of the person who came back from
//! it.
//!
//! The provider's metadata and signing keys are requested when they are needed, and cached for a time. An ID token is valid
//! if it is this provider's, for this client and this sign-in, not expired, and signed with one of those keys. Only one
//! claim is used: the person's address, which the provider must have verified. Source: OpenID Connect Core 1.0, 3.1;
//! Discovery 1.0, 4; RFC 7636 (PKCE) for the proof of who began the sign-in.
//!
//! Chosen: the `openidconnect` crate for formats and checks, over the client of this crate. Rejected: its own HTTP clients,
//! which have no egress guard.

mod asking;
mod known;
mod problem;

use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreErrorResponseType, CoreIdToken, CoreJwsSigningAlgorithm,
    CoreProviderMetadata,
};
use openidconnect::{
    AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, IdTokenVerifier, IssuerUrl, LoginHint, Nonce, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, SignatureVerificationError, TokenResponse as _,
};
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use crate::Secret;
use crate::guard::{Egress, Target};
use crate::http::Client;
use crate::limits::{OPENID_ASKED_AGAIN_MS, OPENID_KEPT_MS};
use asking::Asking;
use known::Known;

pub use problem::Problem;

/// The allowed algorithms of ID tokens: only asymmetric ones, as a client's secret proves nothing.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// A client that knows the provider's endpoints.
type Located = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// A provider, and this server's registration with it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The issuer, below which the provider publishes its metadata: an address without query and fragment.
    pub issuer: String,
    /// This server's client id.
    pub client_id: String,
    /// This server's client secret.
    pub client_secret: Secret,
    /// The redirect address; one of those that are registered for this client.
    pub redirect: String,
    /// The egress rules for requests to it.
    pub egress: Egress,
}

/// The configuration of a provider cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key of the invalid value.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
}

/// One sign-in of one person. The same values are given when they are sent to the provider and when they come back.
#[derive(Debug, Clone, Copy)]
pub struct SignIn<'a> {
    /// The state that comes back with the browser.
    pub state: &'a str,
    /// The nonce that comes back in the ID token.
    pub nonce: &'a [u8; 32],
    /// The PKCE verifier, which proves that the bearer of the code began the sign-in.
    pub verifier: &'a [u8; 32],
    /// The expected address, a hint for the provider.
    pub address: &'a str,
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
}

/// A summary of a provider's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Where people sign in.
    pub page: String,
    /// The number of its signing keys.
    pub keys: usize,
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

/// An OpenID provider.
pub struct Provider {
    client: Client,
    issuer: IssuerUrl,
    client_id: ClientId,
    client_secret: ClientSecret,
    redirect: RedirectUrl,
    egress: Egress,
    known: Known,
}

impl Provider {
    /// Creates a provider without any request.
    ///
    /// # Errors
    /// An address is malformed or not allowed, or a value is empty.
    pub fn new(client: Client, config: Config) -> Result<Self, ConfigError> {
        let Config { issuer, client_id, client_secret, redirect, egress } = config;
        let wrong = |key, message: String| ConfigError { key, message };
        Target::read(&issuer, &egress).map_err(|refused| wrong("issuer", refused.to_string()))?;
        let issuer = IssuerUrl::new(issuer).map_err(|error| wrong("issuer", error.to_string()))?;
        if issuer.url().query().is_some() || issuer.url().fragment().is_some() {
            return Err(wrong("issuer", "the address has a query or a fragment".to_owned()));
        }
        if client_id.is_empty() {
            return Err(wrong("client_id", "must not be empty".to_owned()));
        }
        if client_secret.reveal().is_empty() {
            return Err(wrong("client_secret", "must not be empty".to_owned()));
        }
        let redirect = RedirectUrl::new(redirect).map_err(|error| wrong("redirect", error.to_string()))?;
        Ok(Self {
            client,
            issuer,
            client_id: ClientId::new(client_id),
            client_secret: ClientSecret::new(client_secret.reveal().to_owned()),
            redirect,
            egress,
            known: Known::default(),
        })
    }

    /// Requests the provider's metadata, ignoring the cache.
    ///
    /// # Errors
    /// [`Unusable`] if it cannot be reached, has another issuer, or publishes too little.
    pub async fn published(&self) -> Result<Published, Unusable> {
        let found = known::discover(&self.asking(), &self.issuer).await?;
        let page = found.authorization_endpoint().to_string();
        Ok(Published { page, keys: found.jwks().keys().len() })
    }

    /// Returns the address of the provider's page to which the browser goes.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if the provider's metadata is not available now.
    pub async fn page(&self, sign_in: &SignIn<'_>) -> Result<String, Problem> {
        let metadata = self.known.get(&self.asking(), &self.issuer, sign_in.now_ms, OPENID_KEPT_MS).await?;
        let (state, nonce) = (sign_in.state.to_owned(), hex(sign_in.nonce));
        let (address, ..) = self
            .located(&metadata)
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new(state),
                || Nonce::new(nonce),
            )
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier(sign_in)))
            .set_login_hint(LoginHint::new(sign_in.address.to_owned()))
            .url();
        Ok(address.into())
    }

    /// Returns the verified address of the person who came back with this code. The caller limits how many codes are exchanged
    /// at one time.
    ///
    /// # Errors
    /// The provider cannot be reached, refuses the code, or issues an ID token that proves no address.
    pub async fn address(&self, code: &str, sign_in: &SignIn<'_>) -> Result<String, Problem> {
        let metadata = self.known.get(&self.asking(), &self.issuer, sign_in.now_ms, OPENID_KEPT_MS).await?;
        let token = self.exchanged(&metadata, code, sign_in).await?;
        match self.claimed(&metadata, &token, sign_in) {
            Err(Problem::KeyUnknown) => {
                // The provider may have rotated its keys.
                let asking = self.asking();
                let newer =
                    self.known.get(&asking, &self.issuer, sign_in.now_ms, OPENID_ASKED_AGAIN_MS).await?;
                self.claimed(&newer, &token, sign_in)
            }
            outcome => outcome,
        }
    }

    /// Exchanges the code for an ID token, which is not verified yet.
    async fn exchanged(
        &self,
        metadata: &CoreProviderMetadata,
        code: &str,
        sign_in: &SignIn<'_>,
    ) -> Result<CoreIdToken, Problem> {
        let client = self.located(metadata);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned())).map_err(|error| {
            tracing::error!(%error, "the OpenID provider names no token endpoint");
            Problem::Unavailable
        })?;
        let asking = self.asking();
        let answer = request.set_pkce_verifier(verifier(sign_in)).request_async(&asking).await;
        let answer = answer.map_err(|error| match error {
            RequestTokenError::ServerResponse(response)
                if *response.error() == CoreErrorResponseType::InvalidGrant =>
            {
                Problem::CodeRefused
            }
            RequestTokenError::ServerResponse(response) => {
                tracing::error!(error = ?response.error(), "the OpenID provider refused to exchange a code");
                Problem::Unavailable
            }
            RequestTokenError::Request(failed) => {
                tracing::warn!(reason = failed.reason.code(), error = %failed, "failed to reach an OpenID provider");
                Problem::Unavailable
            }
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => Problem::TokenInvalid,
        })?;
        answer.id_token().cloned().ok_or(Problem::TokenInvalid)
    }

    /// Verifies an ID token and reads the address in it.
    fn claimed(
        &self,
        metadata: &CoreProviderMetadata,
        token: &CoreIdToken,
        sign_in: &SignIn<'_>,
    ) -> Result<String, Problem> {
        let now = UNIX_EPOCH + Duration::from_millis(sign_in.now_ms);
        let signed = metadata.id_token_signing_alg_values_supported();
        let keys = metadata.jwks().clone();
        // A public client: a signature with the client's secret proves nothing to another holder of the secret.
        let verifier = IdTokenVerifier::new_public_client(self.client_id.clone(), self.issuer.clone(), keys)
            .set_allowed_algs(ALGORITHMS.into_iter().filter(|known| signed.contains(known)))
            .set_time_fn(move || now.into());
        let claims = token.claims(&verifier, &Nonce::new(hex(sign_in.nonce))).map_err(|error| {
            tracing::info!(error = ?error, "an ID token was refused");
            unproved(&error)
        })?;
        let address = claims.email().ok_or(Problem::AddressMissing)?;
        if claims.email_verified() != Some(true) {
            return Err(Problem::AddressUnverified);
        }
        Ok(address.to_string())
    }

    fn located(&self, metadata: &CoreProviderMetadata) -> Located {
        let secret = Some(self.client_secret.clone());
        CoreClient::from_provider_metadata(metadata.clone(), self.client_id.clone(), secret)
            .set_redirect_uri(self.redirect.clone())
            .set_auth_type(known::way_of_secret(metadata))
    }

    fn asking(&self) -> Asking<'_> {
        Asking { client: &self.client, egress: &self.egress }
    }
}

/// Maps the reason for which an ID token was refused.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add variants; any of them means that the token is not valid"
)]
fn unproved(error: &ClaimsVerificationError) -> Problem {
    match error {
        ClaimsVerificationError::Expired(_) => Problem::TokenExpired,
        ClaimsVerificationError::InvalidAudience(_) => Problem::AudienceWrong,
        ClaimsVerificationError::InvalidIssuer(_) => Problem::IssuerWrong,
        ClaimsVerificationError::InvalidNonce(_) => Problem::NonceWrong,
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey) => {
            Problem::KeyUnknown
        }
        ClaimsVerificationError::SignatureVerification(_) => Problem::SignatureWrong,
        _ => Problem::TokenInvalid,
    }
}

/// RFC 7636 requires 43 to 128 unreserved characters; these are 64.
fn verifier(sign_in: &SignIn<'_>) -> PkceCodeVerifier {
    PkceCodeVerifier::new(hex(sign_in.verifier))
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
