//! The machine itself.

use minicbor::{CborLen, Decode, Encode};
use switchward_expr::{DataType, Reducer};
use switchward_schema::Schema;

use crate::limits::{FIXED_CHILDREN_MAX, MACHINE_BYTES_MAX};
use crate::reserved_keys::HIDDEN_PREFIX;
use crate::{
    ActKind, Budget, CalleeIx, Digest, GateIx, GateSpec, Initial, Kids, Node, NodeIx, ParamIx, Policy,
    StatusWords, Target,
};

/// The version of a machine's encoded form; the first byte of it.
const FORM: u8 = 1;

/// A compiled definition. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Machine {
    /// Where a root run enters.
    #[n(0)]
    pub start: NodeIx,
    /// In the author's order.
    #[n(1)]
    pub nodes: Vec<Node>,
    /// Every gate that this machine can open.
    #[n(2)]
    pub gates: Vec<GateSpec>,
    /// What may be called.
    #[n(3)]
    pub policy: Policy,
    /// What may be spent.
    #[n(4)]
    pub budgets: Vec<Budget>,
    /// Numbers that may be raised on a live run.
    #[n(5)]
    pub params: Vec<Param>,
    /// What a start needs and says.
    #[n(6)]
    pub opening: Opening,
    /// The format's own words for a status.
    #[n(7)]
    pub words: StatusWords,
    /// What no move of a run depends on.
    #[n(8)]
    pub meta: Meta,
    /// How the data's keys are merged and what they hold; a key that is not listed is overwritten and holds anything.
    #[cbor(n(9), default)]
    pub fields: Vec<Field>,
    /// What its sessions accept beside what is open in them; in the order of [`Input::ALL`].
    #[cbor(n(10), default, skip_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Top-level keys of the data that only the engine writes; sorted. The engine writes nothing of its own under a key that
    /// is not one of them, and such a key is like any other.
    #[cbor(n(11), default, skip_if = "Vec::is_empty")]
    pub reserved_keys: Vec<String>,
    /// Other definitions that runs of this one call; pinned to machines when a session starts.
    #[cbor(n(20), skip_if = "Vec::is_empty")]
    pub callees: Vec<Callee>,
    /// What the data of a run must be after each write; `None` if they may be anything.
    #[n(21)]
    pub data_schema: Option<Schema>,
    /// What the data of a run begin with, before the input of its start; each key once.
    #[cbor(n(22), skip_if = "Vec::is_empty")]
    pub initial: Vec<Initial>,
    /// The model that the definition wants for its work, where a node names none.
    #[n(23)]
    pub model: Option<String>,
    /// How the templates in inputs of work and in values of operations are read.
    #[cbor(n(24), skip_if = "Templates::is_lenient")]
    pub templates: Templates,
}

/// How templates inside JSON are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Templates {
    /// `{gathered.x}` and `{gathered_data.x}` stand for values; an absent one is empty.
    #[default]
    #[n(0)]
    Lenient,
    /// `{{x}}` stands for a value; an absent one, or null, is a fault that is not tried again.
    #[n(1)]
    Strict,
}

impl Templates {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as the encoder calls it")]
    fn is_lenient(&self) -> bool {
        *self == Self::Lenient
    }
}

/// What a session may accept although no open item asks for it. Anything that its machine does not list is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Input {
    /// Messages of the user.
    #[n(0)]
    Message,
    /// Data that the agent records.
    #[n(1)]
    Data,
    /// The agent's signals: that its work in a node is done, or that it wants another attempt.
    #[n(2)]
    Signal,
    /// Events from outside, also before a node listens to them.
    #[n(3)]
    Event,
    /// Mail that answers no open gate and carries no token.
    #[n(4)]
    Mail,
    /// A switch to another of the session's workflows.
    #[n(5)]
    Switch,
}

impl Input {
    /// Every input, in order.
    pub const ALL: [Self; 6] =
        [Self::Message, Self::Data, Self::Signal, Self::Event, Self::Mail, Self::Switch];
}

