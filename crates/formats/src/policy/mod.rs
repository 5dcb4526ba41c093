//! Policy documents: the language of a checkpoint process's `policy`, with its caps and mail limits, as a separate
//! definition that is attached to definitions of any format or to a whole tenant. See
//! `docs/formats-checkpoint.md#a-policy-as-a-file-of-its-own`.
//!
//! Unlike in a process, `role` may be left out: the document then applies to sessions of every role. `default_effect`
//! decides a call that no rule matches; without it the default is the tenant's, else the server's, else to allow.

use switchward_machine::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use switchward_machine::{
    Act, ActKind, Breach, Budget, BudgetUnit, Fallback, Layer, Machine, Meta, Micros, Node as Vertex, NodeIx,
    Num, Opening, Otherwise, Policy, StatusWords, Templates,
};

use crate::checkpoint::tools::pattern;
use crate::checkpoint::{mail, policy};
use crate::document::Node;
use crate::row::{Compiler, Row, UseAs, has, no_calls};
use crate::shape::{self, Fields, Shape};
use crate::{Naming, Report, naming};

const DOCUMENT: Shape = Shape {
    what: "the policy",
    keys: &[
        "policy",
        "description",
        "role",
        "deny",
        "ask",
        "allow",
        "session_budget_usd",
        "email_config",
        "default_effect",
    ],
    ignored: &[],
    hints: &[
        ("name", "the policy's name is the value of `policy`"),
        ("states", "a policy document has no states; a process with a policy has `policy` as a map"),
    ],
};

const FALLBACKS: [(&str, Fallback); 3] =
    [("allow", Fallback::Allow), ("ask", Fallback::Ask), ("deny", Fallback::Deny)];

const OPEN_HINT: &str = "write `default_effect: deny`, or `ask` or `allow` if that is intended";

/// The names of policy documents.
const NAMING: Naming = Naming::Slug;

/// A document whose `policy` is a text. A process with a name has its own policy, whatever that holds.
pub(crate) const ROW: Row = Row {
    name: "policy",
    marker: "`policy` as a text, the policy's name",
    marker_keys: &[],
    marker_files: &[],
    fits: |root| {
        let process = has(root, "name") && has(root, "states");
        !process && root.get("policy").is_some_and(|it| it.as_text().is_some())
    },
    compiler: Some(Compiler { compile, calls: no_calls, naming: NAMING, use_as: UseAs::Policy }),
};

/// Compiles a policy document to a machine that holds layers and caps, and that no session runs.
fn compile(root: &Node, _: &[u8], report: &mut Report) -> Option<(String, Machine)> {
    let fields = Fields::open(root, &DOCUMENT, report)?;
    let name = fields.required("policy", report);
    let span = name.map_or(root.span, |node| node.span);
    let name = name.and_then(|node| naming::named(node, "`policy`", NAMING, report));
    let description = fields.optional("description");
    let description = description.and_then(|node| shape::text(node, "`description`", TEXT_BYTES_MAX, report));
    let role = fields.optional("role");
    let role = role.and_then(|node| shape::name(node, "`role`", NAME_BYTES_MAX, report));
    let budget = fields.optional("session_budget_usd");
    let budget = budget.and_then(|node| shape::money(node, "`session_budget_usd`", report));
    let stated = fields.optional("default_effect").map(|node| fallback(node, report));
    let otherwise = match stated {
        Some(stated) => Otherwise::Stated(stated.unwrap_or(Fallback::Deny)),
        None => Otherwise::TenantDefault,
    };
    let layer = policy::lists(Some(&fields), None, otherwise, report);
    let mail = mail::read(fields.optional("email_config"), report);
    if let Some(node) = fields.optional("email_config").filter(|_| mail.is_some()) {
        mail::warn_denied(&layer, node.span, report);
    }
    policy::notice_open(&layer, span, OPEN_HINT, report);
    let (mail, mails) = mail.map_or((None, None), |mail| (Some(mail.layer), mail.budget));
    let layers = [layer].into_iter().chain(mail).collect();
    let name = name?;
    let mut machine = assemble(layers, budget.map(cost).into_iter().chain(mails).collect());
    machine.opening = Opening {
        role: role.map(str::to_owned),
        warnings: report.warnings(),
        only_policy: true,
        ..Opening::default()
    };
    let description = description.filter(|text| !text.is_empty()).map(str::to_owned);
    machine.meta = Meta { name: name.to_owned(), format: ROW.name.into(), description };
    naming::check_size(&machine, "the policy", root, report);
    Some((name.to_owned(), machine))
}

fn fallback(node: &Node, report: &mut Report) -> Option<Fallback> {
    let word = shape::word(node, "`default_effect`", &FALLBACKS.map(|(word, _)| word), report)?;
    FALLBACKS.iter().find(|(known, _)| *known == word).map(|(_, stated)| *stated)
}

/// See `docs/formats-checkpoint.md#the-process`, `session_budget_usd`.
fn cost(cap: Micros) -> Budget {
    Budget {
        unit: BudgetUnit::UsdMicros,
        cap: Num::Literal(cap.0),
        breach: Breach::DenyCalls,
        covers: pattern("*"),
        except: Vec::new(),
    }
}

/// A machine needs a node; nothing ever enters this one.
fn assemble(layers: Vec<Layer>, budgets: Vec<Budget>) -> Machine {
    let nothing = Act { kind: ActKind::Do(Vec::new()), then: Vec::new() };
    Machine {
        start: NodeIx(0),
        nodes: vec![Vertex::new("policy", vec![nothing])],
        gates: Vec::new(),
        policy: Policy { layers, ask_gate: None },
        budgets,
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords { waiting: String::new(), at_gate: String::new(), suspended: String::new() },
        meta: Meta::default(),
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
