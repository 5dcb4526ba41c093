//! The two tenants of every server here. Both have the same process, business keys, request ids and call ids, so that every
//! confusion of the two shows.

use anyhow::Context as _;
use switchward_api::v1::{
    self, api_key_service_client::ApiKeyServiceClient, tenant_service_client::TenantServiceClient,
};
use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::Endpoint,
};

use crate::front::Wire;
use crate::server::Ready;

const SECOND: &str = "second";

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// The one that the server starts with.
    First,
    /// The one that is made beside it.
    Second,
}

impl Tenant {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// Every other session is the second tenant's.
    pub(crate) fn of(number: u64) -> Self {
        if number.is_multiple_of(2) { Self::First } else { Self::Second }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => SECOND,
        }
    }
}

/// The number of a session within its tenant: each tenant has one with this number.
pub(crate) fn pair(number: u64) -> u64 {
    number / 2
}

/// What a tenant's callers send with each request.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) agent: MetadataValue<Ascii>,
    pub(crate) person: MetadataValue<Ascii>,
}

impl Keys {
    pub(crate) fn of(agent: &str, person: &str) -> anyhow::Result<Self> {
        Ok(Self { agent: bearer(agent)?, person: bearer(person)? })
    }

    /// Makes the second tenant on a server that has the first one only.
    pub(crate) async fn found(ready: &Ready) -> anyhow::Result<Self> {
        let channel = Endpoint::from_shared(ready.address.clone())?.connect().await?;
        let first = Wire::new(channel.clone(), bearer(&ready.person_key)?);
        let wanted = v1::CreateTenantRequest { tenant_id: SECOND.into(), ..Default::default() };
        let made = TenantServiceClient::new(channel.clone()).create_tenant(first.request(wanted)).await;
        let person = made.context("the second tenant was not made")?.into_inner().admin_secret;
        let second = Wire::new(channel.clone(), bearer(&person)?);
        let wanted = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
        let made = ApiKeyServiceClient::new(channel).create_api_key(second.request(wanted)).await;
        let agent = made.context("the second tenant's agent got no key")?.into_inner().secret;
        Self::of(&agent, &person)
    }
}

fn bearer(key: &str) -> anyhow::Result<MetadataValue<Ascii>> {
    format!("Bearer {key}").parse().context("the key is no header")
}