/// Another definition that is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub struct Callee {
    /// Its name in the tenant's catalogue.
    #[n(0)]
    pub name: String,
    /// Its version; `None` stands for the one that is active when the session starts.
    #[n(1)]
    pub version: Option<u32>,
    /// What it is to the caller.
    #[cbor(n(2), default, skip_if = "is_definition")]
    pub kind: CalleeKind,
}

/// What a callee is to its caller; it decides the reason of the refusal if the callee is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode, CborLen)]
pub enum CalleeKind {
    /// A workflow that a state runs to its end.
    #[default]
    #[n(0)]
    Definition,
    /// A workflow, as those that a session switches between.
    #[n(1)]
    Workflow,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the encoder calls it")]
fn is_definition(kind: &CalleeKind) -> bool {
    *kind == CalleeKind::Definition
}

/// A key of a run's data.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Field {
    /// The top-level key.
    #[n(0)]
    pub key: String,
    /// The type that its values must have.
    #[n(1)]
    pub holds: DataType,
    /// How a new value is merged with the one before.
    #[n(2)]
    pub reducer: Reducer,
}

/// A named number of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Param {
    /// What a caller names it by: `cost_usd`, `tokens`.
    #[n(0)]
    pub name: String,
    /// Its value if a run has no other.
    #[n(1)]
    pub value: u64,
}

/// A literal, or a parameter of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Num {
    /// This number.
    #[n(0)]
    Literal(#[n(0)] u64),
    /// The run's value of this parameter.
    #[n(1)]
    Param(#[n(0)] ParamIx),
}

/// What a start needs and says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Opening {
    /// The role that a session must have, if a policy names one.
    #[n(0)]
    pub role: Option<String>,
    /// Text put before the first turn.
    #[n(1)]
    pub text: Option<String>,
    /// Warnings that every start records.
    #[n(2)]
    pub warnings: Vec<String>,
    /// Whether the input of a start is what the first run's data begin with.
    #[cbor(n(3), default)]
    pub input_is_data: bool,
    /// Whether it is a policy document: it is attached to other definitions, and no session runs it.
    #[cbor(n(4), default, skip_if = "std::ops::Not::not")]
    pub only_policy: bool,
}

/// For people, for views, and for a choice between definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Meta {
    /// The definition's name.
    #[n(0)]
    pub name: String,
    /// The format it was written in: `checkpoint`.
    #[n(1)]
    pub format: String,
    /// What the definition is for, in its author's words.
    #[n(2)]
    pub description: Option<String>,
}

