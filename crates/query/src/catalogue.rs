//! Queries about definitions, their versions and assistants.

use minicbor::{CborLen, Decode, Encode};
use switchward_engine::{pin_callees, pin_policies};
use switchward_machine::{Digest, TenantId};
use switchward_shard::StateView;
use switchward_state::catalogue::{Assistant, Definition, Version};
use switchward_state::policy::PinnedPolicy;
use switchward_state::run::Pinned;
use switchward_state::{Key, Kind, ReadRows as _, Rejection, SharedMachine, SharedRow, ViewError};

use crate::ask::{Ask, Evaluate, Source};
use crate::list::{Bounds, Rows};

/// A query about definitions, their versions and assistants.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CatalogueQuery {
    /// A definition by its name.
    #[n(0)]
    Definition(#[n(0)] GetDefinition),
    /// The definitions of a tenant.
    #[n(1)]
    ListDefinitions(#[n(0)] ListDefinitions),
    /// A version of a definition.
    #[n(2)]
    Version(#[n(0)] GetVersion),
    /// The version that was made of a source.
    #[n(3)]
    SourceVersion(#[n(0)] GetSourceVersion),
    /// A machine by its digest.
    #[n(4)]
    Machine(#[n(0)] GetMachine),
    /// An assistant by its name.
    #[n(5)]
    Assistant(#[n(0)] GetAssistant),
    /// The assistants of a tenant.
    #[n(6)]
    ListAssistants(#[n(0)] ListAssistants),
    /// What a session would be pinned to.
    #[n(7)]
    Pin(#[n(0)] PinDefinitions),
    /// The definitions that need another one.
    #[n(8)]
    Uses(#[n(0)] FindUses),
}

/// A definition. Answers `None` if there is none of this name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetDefinition {
    /// The tenant that owns the definition.
    #[n(0)]
    pub tenant: TenantId,
    /// The definition's name.
    #[n(1)]
    pub name: String,
}

impl Evaluate for GetDefinition {
    type Answer = Option<SharedRow<Definition>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.definition(self.tenant, &self.name)
    }
}

impl Ask for GetDefinition {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The definitions of a tenant, by name, without those that were deleted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListDefinitions {
    /// The tenant whose definitions are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// The part of the list.
    #[n(1)]
    pub bounds: Bounds,
    /// Whether archived definitions are listed, too.
    #[cbor(n(2), default, skip_if = "std::ops::Not::not")]
    pub archived: bool,
}

impl Evaluate for ListDefinitions {
    type Answer = Rows<Definition>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(self.tenant, Kind::Definition);
        self.bounds.rows_that(rows, &prefix, |row: &Definition| {
            row.deleted.is_none() && (self.archived || row.archived.is_none())
        })
    }
}

impl Ask for ListDefinitions {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// A version of a definition, with its files. Answers `None` if there is none of this number.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetVersion {
    /// The tenant that owns the definition.
    #[n(0)]
    pub tenant: TenantId,
    /// The definition's name.
    #[n(1)]
    pub name: String,
    /// The version's number, from 1.
    #[n(2)]
    pub number: u32,
}

impl Evaluate for GetVersion {
    type Answer = Option<SharedRow<Version>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.version_at(&Key::version(self.tenant, &self.name, self.number))
    }
}

impl Ask for GetVersion {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The number of the version that was made of a source. Answers `None` if none was.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetSourceVersion {
    /// The tenant that owns the definition.
    #[n(0)]
    pub tenant: TenantId,
    /// The definition's name.
    #[n(1)]
    pub name: String,
    /// The digest of the source's files.
    #[n(2)]
    pub files: Digest,
}

impl Evaluate for GetSourceVersion {
    type Answer = Option<u32>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let row = rows.source_at(&Key::source(self.tenant, &self.name, self.files))?;
        Ok(row.map(|number| *number))
    }
}

impl Ask for GetSourceVersion {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// A machine of the catalogue. Answers `None` if there is none with this digest.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetMachine {
    /// The tenant that has deployed it; machines are stored for each tenant.
    #[n(0)]
    pub tenant: TenantId,
    /// The machine's digest.
    #[n(1)]
    pub digest: Digest,
}

impl Evaluate for GetMachine {
    type Answer = Option<SharedMachine>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        Ok(rows.machine(self.tenant, self.digest)?.map(SharedMachine))
    }
}

impl Ask for GetMachine {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// An assistant. Answers `None` if there is none of this name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetAssistant {
    /// The tenant that owns the assistant.
    #[n(0)]
    pub tenant: TenantId,
    /// The assistant's name.
    #[n(1)]
    pub name: String,
}

impl Evaluate for GetAssistant {
    type Answer = Option<SharedRow<Assistant>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.assistant_at(&Key::assistant(self.tenant, &self.name))
    }
}

impl Ask for GetAssistant {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The assistants of a tenant, by name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListAssistants {
    /// The tenant whose assistants are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// The part of the list.
    #[n(1)]
    pub bounds: Bounds,
}

impl Evaluate for ListAssistants {
    type Answer = Rows<Assistant>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(self.tenant, Kind::Assistant);
        self.bounds.rows(rows, &prefix)
    }
}

impl Ask for ListAssistants {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// What a session that begins now is pinned to beside its own versions. Answers a rejection if the session cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct PinDefinitions {
    /// The tenant that the session is to belong to.
    #[n(0)]
    pub tenant: TenantId,
    /// The machines of the session's definitions.
    #[n(1)]
    pub machines: Vec<Digest>,
    /// The names of these definitions.
    #[n(2)]
    pub definitions: Vec<String>,
}

/// The versions that a session is pinned to beside its own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Pinning {
    /// Of the definitions that it calls.
    #[n(0)]
    pub callees: Vec<Pinned>,
    /// Of the policies attached to all of them.
    #[n(1)]
    pub policies: Vec<PinnedPolicy>,
}

impl Evaluate for PinDefinitions {
    type Answer = Result<Pinning, Rejection>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let callees = match pin_callees(rows, self.tenant, self.machines.iter().copied())? {
            Ok(callees) => callees,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let called = callees.iter().map(|pinned| pinned.callee.name.clone());
        let definitions = self.definitions.iter().cloned().chain(called);
        let policies = pin_policies(rows, self.tenant, definitions)?;
        Ok(policies.map(|policies| Pinning { callees, policies }))
    }
}

impl Ask for PinDefinitions {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The definitions of a tenant that need a definition, or a version of it, among some definitions. Those that are archived
/// call nothing.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct FindUses {
    /// The tenant that owns all of them.
    #[n(0)]
    pub tenant: TenantId,
    /// The name of the definition that is needed.
    #[n(1)]
    pub name: String,
    /// The number of the version that is needed; `None`: the definition, in any version.
    #[n(2)]
    pub version: Option<u32>,
    /// The definitions that are looked at.
    #[n(3)]
    pub bounds: Bounds,
}

/// The definitions that need one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Uses {
    /// In the order of their names.
    #[n(0)]
    pub uses: Vec<DefinitionUse>,
    /// The position after which further definitions have not been looked at; `None` at their end.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub next: Option<Vec<u8>>,
}

/// A definition that needs another one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct DefinitionUse {
    /// The name of the definition.
    #[n(0)]
    pub name: String,
    /// What it needs the other one for.
    #[n(1)]
    pub kind: UseKind,
}

