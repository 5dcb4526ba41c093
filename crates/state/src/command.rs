//! Commands: requests to change something, each with its actor. Each aggregate has its own.

use minicbor::{Decode, Encode};
use switchward_machine::TenantId;

use crate::approval::ApprovalCommand;
use crate::catalogue::{CatalogueCommand, Settings};
use crate::delivery::DeliveryCommand;
use crate::policy::PolicyCommand;
use crate::run::RunCommand;
use crate::session::SessionCommand;
use crate::work::WorkCommand;
use crate::{Actor, AdmissionClass, RequestId, Scope};

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

    /// Returns true if the command is answered with where its session stands.
    #[must_use]
    pub fn shows_session(&self) -> bool {
        match self {
            Self::Session(command) => command.shows_session(),
            Self::Run(_) => true,
            Self::Approval(command) => matches!(command, ApprovalCommand::RecordReply(_)),
            Self::Policy(command) => matches!(command, PolicyCommand::RaiseCap(_)),
            Self::Work(_) | Self::Delivery(_) | Self::Catalogue(_) => false,
        }
    }

    /// Returns true if the command is answered with the gate that it is about. Decision pages show it themselves.
    #[must_use]
    pub fn shows_gate(&self) -> bool {
        match self {
            Self::Approval(command) => command.shows_gate(),
            Self::Session(_)
            | Self::Run(_)
            | Self::Work(_)
            | Self::Delivery(_)
            | Self::Policy(_)
            | Self::Catalogue(_) => false,
        }
    }

    /// Returns true if the command decides something about a gate, so that it counts whom the tenant's record names now.
    #[must_use]
    pub fn decides_gate(&self) -> bool {
        matches!(
            self,
            Self::Approval(
                ApprovalCommand::DecideGate(_)
                    | ApprovalCommand::AnswerGate(_)
                    | ApprovalCommand::RecordReply(_)
                    | ApprovalCommand::AssignGate { .. }
            )
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
