//! Replies: what an accepted command is answered with, and what a repetition of it is answered with again.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, SessionId, Time};

use crate::approval::{GateSummary, ReplyOutcome};
use crate::catalogue::{
    AssistantSummary, ClusterChange, Definition, Directory, Finding, KeySummary, Tenant, VersionSummary,
};
use crate::delivery::{EffectSummary, EndpointSummary, SourceSummary};
use crate::policy::{Authorized, TenantPolicy};
use crate::run::ResultProblem;
use crate::session::{Meters, Position, Retention};
use crate::{Level, Loaded};

/// The answer to an accepted command. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum Reply {
    /// The session of the command was moved, or stays in its state; its view says the rest.
    #[n(0)]
    Session {
        /// Its sequence after the command.
        #[n(0)]
        sequence: u64,
        /// Where it stands, if its caller is shown that.
        #[n(1)]
        position: Option<Box<Position>>,
    },
    /// What the policy says of a call.
    #[n(1)]
    Authorized(#[n(0)] Box<Authorized>),
    /// A gate was decided.
    #[n(2)]
    Gate {
        /// The number of the gate in its session.
        #[n(0)]
        gate: OpenId,
        /// The session's sequence after the command.
        #[n(1)]
        sequence: u64,
        /// The gate after the command, if its caller is shown it.
        #[n(2)]
        summary: Option<Box<GateSummary>>,
    },
    /// A code of a decision page was looked at.
    #[n(170)]
    PageCode {
        /// The number of the gate that the page decides.
        #[n(0)]
        gate: OpenId,
        /// Whether it was the right one.
        #[n(1)]
        accepted: bool,
        /// How often something may still be entered before another code is needed.
        #[n(2)]
        left: u32,
    },
    /// A ledger holds the call, or does not.
    #[n(3)]
    Limits(#[n(0)] crate::policy::LimitCheck),
    /// Done, and nothing more to say.
    #[n(4)]
    Done,
    /// A tenant was made or changed.
    #[n(5)]
    Tenant(#[n(0)] Box<Tenant>),
    /// A key was made or revoked.
    #[n(6)]
    Key(#[n(0)] Box<KeySummary>),
    /// A version was made, found or retired.
    #[n(7)]
    Version {
        /// The definition.
        #[n(0)]
        name: String,
        /// Its version.
        #[n(1)]
        number: u32,
        /// Whether the command made it.
        #[n(2)]
        created: bool,
        /// The version after the command.
        #[n(3)]
        summary: Box<VersionSummary>,
        /// What its author was informed of when it was deployed.
        #[cbor(n(4), default, skip_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    /// A worker has work.
    #[n(8)]
    Leased {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// The number that its result must come with.
        #[n(1)]
        fence: u64,
        /// Until when.
        #[n(2)]
        until: Time,
        /// The work's rows, if they are attached.
        #[cbor(skip)]
        loaded: Loaded,
    },
    /// A worker's result was looked at.
    #[n(9)]
    Worked {
        /// The id of the session that the work is of.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// Why the result was not taken, if it was not: the attempt has failed then.
        #[n(2)]
        wrong: Option<ResultProblem>,
    },
    /// An event from outside was recorded.
    #[n(11)]
    Recorded {
        /// The id of the session that it was recorded in.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// The number of the event in its history.
        #[n(2)]
        event: u64,
        /// Where it stands, if its caller is shown that.
        #[n(3)]
        position: Option<Box<Position>>,
    },
    /// A reply by mail was recorded.
    #[n(10)]
    Replied {
        /// The id of the session that it was recorded in.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// What became of it.
        #[n(2)]
        outcome: ReplyOutcome,
        /// Where it stands, if its caller is shown that.
        #[n(3)]
        position: Option<Box<Position>>,
    },
    /// A definition has another active version or other policies.
    #[n(12)]
    Definition(#[n(0)] Box<Definition>),
    /// A policy is set for the tenant.
    #[n(13)]
    Policy(#[n(0)] Box<TenantPolicy>),
    /// An assistant was put.
    #[n(14)]
    Assistant(#[n(0)] AssistantSummary),
    /// An endpoint was put, or has another secret.
    #[n(15)]
    Endpoint(#[n(0)] Box<EndpointSummary>),
    /// A webhook source was created or changed.
    #[n(16)]
    Source(#[n(0)] Box<SourceSummary>),
    /// An effect has failed, or is sent again.
    #[n(17)]
    Effect {
        /// The id of the session that the effect is of.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// The effect after the command; `None` if nothing of it is left to send.
        #[n(2)]
        effect: Option<Box<EffectSummary>>,
    },
    /// What was used is counted.
    #[n(18)]
    Metered {
        /// The id of the session that has used it.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// What the session has used.
        #[n(2)]
        meters: Meters,
        /// The least cap on its money, millionths of a dollar.
        #[n(3)]
        usd_cap: Option<u64>,
        /// The least cap on its mails.
        #[n(4)]
        mail_cap: Option<u64>,
    },
    /// The data of a session is being removed.
    #[n(19)]
    Removed {
        /// Since when.
        #[n(0)]
        at: Time,
    },
    /// A server of the cluster as it is now, and the map.
    #[n(20)]
    Cluster(#[n(0)] Box<ClusterChange>),
    /// The feature level of the cluster.
    #[n(21)]
    Level {
        /// The level in force.
        #[n(0)]
        level: Level,
        /// The epoch of the map that has it.
        #[n(1)]
        epoch: u64,
    },
    /// The tenant's directory as it is stored now.
    #[n(22)]
    Directory(#[n(0)] Box<Directory>),
    /// The tenant's retention rules as they are stored now.
    #[n(23)]
    Retention(#[n(0)] Retention),
}

/// The version of a reply's form; its first byte.
const FORM: u8 = 1;

impl Reply {
    /// The form that is sent between servers: a form byte, then fields by number.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::wire::framed(FORM, self)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Another form, or bytes that are no reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, crate::FormError> {
        crate::wire::unframed(FORM, bytes, "reply").map_err(crate::FormError)
    }

    /// Takes away the rows that are attached to it.
    pub fn take_loaded(&mut self) -> Loaded {
        self.loaded().map(std::mem::take).unwrap_or_default()
    }

    /// Attaches rows; does nothing for replies that need none.
    pub fn load(&mut self, rows: Loaded) {
        if let Some(loaded) = self.loaded() {
            *loaded = rows;
        }
    }

    fn loaded(&mut self) -> Option<&mut Loaded> {
        if let Self::Leased { loaded, .. } = self {
            return Some(loaded);
        }
        self.position_mut().map(|position| &mut position.loaded)
    }

    /// Where the session stands, for replies that show it.
    pub fn position_mut(&mut self) -> Option<&mut Position> {
        self.shown()?.as_deref_mut()
    }

    /// Where the session stands, given away.
    #[must_use]
    pub fn into_position(mut self) -> Option<Position> {
        self.shown()?.take().map(|position| *position)
    }

    /// Says where the session stands; does nothing for replies that do not show it.
    pub fn stands_at(&mut self, position: Option<Position>) {
        if let Some(shown) = self.shown() {
            *shown = position.map(Box::new);
        }
    }

    fn shown(&mut self) -> Option<&mut Option<Box<Position>>> {
        match self {
            Self::Session { position, .. }
            | Self::Recorded { position, .. }
            | Self::Replied { position, .. } => Some(position),
            Self::Gate { .. }
            | Self::Worked { .. }
            | Self::Authorized(..)
            | Self::PageCode { .. }
            | Self::Limits(..)
            | Self::Done
            | Self::Tenant(..)
            | Self::Key(..)
            | Self::Version { .. }
            | Self::Definition(..)
            | Self::Policy(..)
            | Self::Assistant(..)
            | Self::Endpoint(..)
            | Self::Source(..)
            | Self::Effect { .. }
            | Self::Metered { .. }
            | Self::Removed { .. }
            | Self::Cluster(..)
            | Self::Level { .. }
            | Self::Directory(..)
            | Self::Retention(..)
            | Self::Leased { .. } => None,
        }
    }

    /// Says the sequence that the session has come to; does nothing for replies that carry none.
    pub fn moved_to(&mut self, now: u64) {
        match self {
            Self::Session { sequence, .. }
            | Self::Gate { sequence, .. }
            | Self::Worked { sequence, .. }
            | Self::Recorded { sequence, .. }
            | Self::Replied { sequence, .. }
            | Self::Effect { sequence, .. }
            | Self::Metered { sequence, .. } => *sequence = now,
            Self::Authorized(said) => said.sequence = now,
            Self::PageCode { .. }
            | Self::Limits(..)
            | Self::Done
            | Self::Tenant(..)
            | Self::Key(..)
            | Self::Version { .. }
            | Self::Definition(..)
            | Self::Policy(..)
            | Self::Assistant(..)
            | Self::Endpoint(..)
            | Self::Source(..)
            | Self::Removed { .. }
            | Self::Cluster(..)
            | Self::Level { .. }
            | Self::Directory(..)
            | Self::Retention(..)
            | Self::Leased { .. } => {}
        }
    }
}
