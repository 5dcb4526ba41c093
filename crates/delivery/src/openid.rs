//! Sign-in with an OpenID provider: the page of the provider to which a browser goes, and the address of the person who came
//! back from it.
//!
//! What the provider publishes about itself and the keys that it signs with are asked for when they are needed, and kept for
//! a time. An ID token counts if it is this provider's, for this client and this sign-in, not expired, and signed with one of
//! those keys. Of what it says, one thing is used: the address of a person, which the provider has verified. Source: OpenID
//! Connect Core 1.0, 3.1; Discovery 1.0, 4; RFC 7636 for the proof of who began it.
//!
//! Chosen: the `openidconnect` crate for the forms and the checks, over the client of this crate. Rejected: its own HTTP
//! clients, which nothing guards.

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
use tokio::sync::Semaphore;

use crate::Secret;
use crate::guard::{Egress, Target};
use crate::http::Client;
use crate::limits::{OPENID_ASKED_AGAIN_MS, OPENID_EXCHANGES_MAX, OPENID_KEPT_MS};
use asking::Asking;
use known::Known;

pub use problem::Problem;

/// What an ID token may be signed with: what the provider alone can sign with. A client's secret is none of it.
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

/// A client that knows where the provider's pages are.
type Located = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// A provider, and what this server is to it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The provider's name, below which it publishes what it is: an address without query and fragment.
    pub issuer: String,
    /// What it calls this server.
    pub client_id: String,
    /// By what it recognises this server.
    pub client_secret: Secret,
    /// Where it sends people back to; one of those that it was told for this client.
    pub redirect: String,
    /// What may be asked of it.
    pub egress: Egress,
}

/// The configuration of a provider cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// Which part of it.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

/// One sign-in of one person. The same one is given when they are sent to the provider and when they come back.
#[derive(Debug, Clone, Copy)]
pub struct SignIn<'a> {
    /// What comes back with the browser.
    pub state: &'a str,
    /// What comes back in the ID token.
    pub nonce: &'a [u8; 32],
    /// What proves to the provider that whoever brings the code has begun it.
    pub verifier: &'a [u8; 32],
    /// The address that is expected, so that the provider can propose it.
    pub address: &'a str,
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
}

/// What a provider publishes about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Where people sign in.
    pub page: String,
    /// How many keys it may sign with.
    pub keys: usize,
}

/// Why a provider cannot be used, in words.
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
    exchanges: Semaphore,
}

impl Provider {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// An address cannot be read, or may not be asked as far as can be seen in it.
    pub fn new(client: Client, config: Config) -> Result<Self, ConfigError> {
        let Config { issuer, client_id, client_secret, redirect, egress } = config;
        let wrong = |key, message: String| ConfigError { key, message };
        Target::read(&issuer, &egress).map_err(|refused| wrong("issuer", refused.told))?;
        let issuer = IssuerUrl::new(issuer).map_err(|error| wrong("issuer", error.to_string()))?;
        if issuer.url().query().is_some() || issuer.url().fragment().is_some() {
            return Err(wrong("issuer", "the address has a query or a fragment".to_owned()));
        }
        if client_id.is_empty() {
            return Err(wrong("client_id", "is empty".to_owned()));
        }
        if client_secret.reveal().is_empty() {
            return Err(wrong("client_secret", "is empty".to_owned()));
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
            exchanges: Semaphore::new(OPENID_EXCHANGES_MAX),
        })
    }

    /// Asks the provider what it publishes, whatever was kept of it.
    ///
    /// # Errors
    /// [`Unusable`] if it cannot be reached, calls itself otherwise, or publishes too little.
    pub async fn published(&self) -> Result<Published, Unusable> {
        let found = known::discover(&self.asking(), &self.issuer).await?;
        let page = found.authorization_endpoint().to_string();
        Ok(Published { page, keys: found.jwks().keys().len() })
    }

    /// Returns the address of the provider's page to which the browser goes.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if the provider does not say now where that is.
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

    /// Returns the verified address of the person who came back with this code.
    ///
    /// # Errors
    /// The provider cannot be reached, does not take the code, or gives an ID token that proves no address.
    pub async fn address(&self, code: &str, sign_in: &SignIn<'_>) -> Result<String, Problem> {
        let Ok(_permit) = self.exchanges.try_acquire() else {
            tracing::warn!("too many people sign in at one time");
            return Err(Problem::Unavailable);
        };
        let metadata = self.known.get(&self.asking(), &self.issuer, sign_in.now_ms, OPENID_KEPT_MS).await?;
        let token = self.exchanged(&metadata, code, sign_in).await?;
        match self.claimed(&metadata, &token, sign_in) {
            Err(Problem::KeyUnknown) => {
                // The provider may have begun to sign with another key.
                let asking = self.asking();
                let newer =
                    self.known.get(&asking, &self.issuer, sign_in.now_ms, OPENID_ASKED_AGAIN_MS).await?;
                self.claimed(&newer, &token, sign_in)
            }
            outcome => outcome,
        }
    }

    /// Exchanges the code for an ID token, of which nothing is verified yet.
    async fn exchanged(
        &self,
        metadata: &CoreProviderMetadata,
        code: &str,
        sign_in: &SignIn<'_>,
    ) -> Result<CoreIdToken, Problem> {
        let client = self.located(metadata);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned())).map_err(|error| {
            tracing::error!(%error, "the OpenID provider says of no place where codes are taken");
            Problem::Unavailable
        })?;
        let asking = self.asking();
        let answer = request.set_pkce_verifier(verifier(sign_in)).request_async(&asking).await;
        let answer = answer.map_err(|error| match error {
            RequestTokenError::ServerResponse(told)
                if *told.error() == CoreErrorResponseType::InvalidGrant =>
            {
                Problem::CodeRefused
            }
            RequestTokenError::ServerResponse(told) => {
                tracing::error!(error = ?told.error(), "the OpenID provider does not exchange a code");
                Problem::Unavailable
            }
            RequestTokenError::Request(failed) => {
                tracing::warn!(reason = failed.reason.code(), error = %failed, "an OpenID provider failed");
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
        // Public: what is signed with the client's secret proves nothing to whoever shares it.
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

/// What an ID token lacks that was refused.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add to its list; all of it proves nothing"
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

/// RFC 7636 wants 43 to 128 of some signs; these are 64.
fn verifier(sign_in: &SignIn<'_>) -> PkceCodeVerifier {
    PkceCodeVerifier::new(hex(sign_in.verifier))
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // A text takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
