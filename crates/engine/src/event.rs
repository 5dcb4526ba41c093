//! Events: facts. A decision carries them, and nothing else changes state.

mod facts;
mod flow;
mod removals;

use crate::policy::{LayerVerdict, LedgerRule};
use crate::{ApiKey, Attached, Call, Deferral as Due, Effect, Gate, Grant, MatchedRule, Settings, Via};
pub use facts::{AssistantFact, EndpointFact, PolicyFact, Speaker, VersionFact, WebhookSourceFact, Writer};
pub use flow::{Flow, PageCodeFact, PageCodeStep, PendingFact, ReplyFact, SenderProof, Standing, VoteFact};
use minicbor::{CborLen, Decode, Encode};
pub use removals::{RemovalFact, TenantFact};
use switchward_machine::{
    ActIx, BudgetUnit, Digest, Ending, ExitIx, Machine, Micros, NodeIx, OpenId, ParamIx, RunId, Time,
};

/// A fact. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Event {
    /// A session exists from now on.
    #[n(0)]
    SessionStarted {
        /// The definition.
        #[n(0)]
        definition: String,
        /// Its version.
        #[n(1)]
        version: u32,
        /// Its machine.
        #[n(2)]
        machine: Digest,
        /// The caller's own key.
        #[n(3)]
        key: Option<String>,
        /// The role.
        #[n(4)]
        role: String,
        /// Whether it runs without its policy.
        #[n(5)]
        without_policy: bool,
        /// Labels.
        #[n(6)]
        labels: Vec<(String, String)>,
        /// JSON, or empty.
        #[cbor(n(7), with = "minicbor::bytes")]
        input: Vec<u8>,
        /// The address of the person that the conversation is with.
        #[cbor(n(8), default)]
        contact: Option<String>,
        /// The workflows that it may switch between, if there are several.
        #[cbor(n(9), default)]
        workflows: Vec<Attached>,
        /// Whether everybody whom data or the start names may be asked to approve, whatever the tenant's setting.
        #[cbor(n(10), default)]
        any_approver_address: bool,
    },
    /// A run exists from now on.
    #[n(1)]
    RunCreated {
        /// The run.
        #[n(0)]
        run: RunId,
        /// Its machine.
        #[n(1)]
        machine: Digest,
        /// The definition and its version, if they are not the session's.
        #[n(2)]
        of: Option<(String, u32)>,
        /// Whether it waits for the runs before it.
        #[cbor(n(3), default)]
        queued: bool,
    },
    /// A node is entered.
    #[n(2)]
    Entered {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The node.
        #[n(1)]
        node: NodeIx,
    },
    /// A part of a node's body begins.
    #[n(3)]
    ActBegun {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The part.
        #[n(1)]
        act: ActIx,
    },
    /// A checkpoint was answered.
    #[n(4)]
    Answered {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The checkpoint.
        #[n(1)]
        node: NodeIx,
        /// The answer.
        #[n(2)]
        answer: String,
        /// The agent's own words.
        #[n(3)]
        note: String,
    },
    /// A node is left.
    #[n(5)]
    Left {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The node.
        #[n(1)]
        node: NodeIx,
        /// The exit.
        #[n(2)]
        exit: ExitIx,
    },
    /// A run is at its end.
    #[n(6)]
    RunEnded {
        /// The run.
        #[n(0)]
        run: RunId,
        /// How.
        #[n(1)]
        ending: Ending,
        /// Somebody's words about it.
        #[n(2)]
        comment: String,
    },
    /// Something that should be looked at.
    #[n(7)]
    Warned {
        /// What.
        #[n(0)]
        text: String,
        /// Whether it is about the definition and not about this session.
        #[n(1)]
        of_definition: bool,
    },
    /// A person owes a decision.
    #[n(8)]
    GateOpened {
        /// Its number.
        #[n(0)]
        gate: OpenId,
        /// The run.
        #[n(1)]
        run: RunId,
        /// What it is about.
        #[n(2)]
        body: Box<Gate>,
    },
    /// A person decided.
    #[n(9)]
    GateClosed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// What.
        #[n(1)]
        decision: switchward_machine::Decision,
        /// Who.
        #[n(2)]
        by: String,
        /// Why.
        #[n(3)]
        comment: String,
        /// Which way it came.
        #[cbor(n(4), default)]
        via: Via,
    },
    /// What was open is closed: its node was left.
    #[n(10)]
    Voided {
        /// Gates.
        #[n(0)]
        gates: Vec<OpenId>,
        /// Grants.
        #[n(1)]
        grants: Vec<u64>,
        /// Work, waits and timers.
        #[cbor(n(2), default)]
        items: Vec<OpenId>,
        /// The run that they belong to.
        #[cbor(n(3), default)]
        run: Option<RunId>,
    },
    /// Something was settled while the session was paused.
    #[n(11)]
    Deferred {
        /// The run.
        #[n(0)]
        run: RunId,
        /// What happens on resuming.
        #[n(1)]
        due: Due,
    },
    /// A call is permitted.
    #[n(12)]
    CallPermitted {
        /// Its number; `None` if the state does not remember it.
        #[n(0)]
        number: Option<u64>,
        /// The call.
        #[n(1)]
        call: Call,
        /// The digest of its arguments.
        #[n(2)]
        digest: Digest,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// Whether it counts as a mail.
        #[n(4)]
        mail: bool,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerVerdict>,
    },
    /// A call is denied.
    #[n(13)]
    CallDenied {
        /// What would have been called.
        #[n(0)]
        capability: String,
        /// The digest of its arguments.
        #[n(1)]
        digest: Digest,
        /// The upper-case code.
        #[n(2)]
        reason: String,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// The call's name.
        #[n(4)]
        call_id: String,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerVerdict>,
    },
    /// A person is asked about a call.
    #[n(14)]
    CallAsked {
        /// What would be called.
        #[n(0)]
        capability: String,
        /// The digest of its arguments.
        #[n(1)]
        digest: Digest,
        /// The gate.
        #[n(2)]
        gate: OpenId,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// The call's name.
        #[n(4)]
        call_id: String,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerVerdict>,
    },
    /// A call may be made once.
    #[n(15)]
    GrantMade {
        /// Its number.
        #[n(0)]
        number: u64,
        /// What it grants.
        #[n(1)]
        grant: Grant,
    },
    /// A grant was used.
    #[n(16)]
    GrantUsed {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// A call was made.
    #[n(17)]
    CallReported {
        /// Its number, if the state remembered it.
        #[n(0)]
        number: Option<u64>,
        /// What was called.
        #[n(1)]
        capability: String,
        /// Whether it worked.
        #[n(2)]
        success: bool,
    },
    /// Something was used.
    #[n(18)]
    Metered {
        /// Money.
        #[n(0)]
        cost: Micros,
        /// Tokens.
        #[n(1)]
        tokens: u64,
    },
    /// A cap is reached.
    #[n(19)]
    BudgetExhausted {
        /// Of what.
        #[n(0)]
        unit: BudgetUnit,
        /// The cap, in the unit.
        #[n(1)]
        cap: u64,
    },
    /// A cap is another one from now on.
    #[n(20)]
    CapRaised {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The parameter.
        #[n(1)]
        param: ParamIx,
        /// Its value.
        #[n(2)]
        value: u64,
    },
    /// The session stops in place.
    #[n(21)]
    Paused {
        /// Somebody's words about it.
        #[n(0)]
        comment: String,
    },
    /// The session goes on.
    #[n(22)]
    Unpaused {
        /// Somebody's words about it.
        #[n(0)]
        comment: String,
    },
    /// Something is needed from the outside.
    #[n(23)]
    EffectQueued {
        /// What.
        #[n(0)]
        effect: Effect,
    },
    /// An effect has arrived.
    #[n(24)]
    EffectAcked {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// Remembered replies are forgotten.
    #[n(25)]
    RequestsForgotten,
    /// An approved call was not made in time.
    #[n(26)]
    GrantLapsed {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// A permitted call was not reported in time.
    #[n(27)]
    CallLapsed {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// A ledger holds a call.
    #[n(28)]
    LedgerReserved {
        /// The call.
        #[n(0)]
        call: Digest,
        /// The rules.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// Money held.
        #[n(2)]
        estimate: Micros,
    },
    /// A ledger counts a call.
    #[n(29)]
    LedgerConfirmed {
        /// The call.
        #[n(0)]
        call: Digest,
        /// The rules.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// Money held until the report.
        #[n(2)]
        estimate: Micros,
        /// The time at which it counts.
        #[n(3)]
        at: Time,
    },
    /// A ledger releases a call.
    #[n(30)]
    LedgerSettled {
        /// The call.
        #[n(0)]
        call: Option<Digest>,
        /// The rules.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// What it cost.
        #[n(2)]
        cost: Micros,
        /// When it was reported.
        #[n(3)]
        at: Time,
    },
    /// Reservations that nobody confirmed, or old replies, are given up.
    #[n(31)]
    Swept(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// A shard knows a machine.
    #[n(32)]
    MachineInstalled {
        /// The machine.
        #[cbor(n(0), with = "crate::state::machine_bytes")]
        machine: std::sync::Arc<Machine>,
    },
    /// A tenant exists from now on.
    #[n(33)]
    TenantCreated(#[n(0)] crate::Tenant),
    /// A tenant of this name has other switches, all of which these are.
    #[n(34)]
    TenantChanged(#[n(0)] String, #[n(1)] Settings),
    /// A key exists from now on.
    #[n(35)]
    KeyCreated(#[n(0)] ApiKey),
    /// The key of this public id is void.
    #[n(36)]
    KeyRevoked(#[n(0)] String),
    /// A version exists from now on.
    #[n(37)]
    VersionDeployed {
        /// The definition.
        #[n(0)]
        name: String,
        /// Its format.
        #[n(1)]
        format: String,
        /// The version.
        #[n(2)]
        version: crate::Version,
        /// Its machine.
        #[cbor(n(3), with = "crate::state::machine_bytes")]
        machine: std::sync::Arc<Machine>,
    },
    /// New sessions use another version from now on, or never one.
    #[n(100)]
    Versions(#[n(0)] VersionFact),
    /// A person said something at a gate, and it stays open.
    #[n(39)]
    GateDiscussed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who.
        #[n(1)]
        by: String,
        /// What.
        #[n(2)]
        comment: String,
    },
    /// Something moved inside a run, or in the row of runs.
    #[n(40)]
    Flow(#[n(0)] Flow),
    /// An assistant is another one from now on.
    #[n(50)]
    Assistants(#[n(0)] AssistantFact),
    /// A source of webhooks is another one from now on.
    #[n(60)]
    WebhookSources(#[n(0)] WebhookSourceFact),
    /// What every shard must know of a tenant is this from now on: in the catalogue, or in one shard.
    #[n(70)]
    TenancyPut(#[n(0)] crate::Tenancy),
    /// An endpoint's health was noted, or a message about the tenant itself was queued, put off or removed.
    #[n(80)]
    Endpoints(#[n(0)] EndpointFact),
    /// Other policy documents hold for a definition, or for a session.
    #[n(130)]
    Policies(#[n(0)] PolicyFact),
    /// Something about the removal of a session's data.
    #[n(160)]
    Removals(#[n(0)] RemovalFact),
    /// Something about a tenant as a whole.
    #[n(170)]
    Tenants(#[n(0)] TenantFact),
}
