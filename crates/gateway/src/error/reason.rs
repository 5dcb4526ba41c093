//! Reason codes and the gRPC code of each.

use tonic::Code;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal => $code:ident,)*) => {
        /// Why a call is refused: the stable part of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word that callers see in `ErrorInfo.reason`.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The gRPC code that goes with it.
            #[must_use]
            pub fn code(self) -> Code {
                match self { $(Self::$name => Code::$code,)* }
            }
        }
    };
}

reasons! {
    /// The definition has errors; each is a violation.
    DefinitionInvalid = "DEFINITION_INVALID" => InvalidArgument,
    /// Data that breaks its schema.
    SchemaViolation = "SCHEMA_VIOLATION" => InvalidArgument,
    /// The request id came before, with another request.
    RequestIdReused = "REQUEST_ID_REUSED" => InvalidArgument,
    /// Any other malformed request; each field is a violation.
    FieldInvalid = "FIELD_INVALID" => InvalidArgument,
    /// No credential, or one that is unknown, expired or revoked: one answer for all.
    CredentialInvalid = "CREDENTIAL_INVALID" => Unauthenticated,
    /// Not one of the checkpoint's answers; they are in the metadata `allowed`.
    AnswerNotAllowed = "ANSWER_NOT_ALLOWED" => FailedPrecondition,
    /// The process has no such transition from here.
    TransitionIllegal = "TRANSITION_ILLEGAL" => FailedPrecondition,
    /// The node may not write that.
    WriteNotDeclared = "WRITE_NOT_DECLARED" => FailedPrecondition,
    /// The transition exists, but its guard does not hold.
    GuardNotMet = "GUARD_NOT_MET" => FailedPrecondition,
    /// The result lacks what the node promises.
    OutputContractMissing = "OUTPUT_CONTRACT_MISSING" => FailedPrecondition,
    /// The session has ended.
    SessionTerminal = "SESSION_TERMINAL" => FailedPrecondition,
    /// A person is asked first.
    ApprovalPending = "APPROVAL_PENDING" => FailedPrecondition,
    /// It was decided or reported before; the first decision is in the metadata.
    AlreadyResolved = "ALREADY_RESOLVED" => FailedPrecondition,
    /// No retry is left.
    RetryExhausted = "RETRY_EXHAUSTED" => FailedPrecondition,
    /// The session cannot accept this call in its state.
    StateMismatch = "STATE_MISMATCH" => FailedPrecondition,
    /// No session starts with this version any more.
    VersionRetired = "VERSION_RETIRED" => FailedPrecondition,
    /// No session starts with any version of the definition.
    DefinitionArchived = "DEFINITION_ARCHIVED" => FailedPrecondition,
    /// Something still needs the definition or the version; each user is a violation.
    DefinitionInUse = "DEFINITION_IN_USE" => FailedPrecondition,
    /// There is no workflow to switch to, or to call.
    NoSuchWorkflow = "NO_SUCH_WORKFLOW" => FailedPrecondition,
    /// The server has no OpenID provider, with which people could sign in.
    SignInNotConfigured = "SIGN_IN_NOT_CONFIGURED" => FailedPrecondition,
    /// The server of the cluster still votes, so it cannot be removed.
    ServerVotes = "SERVER_VOTES" => FailedPrecondition,
    /// Without the server of the cluster, a group would not have enough voters.
    TooFewVoters = "TOO_FEW_VOTERS" => FailedPrecondition,
    /// The server of the cluster that is to be replaced answers.
    ServerNotLost = "SERVER_NOT_LOST" => FailedPrecondition,
    /// No server of the cluster, or not this one, can take over a group.
    ServerNotReady = "SERVER_NOT_READY" => FailedPrecondition,
    /// The server has no key ring, so it keeps no secret.
    KeyRingMissing = "KEY_RING_MISSING" => FailedPrecondition,
    /// A policy forbids it.
    PolicyDenied = "POLICY_DENIED" => PermissionDenied,
    /// The requester cannot decide.
    SelfApproval = "SELF_APPROVAL" => PermissionDenied,
    /// Not one of those who may decide.
    NotAnApprover = "NOT_AN_APPROVER" => PermissionDenied,
    /// The tenant takes this event from other sources alone; they are in the metadata `allowed`.
    EventSourceNotAllowed = "EVENT_SOURCE_NOT_ALLOWED" => PermissionDenied,
    /// The tenant is suspended. Reserved: no call returns it yet.
    TenantSuspended = "TENANT_SUSPENDED" => PermissionDenied,
    /// The key's role may not make this call, or not with a field that it has.
    RoleNotAllowed = "ROLE_NOT_ALLOWED" => PermissionDenied,
    /// It does not exist in this tenant.
    NotFound = "NOT_FOUND" => NotFound,
    /// A resource of this name or key exists already.
    AlreadyExists = "ALREADY_EXISTS" => AlreadyExists,
    /// A rate limit is reached.
    RateLimited = "RATE_LIMITED" => ResourceExhausted,
    /// Money or tokens are used up.
    BudgetExhausted = "BUDGET_EXHAUSTED" => ResourceExhausted,
    /// A named maximum is reached.
    QuotaExceeded = "QUOTA_EXCEEDED" => ResourceExhausted,
    /// The server's disk has too little space for this; nothing was changed.
    DiskLow = "DISK_LOW" => ResourceExhausted,
    /// The session has moved since the caller looked.
    SequenceConflict = "SEQUENCE_CONFLICT" => Aborted,
    /// The resource has changed since the caller looked.
    EtagMismatch = "ETAG_MISMATCH" => Aborted,
    /// The work was given to somebody else.
    LeaseLost = "LEASE_LOST" => Aborted,
    /// The request may have been executed or not: the shard lost its leader while the request was written, or the server to
    /// which it was passed on was lost.
    OutcomeUnknown = "OUTCOME_UNKNOWN" => Aborted,
    /// The shard is choosing a leader; nothing was changed.
    ShardElecting = "SHARD_ELECTING" => Unavailable,
    /// The leader of a group did not hand it over in time.
    LeaderNotMoved = "LEADER_NOT_MOVED" => Aborted,
    /// The server is stopping; nothing was changed.
    Draining = "DRAINING" => Unavailable,
    /// This server's replica of the shard has failed; nothing was changed.
    ShardStopped = "SHARD_STOPPED" => Unavailable,
    /// No server that has what the call needs can be reached; nothing was changed.
    ServerUnreachable = "SERVER_UNREACHABLE" => Unavailable,
    /// The bus does not answer.
    StreamBackendDown = "STREAM_BACKEND_DOWN" => Unavailable,
    /// The call's time ran out; it may have been done.
    DeadlineExceeded = "DEADLINE_EXCEEDED" => DeadlineExceeded,
    /// This server has no such method, or not this way of calling it.
    Unimplemented = "UNIMPLEMENTED" => Unimplemented,
    /// The server's own fault.
    InternalError = "INTERNAL_ERROR" => Internal,
}

