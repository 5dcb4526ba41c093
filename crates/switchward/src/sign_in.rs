//! People sign in to decision pages: the provider that delivery asks, as the gateway wants it.

use anyhow::Context as _;
use switchward_delivery::openid::{Problem, Provider, SignIn as SignInRequest};
use switchward_gateway::decision::{Attempt, NotSignedIn, SignIn};
use switchward_shard::Cluster;
use switchward_state::catalogue::LinkAuth;
use switchward_state::tenant_numbered;

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

/// Logs a warning for each tenant with `link_auth = oidc`. To be called on a server without an OpenID provider.
///
/// # Errors
/// The tenants cannot be read.
pub(crate) async fn warn_of_missing_provider(cluster: &Cluster) -> anyhow::Result<()> {
    let tenants = cluster.tenants().await?;
    let view = cluster.catalogue().read().await?;
    for id in tenants {
        let tenant = tenant_numbered(&view, id).context("failed to read a tenant")?;
        let Some(tenant) = tenant.filter(|it| it.settings.link_auth == Some(LinkAuth::Oidc)) else {
            continue;
        };
        let name = &tenant.name;
        tracing::warn!(
            "the tenant {name} has link_auth = oidc, but this server has no OpenID provider: nobody can decide on its \
             decision pages; configure one under [mail.oidc], or change it with \
             `switchward tenant set --link-auth HOW`"
        );
    }
    Ok(())
}

fn asked(attempt: &Attempt) -> SignInRequest<'_> {
    let Attempt { state, nonce, verifier, address, now } = attempt;
    SignInRequest { state, nonce, verifier, address, now_ms: now.0 }
}

fn not_signed_in(problem: Problem) -> NotSignedIn {
    if problem == Problem::Unavailable {
        return NotSignedIn::Unavailable;
    }
    NotSignedIn::Refused(problem.code())
}
