//! What the rows of the catalogue, of tenants and of the cluster cost in memory.

use switchward_machine::Machine;

use super::{
    ApiKey, Assistant, ClusterMap, Definition, Server, Tenancy, Tenant, TenantChange, Usage, Version,
};
use crate::memory::{ENTRY_BYTES, InMemory, ROW_BYTES};

impl InMemory for Tenant {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for ApiKey {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for Definition {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for Version {
    fn cached(&self) -> bool {
        false
    }
}

impl InMemory for Machine {
    fn cached(&self) -> bool {
        true
    }

    fn structure_bytes(&self) -> usize {
        ROW_BYTES * (self.nodes.len() + 2)
    }
}

impl InMemory for Assistant {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for Tenancy {
    fn cached(&self) -> bool {
        true
    }

    fn structure_bytes(&self) -> usize {
        // A member has five more entries in what is known of a directory once it has been asked.
        let members = self.directory.entries.iter().map(|entry| entry.members.len() * 6 + 1);
        let rules = self.retention.rules.len() * 2;
        let endpoints = self.endpoints.iter().map(|one| one.filters.len() + 2 * one.secrets.len() + 2);
        ROW_BYTES + (members.sum::<usize>() + endpoints.sum::<usize>() + rules) * ENTRY_BYTES
    }
}

impl InMemory for TenantChange {
    fn cached(&self) -> bool {
        false
    }

    fn structure_bytes(&self) -> usize {
        ROW_BYTES + self.parts.len() * 4 * ENTRY_BYTES
    }
}

impl InMemory for Usage {
    fn cached(&self) -> bool {
        true
    }

    fn structure_bytes(&self) -> usize {
        ENTRY_BYTES
    }

    fn text_bytes(&self) -> usize {
        0
    }
}

impl InMemory for Server {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for ClusterMap {
    fn cached(&self) -> bool {
        true
    }

    fn structure_bytes(&self) -> usize {
        let replicas = self.groups.iter().map(|group| group.servers.len() + 1);
        ROW_BYTES + replicas.sum::<usize>() * ENTRY_BYTES
    }
}