impl Reason {
    /// Returns the reason with this word; `None` if this version does not know it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_error_info_wants() {
        for reason in Reason::ALL {
            let word = reason.word();
            assert!(word.len() <= 63, "{word} is too long");
            assert!(word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{word}");
            assert_eq!(Reason::from_word(word), Some(*reason));
        }
        assert_eq!(Reason::from_word("NO_SUCH_REASON"), None);
    }

    #[test]
    fn the_table_is_the_one_that_is_published() {
        let readme = include_str!("../../../../proto/README.md");
        let (_, after) = readme.split_once("## Errors").unwrap();
        let (table, _) = after.split_once("\n## ").unwrap();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
            .map(|line| line.split(" | ").collect())
            .filter(|cells: &Vec<&str>| cells[0] != "Reason")
            .collect();
        assert_eq!(rows.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            let row = rows.iter().find(|cells| cells[0] == reason.word());
            let row = row.unwrap_or_else(|| panic!("{} is not in proto/README.md", reason.word()));
            let [_, code, when, what_to_do] = row[..] else { panic!("{row:?}") };
            assert_eq!(code, code_word(reason.code()), "{row:?}");
            assert!(when.ends_with('.') && what_to_do.ends_with('.'), "{row:?}");
        }
    }

    /// The page that explains every code.
    const PAGE: &str = include_str!("../../../../docs/errors.md");

