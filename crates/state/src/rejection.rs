//! Rejections: refusals of the caller's request, typed, with a stable reason.

use minicbor::{CborLen, Decode, Encode};

use crate::policy::Shortage;

/// A refusal. Nothing was changed and nothing was written. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Rejection {
    /// The stable code.
    #[n(0)]
    pub reason: Reason,
    /// A sentence for developers, beside the rule that refuses; the API and the command line show it as it is. On pages
    /// people read what `messages` makes of the reason and facts.
    #[n(1)]
    pub message: String,
    /// What would have been allowed, if that is a closed list.
    #[n(2)]
    pub allowed: Vec<String>,
    /// Facts for a program: name and value, in the order in which they are shown.
    #[n(3)]
    pub facts: Vec<(String, String)>,
    /// When it may be worth trying again, milliseconds from now.
    #[n(4)]
    pub retry_after_ms: Option<u64>,
    /// What has no capacity, if the refusal is of an approval of a call and may be given later.
    #[n(5)]
    pub shortage: Option<Box<Shortage>>,
}

/// The version of a rejection's form; its first byte.
const FORM: u8 = 1;

impl Rejection {
    /// The form that is sent between servers: a form byte, then fields by number.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::wire::framed(FORM, self)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Another form, a reason that this server does not know, or broken bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, crate::FormError> {
        crate::wire::unframed(FORM, bytes, "rejection").map_err(crate::FormError)
    }
}

impl Rejection {
    /// A refusal for this reason.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            allowed: Vec::new(),
            facts: Vec::new(),
            retry_after_ms: None,
            shortage: None,
        }
    }

    /// With what has no capacity.
    #[must_use]
    pub fn shortage(mut self, shortage: Shortage) -> Self {
        self.shortage = Some(Box::new(shortage));
        self
    }

    /// With what would have been allowed.
    #[must_use]
    pub fn allowed<'a>(mut self, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        self.allowed = allowed.into_iter().map(str::to_owned).collect();
        self
    }

    /// With a fact for a program.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.facts.push((name.into(), value.to_string()));
        self
    }

    /// The fact of this name; `None` if there is none.
    #[must_use]
    pub fn fact_named(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// With the time after which it may be worth trying again.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: Option<u64>) -> Self {
        self.retry_after_ms = ms;
        self
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// The stable reason codes of the engine.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code, as every protocol shows it.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

impl<C> Encode<C> for Reason {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(self.code())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Reason {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let code = d.str()?;
        let known = Self::ALL.iter().find(|reason| reason.code() == code);
        known.copied().ok_or_else(|| minicbor::decode::Error::message(format!("{code:?} is not a reason")))
    }
}

impl<C> CborLen<C> for Reason {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.code().cbor_len(ctx)
    }
}

reasons! {
    /// A field of the request is malformed.
    FieldInvalid = "FIELD_INVALID",
    /// The credential is not valid here.
    CredentialInvalid = "CREDENTIAL_INVALID",
    /// Data that breaks its schema.
    SchemaViolation = "SCHEMA_VIOLATION",
    /// The definition is wrong.
    DefinitionInvalid = "DEFINITION_INVALID",
    /// The request id came before, with another body.
    RequestIdReused = "REQUEST_ID_REUSED",
    /// Not one of the checkpoint's answers.
    AnswerNotAllowed = "ANSWER_NOT_ALLOWED",
    /// There is no such exit from here.
    TransitionIllegal = "TRANSITION_ILLEGAL",
    /// The node may not write that.
    WriteNotDeclared = "WRITE_NOT_DECLARED",
    /// There is such an exit, but its guard does not hold.
    GuardNotMet = "GUARD_NOT_MET",
    /// The session is at its end.
    SessionTerminal = "SESSION_TERMINAL",
    /// A person is asked first.
    ApprovalPending = "APPROVAL_PENDING",
    /// The gate was decided or closed before.
    AlreadyResolved = "ALREADY_RESOLVED",
    /// Nothing here takes this command now.
    StateMismatch = "STATE_MISMATCH",
    /// There is no workflow to switch to, or to call.
    NoSuchWorkflow = "NO_SUCH_WORKFLOW",
    /// No retry is left.
    RetryExhausted = "RETRY_EXHAUSTED",
    /// The policy forbids it.
    PolicyDenied = "POLICY_DENIED",
    /// Who asked cannot decide.
    SelfApproval = "SELF_APPROVAL",
    /// Not one of those who may decide.
    NotAnApprover = "NOT_AN_APPROVER",
    /// The tenant takes this event from other sources alone.
    EventSourceNotAllowed = "EVENT_SOURCE_NOT_ALLOWED",
    /// The key's role may not say that.
    RoleNotAllowed = "ROLE_NOT_ALLOWED",
    /// No session starts with this version any more.
    VersionRetired = "VERSION_RETIRED",
    /// No session starts with any version of this definition.
    DefinitionArchived = "DEFINITION_ARCHIVED",
    /// Something still needs the definition or the version.
    DefinitionInUse = "DEFINITION_IN_USE",
    /// A rate limit is full.
    RateLimited = "RATE_LIMITED",
    /// Money or tokens are used up.
    BudgetExhausted = "BUDGET_EXHAUSTED",
    /// A maximum of ours, or a number of mails, is reached.
    QuotaExceeded = "QUOTA_EXCEEDED",
    /// The work is another's by now, or nobody's any more.
    LeaseLost = "LEASE_LOST",
    /// The session has moved since the caller looked.
    SequenceConflict = "SEQUENCE_CONFLICT",
    /// It has changed since the caller looked.
    EtagMismatch = "ETAG_MISMATCH",
    /// It does not exist in this tenant.
    NotFound = "NOT_FOUND",
    /// A resource of this name or key exists already.
    AlreadyExists = "ALREADY_EXISTS",
    /// The shard has not got the machine yet. Never leaves the server.
    MachineMissing = "MACHINE_MISSING",
    /// The ledger must be asked, or asked again. Never leaves the server.
    LimitsStale = "LIMITS_STALE",
}