impl Machine {
    /// The canonical bytes: a form byte, then fields by number. Two equal machines have equal bytes.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORM];
        minicbor::encode(self, &mut out).expect("encoding into memory cannot fail");
        out
    }

    /// The digest that runs are pinned to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.encode())
    }

    /// Returns true if its sessions accept this.
    #[must_use]
    pub fn accepts(&self, input: Input) -> bool {
        self.inputs.contains(&input)
    }

    /// Returns true if only the engine writes this top-level key of the data. Where the data have a schema, a key that
    /// begins with [`HIDDEN_PREFIX`] is one of them.
    #[must_use]
    pub fn reserves(&self, key: &str) -> bool {
        let hidden = self.data_schema.is_some() && key.starts_with(HIDDEN_PREFIX);
        hidden || self.reserved_keys.iter().any(|reserved| reserved == key)
    }

    /// Whether events from outside are for any of its nodes.
    #[must_use]
    pub fn listens_to_events(&self) -> bool {
        self.nodes.iter().any(Node::listens_to_events)
    }

    /// Reads the canonical bytes and checks every index in them.
    ///
    /// # Errors
    /// Another form, broken bytes, an index that points nowhere, a gate that records below a key that is not reserved, or
    /// more than [`MACHINE_BYTES_MAX`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BadMachine> {
        if bytes.len() > MACHINE_BYTES_MAX {
            return Err(BadMachine("too large".into()));
        }
        match bytes.split_first() {
            Some((&FORM, rest)) => {
                let machine: Self = minicbor::decode(rest).map_err(|error| BadMachine(error.to_string()))?;
                machine.check_indices()?;
                machine.check_records()?;
                Ok(machine)
            }
            Some((form, _)) => {
                Err(BadMachine(format!("form {form} is unknown; this build reads form {FORM}")))
            }
            None => Err(BadMachine("it is empty".into())),
        }
    }

    /// The node at this position.
    #[must_use]
    pub fn node(&self, ix: NodeIx) -> Option<&Node> {
        self.nodes.get(usize::try_from(ix.0).ok()?)
    }

    /// How a key of the data is merged.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The gate spec at this position.
    #[must_use]
    pub fn gate(&self, ix: GateIx) -> Option<&GateSpec> {
        self.gates.get(usize::from(ix.0))
    }

    /// The callee at this position.
    #[must_use]
    pub fn callee(&self, ix: CalleeIx) -> Option<&Callee> {
        self.callees.get(usize::from(ix.0))
    }

    /// The parameter of this name.
    #[must_use]
    pub fn param_named(&self, name: &str) -> Option<ParamIx> {
        let at = self.params.iter().position(|param| param.name == name)?;
        u16::try_from(at).ok().map(ParamIx)
    }

    fn check_records(&self) -> Result<(), BadMachine> {
        let mut keys = self.gates.iter().filter_map(|gate| gate.record.as_deref());
        match keys.find(|key| !self.reserves(key)) {
            Some(key) => Err(BadMachine(format!("a gate records below {key:?}, which is not reserved"))),
            None => Ok(()),
        }
    }

    fn check_kids(&self, kids: &Kids) -> Result<(), BadMachine> {
        let dangling = |what: &str| BadMachine(format!("{what} has an index out of range"));
        match kids {
            Kids::Call(callee) => self.callee(*callee).map(drop).ok_or_else(|| dangling("a call")),
            Kids::Fixed(children) => {
                if children.is_empty() || children.len() > FIXED_CHILDREN_MAX {
                    let message = format!("an act begins {} children side by side", children.len());
                    return Err(BadMachine(message));
                }
                for (at, child) in children.iter().enumerate() {
                    self.node(child.node).ok_or_else(|| dangling("a child"))?;
                    if children[..at].iter().any(|other| other.name == child.name) {
                        return Err(BadMachine(format!("two children are called {}", child.name)));
                    }
                }
                Ok(())
            }
        }
    }

    fn check_indices(&self) -> Result<(), BadMachine> {
        let dangling = |what: &str| BadMachine(format!("{what} has an index out of range"));
        self.node(self.start).ok_or_else(|| dangling("start"))?;
        for node in &self.nodes {
            if node.acts.is_empty() {
                return Err(BadMachine(format!("node {} has no act", node.name)));
            }
            for act in &node.acts {
                if act.then.iter().any(|(_, next)| usize::from(next.0) >= node.acts.len()) {
                    return Err(dangling("a port of an act"));
                }
                if let ActKind::Spawn(spawn) = &act.kind {
                    self.check_kids(&spawn.kids)?;
                }
            }
            for exit in &node.exits {
                if let Target::Node(to) = exit.to {
                    self.node(to).ok_or_else(|| dangling("an exit"))?;
                }
                if let Some(gate) = exit.hold {
                    self.gate(gate).ok_or_else(|| dangling("a hold"))?;
                }
            }
        }
        for at in self.policy.layers.iter().filter_map(|layer| layer.at) {
            self.node(at).ok_or_else(|| dangling("a layer's node"))?;
        }
        let asks = self.policy.layers.iter().flat_map(|layer| &layer.ask).filter_map(|rule| rule.gate);
        for gate in asks.chain(self.policy.ask_gate) {
            self.gate(gate).ok_or_else(|| dangling("an ask rule"))?;
        }
        for budget in &self.budgets {
            if let Num::Param(ix) = budget.cap {
                self.params.get(usize::from(ix.0)).ok_or_else(|| dangling("a budget"))?;
            }
        }
        Ok(())
    }
}

/// Bytes that are not a machine of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read a machine: {0}")]
pub struct BadMachine(String);
