//! An OpenID provider, as the pages use it to sign people in.

use switchward_machine::Time;

/// The path that a provider sends browsers back to, below the public address of the pages.
pub const CALLBACK: &str = "/a/oidc/callback";

/// Signs people in with an OpenID provider.
#[tonic::async_trait]
pub trait SignIn: Send + Sync {
    /// Returns the address of the provider's page to which a browser goes.
    ///
    /// # Errors
    /// The provider cannot be used now.
    async fn page(&self, attempt: &Attempt) -> Result<String, NotSignedIn>;

    /// Returns the address, verified by the provider, of the person who came back with this code.
    ///
    /// # Errors
    /// The provider cannot be used now, or does not prove an address.
    async fn address(&self, code: &str, attempt: &Attempt) -> Result<String, NotSignedIn>;
}

/// One sign-in. The same one is given when the person is sent to the provider and when they come back.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// What comes back with the browser.
    pub state: String,
    /// What comes back in the ID token.
    pub nonce: [u8; 32],
    /// The code verifier, which proves to the provider that the sender of the code began the sign-in.
    pub verifier: [u8; 32],
    /// The address of the person whose page it is.
    pub address: String,
    /// The server's time at this step; an ID token is judged by it.
    pub now: Time,
}

/// Why nobody was signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSignedIn {
    /// The provider cannot be used now.
    Unavailable,
    /// The sign-in is not accepted: a stable reason code.
    Refused(&'static str),
}
