//! Commands: requests to change something, each with its actor. Each aggregate has its own.

use switchward_machine::TenantId;

use crate::approval::ApprovalCommand;
use crate::catalogue::{CatalogueCommand, Settings};
use crate::delivery::DeliveryCommand;
use crate::policy::PolicyCommand;
use crate::run::RunCommand;
use crate::session::SessionCommand;
use crate::work::WorkCommand;
use crate::{Actor, AdmissionClass, RequestId, Scope};

/// A request, and everything that is known of its actor.
#[derive(Debug, Clone)]
pub struct Command {
    /// From the credential, never from the request's body.
    pub tenant: TenantId,
    /// What it is about.
    pub scope: Scope,
    /// Makes a repetition find the first reply.
    pub request: Option<RequestId>,
    /// The sequence that the caller saw last; another one is refused with SEQUENCE_CONFLICT.
    pub expected_sequence: Option<u64>,
    /// Who requests it.
    pub actor: Actor,
    /// The tenant's switches as they are now.
    pub settings: Settings,
    /// The trace that it belongs to (`traceparent`), kept with what it causes.
    pub trace: Option<String>,
    /// The request.
    pub body: Body,
}

/// The requests.
#[derive(Debug, Clone)]
pub enum Body {
    /// About a session.
    Session(SessionCommand),
    /// About a run.
    Run(RunCommand),
    /// About gates.
    Approval(ApprovalCommand),
    /// About work.
    Work(WorkCommand),
    /// About what goes out.
    Delivery(DeliveryCommand),
    /// About calls, what they use, ledgers and policy documents.
    Policy(PolicyCommand),
    /// About the catalogue.
    Catalogue(CatalogueCommand),
}

impl Body {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::Session(command) => command.admission(),
            Self::Run(command) => command.admission(),
            Self::Approval(command) => command.admission(),
            Self::Work(command) => command.admission(),
            Self::Delivery(command) => command.admission(),
            Self::Policy(command) => command.admission(),
            Self::Catalogue(command) => command.admission(),
        }
    }

    /// Returns true if the command makes the stored data grow. Commands that end something are written even on a full disk:
    /// decisions, acknowledgements, work given back, rights taken away, and what those need from other shards.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::Session(command) => command.grows(),
            Self::Run(command) => command.grows(),
            Self::Approval(command) => command.grows(),
            Self::Work(command) => command.grows(),
            Self::Delivery(command) => command.grows(),
            Self::Policy(command) => command.grows(),
            Self::Catalogue(command) => command.grows(),
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

    /// Returns true if the command is refused while its tenant is at its quota of bytes: a caller's step, or data brought
    /// in from outside. Commands that end something are admitted, so that the tenant can free space: decisions, replies,
    /// results of work that a worker holds, cancels and removals.
    #[must_use]
    pub fn fills(&self) -> bool {
        self.admission() == AdmissionClass::Begins
            || matches!(
                self,
                Self::Run(RunCommand::RecordEvent(_)) | Self::Policy(PolicyCommand::ReportUsage(_))
            )
    }

    /// Returns true if limits in a ledger may have to be asked before the command is decided.
    #[must_use]
    pub fn may_need_ledger(&self) -> bool {
        matches!(
            self,
            Self::Policy(PolicyCommand::Authorize(_))
                | Self::Approval(ApprovalCommand::DecideGate(_) | ApprovalCommand::RecordReply(_))
        )
    }
}

impl Body {
    /// The tenant of which the command changes what every shard must know, if it does; `own` is the command's tenant.
    #[must_use]
    pub fn changes_tenancy(&self, own: TenantId) -> Option<TenantId> {
        let changes = match self {
            Self::Catalogue(CatalogueCommand::DeleteTenant(delete)) => return Some(delete.tenant),
            Self::Catalogue(command) => command.changes_tenancy(),
            Self::Delivery(command) => {
                matches!(command, DeliveryCommand::Endpoint(_) | DeliveryCommand::HoldEffects(_))
            }
            Self::Policy(command) => {
                matches!(command, PolicyCommand::SetTenantPolicy(_) | PolicyCommand::RemoveTenantPolicy(_))
            }
            Self::Session(_) | Self::Run(_) | Self::Approval(_) | Self::Work(_) => false,
        };
        changes.then_some(own)
    }
}
