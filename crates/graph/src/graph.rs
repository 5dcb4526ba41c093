//! The content of a picture.

use switchward_machine::Outcome;

/// A machine as vertices and edges. Texts are the author's, as they were written; the writers escape and cut them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The definition's name.
    pub name: String,
    /// The nodes in the machine's order, then the ends.
    pub vertices: Vec<Vertex>,
    /// By the nodes they leave, then in the order of the exits.
    pub edges: Vec<Edge>,
}

/// A node, or a way that a run can end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// What the node does, or how the run ends.
    pub kind: Kind,
    /// The author's name of the node, or the word of the outcome.
    pub name: String,
    /// The text that the agent is shown there.
    pub text: Option<String>,
    /// Its actions, a word for each kind of act: `asks`, `works`, `waits`, `runs`, `sends`, `calls shipping`.
    pub acts: Vec<String>,
    /// True if a root run enters here.
    pub start: bool,
    /// True if every exit ends the run.
    pub last: bool,
    /// True if a path from the start leads here.
    pub reached: bool,
}

/// The kinds of vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A node of the machine.
    Node,
    /// The end of a run.
    End(Outcome),
}

/// All exits of one kind from one vertex to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Position of the vertex that it leaves.
    pub from: usize,
    /// Position of the vertex that it leads to; the same one for a loop.
    pub to: usize,
    /// How it is taken.
    pub kind: EdgeKind,
    /// The conditions that take it, one for each exit that has a label.
    pub labels: Vec<Label>,
}

/// How an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// At once.
    Free,
    /// After a person who is asked has agreed.
    Held,
    /// After a person who is asked has refused.
    Refused,
}

impl EdgeKind {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Refused => "refused",
        }
    }
}

/// The condition of an exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// In few words.
    pub text: String,
    /// In full.
    pub whole: String,
}

impl Label {
    /// A label that is its own full text.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { whole: text.clone(), text }
    }
}
