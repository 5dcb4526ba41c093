//! Policy and budgets: what a session's agent may call and spend.

use minicbor::{CborLen, Decode, Encode};

use crate::{AddressPattern, GateIx, Micros, NodeIx, Num, Pattern};

/// The capability of sending a mail. See `docs/formats-checkpoint.md#money-and-mail`.
pub const SENDING: &str = "resend-email";

/// Whether a call of this capability sends a mail.
#[must_use]
pub fn sends_mail(capability: &str) -> bool {
    Pattern::new(SENDING).is_ok_and(|pattern| pattern.covers(capability))
}

/// The tools by which a supervisor controls a process. No worker may call one of them.
pub const CONTROL_TOOLS: [&str; 6] =
    ["continue_process", "set_context", "transition_to", "skip_node", "retry_node", "fail_process"];
/// What precedes the name of a tool of the process endpoint.
const PROCESS_ENDPOINT: &str = "mcp:process:";

/// Every layer that has a say; of the effects of those that apply, the strictest holds: deny, ask, allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Policy {
    /// In the compiler's order.
    #[n(0)]
    pub layers: Vec<Layer>,
    /// The gate of an ask that no rule made: a tenant whose default effect is to ask.
    #[n(1)]
    pub ask_gate: Option<GateIx>,
}

/// One list of rules with its own default.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Layer {
    /// What it is called in an explanation: `policy`, `allowed_tools`, `email_config`.
    #[n(0)]
    pub name: String,
    /// The capabilities it speaks about.
    #[n(1)]
    pub covers: Pattern,
    /// Capabilities that it does not speak about all the same.
    #[n(2)]
    pub except: Vec<Pattern>,
    /// Never callable. Looked at first.
    #[n(3)]
    pub deny: Vec<Rule>,
    /// A person is asked. Looked at second.
    #[n(4)]
    pub ask: Vec<Rule>,
    /// Freely callable. Looked at last.
    #[n(5)]
    pub allow: Vec<Rule>,
    /// If no rule matches.
    #[n(6)]
    pub otherwise: Otherwise,
    /// The only node at which it speaks; absent: at every node.
    #[cbor(n(7), default)]
    pub at: Option<NodeIx>,
}

impl Policy {
    /// Whether this is a call that the format itself keeps open, which no policy ever stops.
    #[must_use]
    pub fn exempts(&self, capability: &str) -> bool {
        let mut except = self.layers.iter().flat_map(|layer| &layer.except);
        except.any(|pattern| pattern.covers(capability))
    }
}

impl Layer {
    /// The layer that denies the [`CONTROL_TOOLS`], by themselves and at the process endpoint, and says nothing else.
    ///
    /// # Panics
    /// Never: the names are patterns.
    #[must_use]
    pub fn of_control_tools() -> Self {
        let pattern = |name: String| Pattern::new(&name).expect("a name of letters is a pattern");
        let rule = |pattern| Rule { pattern, limits: Vec::new(), gate: None, args: None };
        let names =
            CONTROL_TOOLS.iter().flat_map(|tool| [(*tool).to_owned(), format!("{PROCESS_ENDPOINT}{tool}")]);
        Self {
            name: "process_control".into(),
            covers: pattern("*".into()),
            except: Vec::new(),
            deny: names.map(pattern).map(rule).collect(),
            ask: Vec::new(),
            allow: Vec::new(),
            otherwise: Otherwise::Abstain,
            at: None,
        }
    }

    /// Whether the layer has no rule and leaves everything to the tenant's default.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        self.otherwise == Otherwise::TenantDefault
            && [&self.deny, &self.ask, &self.allow].iter().all(|list| list.is_empty())
    }

    /// Whether the layer speaks about this capability at this node.
    #[must_use]
    pub fn speaks(&self, capability: &str, at: NodeIx) -> bool {
        self.at.is_none_or(|only| only == at)
            && self.covers.covers(capability)
            && !self.except.iter().any(|pattern| pattern.covers(capability))
    }
}

/// What a layer says if none of its rules matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Otherwise {
    /// What the tenant's default effect is: allow, unless it was set.
    #[n(0)]
    TenantDefault,
    /// Never callable.
    #[n(1)]
    Deny,
    /// Nothing.
    #[n(2)]
    Abstain,
    /// What the document states itself.
    #[n(130)]
    Stated(#[n(0)] Fallback),
}

/// What a policy document states for a call that none of its rules matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Fallback {
    /// The call is made without a person being asked.
    #[n(0)]
    Allow,
    /// A person is asked.
    #[n(1)]
    Ask,
    /// It is denied.
    #[n(2)]
    Deny,
}

/// A rule of a list.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Rule {
    /// What it covers.
    #[n(0)]
    pub pattern: Pattern,
    /// None of them may be full.
    #[n(1)]
    pub limits: Vec<Limit>,
    /// The gate that an ask opens.
    #[n(2)]
    pub gate: Option<GateIx>,
    /// What the arguments must be; a call that breaks it is denied.
    #[n(3)]
    pub args: Option<ArgRule>,
}

/// A limit that spans sessions and lives in a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Limit {
    /// At most `max` permitted calls in any rolling window; a call exactly `window_ms` old is outside it.
    #[n(0)]
    Rate {
        /// Calls, at least 1.
        #[n(0)]
        max: u64,
        /// Milliseconds, at least 1000.
        #[n(1)]
        window_ms: u64,
    },
    /// At most this much money in a calendar period of UTC.
    #[n(1)]
    Money {
        /// The period's cap.
        #[n(0)]
        max: Micros,
        /// When the cap begins again.
        #[n(1)]
        period: Period,
    },
}

/// A calendar period of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Period {
    /// From the full hour.
    #[n(0)]
    Hour,
    /// From midnight.
    #[n(1)]
    Day,
    /// From midnight of the first.
    #[n(2)]
    Month,
}

/// What a call's arguments must be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ArgRule {
    /// A mail `{from, to, cc, bcc, subject, text}`. An absent list restricts nothing, an empty one allows nobody.
    #[n(0)]
    Mail {
        /// Who may send.
        #[n(0)]
        from: Option<Vec<AddressPattern>>,
        /// Who may receive; `to`, `cc` and `bcc` alike.
        #[n(1)]
        to: Option<Vec<AddressPattern>>,
    },
}

/// A cap on what one session uses.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Budget {
    /// What is counted.
    #[n(0)]
    pub unit: BudgetUnit,
    /// The cap, in the unit; reached is exhausted.
    #[n(1)]
    pub cap: Num,
    /// What happens at the cap.
    #[n(2)]
    pub breach: Breach,
    /// The capabilities that it stops.
    #[n(3)]
    pub covers: Pattern,
    /// Capabilities that it never stops.
    #[n(4)]
    pub except: Vec<Pattern>,
}

impl Budget {
    /// Whether calls of this capability are stopped at the cap.
    #[must_use]
    pub fn stops(&self, capability: &str) -> bool {
        self.covers.covers(capability) && !self.except.iter().any(|pattern| pattern.covers(capability))
    }
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum BudgetUnit {
    /// Millionths of a US dollar.
    #[n(0)]
    UsdMicros,
    /// Permitted mails.
    #[n(1)]
    Mails,
}

/// What happens at a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Breach {
    /// Calls are denied; the session lives on.
    #[n(0)]
    DenyCalls,
}
