//! People sign in to decision pages: the provider that delivery asks, as the gateway wants it.

use switchward_delivery::openid::{Problem, Provider, SignIn as Asked};
use switchward_gateway::decision::{Attempt, NotSignedIn, SignIn};

/// The OpenID provider of the configuration.
pub(crate) struct OpenId(pub(crate) Provider);

#[tonic::async_trait]
impl SignIn for OpenId {
    async fn page(&self, attempt: &Attempt) -> Result<String, NotSignedIn> {
        self.0.page(&asked(attempt)).await.map_err(not_signed_in)
    }

    async fn address(&self, code: &str, attempt: &Attempt) -> Result<String, NotSignedIn> {
        self.0.address(code, &asked(attempt)).await.map_err(not_signed_in)
    }
}

fn asked(attempt: &Attempt) -> Asked<'_> {
    let Attempt { state, nonce, verifier, address, now } = attempt;
    Asked { state, nonce, verifier, address, now_ms: now.0 }
}

fn not_signed_in(problem: Problem) -> NotSignedIn {
    if problem == Problem::Unavailable {
        return NotSignedIn::Unavailable;
    }
    NotSignedIn::Refused(problem.code())
}
