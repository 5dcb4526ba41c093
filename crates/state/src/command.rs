//! Commands: requests to change something, each with its actor. Each aggregate has its own.

use minicbor::{Decode, Encode};
use switchward_machine::TenantId;

use crate::approval::ApprovalCommand;
use crate::catalogue::{CatalogueCommand, Settings};
use crate::delivery::DeliveryCommand;
use crate::policy::{LimitCheck, PolicyCommand};
use crate::run::{RunAddress, RunCommand};
use crate::session::SessionCommand;
use crate::work::WorkCommand;
use crate::{Actor, AdmissionClass, ChangedTenant, CommandTraits, RequestId, Scope, Shown, ViewError};

/// A request, and everything that is known of its actor. Stored form.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Command {
    /// From the credential, never from the request's body.
    #[n(0)]
    pub tenant: TenantId,
    /// What it is about.
    #[n(1)]
    pub scope: Scope,
    /// Makes a repetition find the first reply.
    #[n(2)]
    pub request: Option<RequestId>,
    /// The sequence that the caller saw last; another one is refused with SEQUENCE_CONFLICT.
    #[n(3)]
    pub expected_sequence: Option<u64>,
    /// Who requests it.
    #[n(4)]
    pub actor: Actor,
    /// The tenant's switches as they are now.
    #[n(5)]
    pub settings: Settings,
    /// The trace that it belongs to (`traceparent`), kept with what it causes.
    #[n(6)]
    pub trace: Option<String>,
    /// The request.
    #[n(7)]
    pub body: Body,
    /// The run that it is about; `None`: the only active run that waits for no other.
    #[n(8)]
    pub address: Option<RunAddress>,
}

/// The version of a command's form; its first byte.
const FORM: u8 = 1;

impl Command {
    /// The form that is sent between servers: a form byte, then fields by number.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::wire::framed(FORM, self)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Another form, or bytes that are no command.
    pub fn decode(bytes: &[u8]) -> Result<Self, crate::FormError> {
        crate::wire::unframed(FORM, bytes, "command").map_err(crate::FormError)
    }

    /// Checks that the command's kind may have its scope. Scopes are made by servers, so another one is a server's mistake.
    ///
    /// # Errors
    /// It may not.
    pub fn check_scope(&self) -> Result<(), ViewError> {
        let kind = self.body.traits().scope;
        if kind.takes(&self.scope) {
            return Ok(());
        }
        Err(ViewError(format!("a command whose scope is {kind:?} has the scope {:?}", self.scope)))
    }
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum Body {
    /// About a session.
    #[n(0)]
    Session(#[n(0)] SessionCommand),
    /// About a run.
    #[n(1)]
    Run(#[n(0)] RunCommand),
    /// About gates.
    #[n(2)]
    Approval(#[n(0)] ApprovalCommand),
    /// About work.
    #[n(3)]
    Work(#[n(0)] WorkCommand),
    /// About what goes out.
    #[n(4)]
    Delivery(#[n(0)] DeliveryCommand),
    /// About calls, what they use, ledgers and policy documents.
    #[n(5)]
    Policy(#[n(0)] PolicyCommand),
    /// About the catalogue.
    #[n(6)]
    Catalogue(#[n(0)] CatalogueCommand),
}

impl Body {
    /// What the kind of the command says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        match self {
            Self::Session(command) => command.traits(),
            Self::Run(command) => command.traits(),
            Self::Approval(command) => command.traits(),
            Self::Work(command) => command.traits(),
            Self::Delivery(command) => command.traits(),
            Self::Policy(command) => command.traits(),
            Self::Catalogue(command) => command.traits(),
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Session(command) => command.carried(),
            Self::Run(command) => command.carried(),
            Self::Approval(command) => command.carried(),
            Self::Work(command) => command.carried(),
            Self::Delivery(command) => command.carried(),
            Self::Policy(command) => command.carried(),
            Self::Catalogue(command) => command.carried(),
        }
    }

    /// Where the ledger's answer goes; `None` for kinds that need none.
    pub fn limits_mut(&mut self) -> Option<&mut Option<LimitCheck>> {
        match self {
            Self::Approval(command) => command.limits_mut(),
            Self::Policy(command) => command.limits_mut(),
            Self::Session(_) | Self::Run(_) | Self::Work(_) | Self::Delivery(_) | Self::Catalogue(_) => None,
        }
    }

    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        self.traits().admission
    }

    /// Returns true if the command makes the stored data grow. Commands that end something are written even on a full disk:
    /// decisions, acknowledgements, work given back, rights taken away, and what those need from other shards.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.traits().grows
    }

    /// Returns true if the command is refused while its tenant is at its quota of bytes: a caller's step, or data brought
    /// in from outside. Commands that end something are admitted, so that the tenant can free space: decisions, replies,
    /// results of work that a worker holds, cancels and removals.
    #[must_use]
    pub fn fills(&self) -> bool {
        self.traits().fills
    }

    /// Returns true if the command is answered with where its session stands.
    #[must_use]
    pub fn shows_session(&self) -> bool {
        self.traits().shows == Shown::Session
    }

    /// Returns true if the command is answered with the gate that it is about. Decision pages show it themselves.
    #[must_use]
    pub fn shows_gate(&self) -> bool {
        self.traits().shows == Shown::Gate
    }

    /// Returns true if the command decides something about a gate, so that it counts whom the tenant's record names now.
    #[must_use]
    pub fn decides_gate(&self) -> bool {
        self.traits().decides_gate
    }

    /// Returns true if limits in a ledger may have to be asked before the command is decided.
    #[must_use]
    pub fn may_need_ledger(&self) -> bool {
        self.traits().may_need_ledger
    }

    /// The tenant of which the command changes what every shard must know, if it does; `own` is the command's tenant.
    #[must_use]
    pub fn changes_tenancy(&self, own: TenantId) -> Option<TenantId> {
        self.traits().changes_tenancy.map(|of| match of {
            ChangedTenant::Own => own,
            ChangedTenant::Named(tenant) => tenant,
        })
    }
}