    /// The cells of the page's row of a code, which is the first cell, alone or with others.
    fn row(code: &str) -> Option<Vec<&'static str>> {
        let quoted = format!("`{code}`");
        let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        rows.map(|row| row.split(" | ").collect::<Vec<_>>()).find(|cells| cells[0].contains(&quoted))
    }

    #[test]
    fn the_page_of_errors_explains_every_reason() {
        for reason in Reason::ALL {
            let row = row(reason.word()).unwrap_or_else(|| panic!("{} is not in the page", reason.word()));
            let [_, code, cause, remedy] = row[..] else { panic!("{row:?}") };
            assert_eq!(code, code_word(reason.code()), "{row:?}");
            assert!(cause.ends_with('.') && remedy.ends_with('.'), "{row:?}");
        }
        for reason in switchward_state::Reason::ALL {
            assert!(PAGE.contains(&format!("`{}`", reason.code())), "{} is not in the page", reason.code());
        }
    }

    /// The sources of codes, each with the heading of the page's section that explains them.
    const SOURCES: [(&str, &str); 15] = [
        ("Results of replies", include_str!("../../../state/src/approval/notice.rs")),
        ("Inbound mail that is not a reply", include_str!("../../../mail/src/incoming.rs")),
        ("Inbound mail that is not a reply", include_str!("../../../mail/src/incoming/machine.rs")),
        ("Inbound mail that is not a reply", include_str!("../../../mail/src/imap/round.rs")),
        ("Inbound mail that is not a reply", include_str!("../mail/unrecorded.rs")),
        ("Inbound mail that is not a reply", include_str!("../../../switchward/src/mail_in/reader.rs")),
        ("Failed deliveries", include_str!("../../../machine/src/delivery_reason.rs")),
        ("Failed deliveries", include_str!("../../../state/src/delivery/mail_full.rs")),
        ("Failed deliveries", include_str!("../../../state/src/delivery/failure_code.rs")),
        ("Failed deliveries", include_str!("../../../state/src/delivery/disabled_reason.rs")),
        ("Failed states", include_str!("../../../machine/src/fault_code.rs")),
        ("Failed states", include_str!("../../../machine/src/end_reason.rs")),
        ("Sign-in to decision pages", include_str!("../../../delivery/src/openid/problem.rs")),
        ("Sign-in to decision pages", include_str!("../decision/sign_in.rs")),
        ("Incoming webhooks", include_str!("../../../webhook/src/unverified.rs")),
    ];

    /// The code that a line of a source gives to a variant (`Self::Noted => "noted",`), to the quarantine, or to a sign-in
    /// that failed. Sentences of people are none.
    fn code_of(line: &str) -> Option<&str> {
        let line = line.trim();
        let arm = line.strip_prefix("Self::").and_then(|arm| Some(arm.split_once(" => \"")?.1));
        let calls = ["unread(\"", "Refused(\"", "SERVICE_UNAVAILABLE, \""];
        let given = || calls.iter().find_map(|call| Some(line.split_once(*call)?.1));
        let (code, _) = arm.or_else(given)?.split_once('"')?;
        let is_code = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        (!code.is_empty() && code.chars().all(is_code)).then_some(code)
    }

    #[test]
    fn the_page_of_errors_explains_the_codes_of_every_other_source() {
        for (heading, source) in SOURCES {
            let (_, after) = PAGE.split_once(&format!("\n## {heading}\n")).unwrap();
            let section = after.split("\n## ").next().unwrap_or_default();
            let codes: Vec<&str> = source.lines().filter_map(code_of).collect();
            assert!(!codes.is_empty(), "a source of {heading:?} has no codes");
            for code in codes {
                assert!(section.contains(&format!("`{code}`")), "{code} is not explained under {heading:?}");
            }
        }
    }

    /// `FailedPrecondition` as `FAILED_PRECONDITION`.
    fn code_word(code: Code) -> String {
        let mut word = String::new();
        for c in format!("{code:?}").chars() {
            if c.is_ascii_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.push(c.to_ascii_uppercase());
        }
        word
    }
}
