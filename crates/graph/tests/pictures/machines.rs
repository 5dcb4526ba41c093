//! Machines with every name that an author can think of.

use proptest::prelude::*;
use switchward_machine::{
    Act, ActKind, Ask, Ending, Exit, GateIx, GateKind, GateSpec, Machine, Meta, Node, NodeIx, Opening,
    Outcome, Policy, StatusWords, Target, Templates, Trigger,
};

/// Names with a special meaning in one of the languages.
const NASTY: &[&str] = &[
    "end",
    "graph",
    "subgraph",
    "class",
    "default",
    "n0",
    "\"",
    "a\"b",
    "\\",
    "a\\",
    "\\\"",
    "\\N",
    "]",
    "[x](y)",
    "{}",
    "(())",
    "|",
    "a --> b",
    "-- x -->",
    "#quot;",
    "#35;",
    "&amp;",
    "&lt;b&gt;",
    "<b>bold</b>",
    "<script>alert(1)</script>",
    "<br/>",
    "</title></svg>",
    "<!--",
    "]]>",
    "a;b",
    "%% x",
    "%%{init: {}}%%",
    "1. first",
    "- item",
    "* item",
    "`code`",
    "_it_",
    "**b**",
    "$x$",
    "$$x^2$$",
    "fa:fa-car",
    "a\nb",
    "a\r\n  b",
    "\t",
    "",
    " ",
    "ångström → 東京 🚦",
    "\u{202e}abc",
    "\u{0}\u{1}\u{ffff}",
    "click n0 call x()",
    "style n0 fill:#f00",
    "very long very long very long very long very long very long",
];

fn machine(name: &str, nodes: Vec<Node>) -> Machine {
    let gate = GateSpec::open_to_all(GateKind::Notify, Vec::new());
    Machine {
        start: NodeIx(0),
        nodes,
        gates: vec![gate],
        policy: Policy::default(),
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords::default(),
        meta: Meta { name: name.to_owned(), format: String::new(), description: None },
        fields: Vec::new(),
        inputs: Vec::new(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    }
}

fn node(name: &str, text: &str, exits: Vec<Exit>) -> Node {
    let ask = Act { kind: ActKind::Ask(Ask { turns: false }), then: Vec::new() };
    Node { exits, text: Some(text.to_owned()), ..Node::new(name, vec![ask]) }
}

fn exit(answer: &str, to: Target, held: bool) -> Exit {
    Exit { hold: held.then_some(GateIx(0)), ..Exit::plain(Trigger::Answer(answer.to_owned()), to) }
}

/// A machine for each nasty name, which uses it wherever a name is possible.
pub(crate) fn nasty() -> Vec<Machine> {
    let of = |name: &&str| {
        let to = |ix| Target::Node(NodeIx(ix));
        let first = node(name, name, vec![exit(name, to(1), false), exit(name, to(0), true)]);
        machine(name, vec![first, node("other", name, vec![exit(name, to(0), false)])])
    };
    NASTY.iter().map(of).collect()
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::sample::select(NASTY).prop_map(str::to_owned),
        2 => "\\PC{0,40}",
        2 => "[ -~]{0,20}",
        1 => any::<String>(),
    ]
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    proptest::sample::select(vec![
        Outcome::Completed,
        Outcome::Blocked,
        Outcome::Failed,
        Outcome::Cancelled,
        Outcome::Abandoned,
    ])
}

fn any_exit(nodes: u32) -> impl Strategy<Value = Exit> {
    let to = prop_oneof![
        3 => (0..nodes).prop_map(|ix| Target::Node(NodeIx(ix))),
        1 => any_outcome().prop_map(|outcome| Target::End(Ending::plain(outcome))),
    ];
    (any_name(), to, any::<bool>()).prop_map(|(answer, to, held)| exit(&answer, to, held))
}

/// A machine of up to 12 nodes.
pub(crate) fn any_machine() -> impl Strategy<Value = Machine> {
    (1_u32..12).prop_flat_map(|count| {
        let one = (any_name(), any_name(), prop::collection::vec(any_exit(count), 0..6));
        let nodes = prop::collection::vec(
            one.prop_map(|(name, text, exits)| node(&name, &text, exits)),
            count as usize,
        );
        (any_name(), nodes).prop_map(|(name, nodes)| machine(&name, nodes))
    })
}