/// What a definition needs another one for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum UseKind {
    /// Its active version calls it.
    #[n(0)]
    Calls,
    /// It is a policy that is attached to the definition.
    #[n(1)]
    Policy,
}

impl FindUses {
    /// What a definition needs the other one for; `None` if it does not need it.
    fn use_of(&self, rows: &StateView, definition: &Definition) -> Result<Option<UseKind>, ViewError> {
        if definition.name == self.name {
            return Ok(None);
        }
        // An attached policy applies in the version that is active, which cannot be deleted alone.
        if self.version.is_none() && definition.policies.contains(&self.name) {
            return Ok(Some(UseKind::Policy));
        }
        let Some(number) = definition.active.filter(|_| definition.archived.is_none()) else {
            return Ok(None);
        };
        let version = rows.version_at(&Key::version(self.tenant, &definition.name, number))?;
        let Some(version) = version else { return Ok(None) };
        let machine = rows.machine(self.tenant, version.machine)?;
        let calls = machine.is_some_and(|machine| {
            let mut callees = machine.callees.iter();
            callees.any(|callee| {
                callee.name == self.name && (self.version.is_none() || callee.version == self.version)
            })
        });
        Ok(calls.then_some(UseKind::Calls))
    }
}

impl Evaluate for FindUses {
    type Answer = Uses;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(self.tenant, Kind::Definition);
        let page: Rows<Definition> =
            self.bounds.rows_that(rows, &prefix, |row: &Definition| row.deleted.is_none())?;
        let mut uses = Vec::new();
        for row in &page.rows {
            let kind = self.use_of(rows, row)?;
            uses.extend(kind.map(|kind| DefinitionUse { name: row.name.clone(), kind }));
        }
        Ok(Uses { uses, next: page.next })
    }
}

impl Ask for FindUses {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}
