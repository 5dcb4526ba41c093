//! Helpers to compile, and random definitions.

use switchward_formats::{
    Compiled, Definition, Finding, Severity, SourceFile, compile_file, render_segments,
};
use switchward_machine::Machine;
use switchward_testkit::Rng;

/// The deploy gate: the first example of the format.
pub(crate) const DEPLOY_GATE: &str = include_str!("../fixtures/deploy-gate.json");
/// The same in YAML.
pub(crate) const DEPLOY_GATE_YAML: &str = include_str!("../fixtures/deploy-gate.yaml");

/// Compiles a text whose format is to be detected.
pub(crate) fn compile_text(file: &str, text: &str) -> Compiled {
    compile_file(file, text.as_bytes(), None)
}

/// `CODE line:column` of each finding.
pub(crate) fn summaries(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|it| format!("{} {}:{}", it.code, it.line, it.column)).collect()
}

/// The errors and warnings among these.
pub(crate) fn odd(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|it| it.severity != Severity::Notice).collect()
}

/// The findings as plain text.
pub(crate) fn render_text(findings: &[Finding], source: &[u8]) -> String {
    render_segments(findings, source).into_iter().map(|segment| segment.text).collect()
}

/// The definition of a YAML text without warnings.
#[track_caller]
pub(crate) fn clean(yaml: &str) -> Definition {
    let compiled = compile_text("p.yaml", yaml);
    assert_eq!(odd(&compiled.findings), Vec::<&Finding>::new());
    compiled.definition.expect("there is no finding")
}

/// The machine of a process with one state and these further lines.
#[track_caller]
pub(crate) fn machine_with(lines: &str) -> Machine {
    clean(&process_with(lines)).machine
}

/// A process with one state and these further lines.
pub(crate) fn process_with(lines: &str) -> String {
    format!(
        "name: p\ninitial: a\nstates:\n  a:\n    question: Go on?\n    answers:\n      yes: {{next: null}}\n{lines}\n"
    )
}

/// One file of a bundle.
pub(crate) fn file<'a>(path: &'a str, text: &'a str) -> SourceFile<'a> {
    SourceFile { path, bytes: text.as_bytes() }
}

/// A document that can be written in either syntax.
#[derive(Debug, Clone)]
pub(crate) enum Draft {
    /// Written alike in both: a number, `null`.
    Bare(String),
    Text(String),
    List(Vec<Draft>),
    Map(Vec<(String, Draft)>),
}

impl Draft {
    pub(crate) fn json(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Bare(text) => text.clone(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::json).collect())),
            Self::Map(entries) => {
                let entry = |(key, value): &(String, Self)| {
                    format!("{}: {}", serde_json::Value::from(key.as_str()), value.json())
                };
                format!("{{{}}}", joined(entries.iter().map(entry).collect()))
            }
        }
    }

    /// Block style, plain if a plain text means the same.
    pub(crate) fn yaml(&self) -> String {
        let mut out = String::new();
        self.block(0, &mut out);
        out
    }

    fn block(&self, indent: usize, out: &mut String) {
        let margin = " ".repeat(indent);
        match self {
            Self::Bare(text) => *out += &format!(" {text}\n"),
            Self::Text(text) => *out += &format!(" {}\n", scalar(text)),
            Self::List(items) if items.is_empty() => *out += " []\n",
            Self::Map(entries) if entries.is_empty() => *out += " {}\n",
            Self::List(items) => {
                *out += "\n";
                for item in items {
                    *out += &format!("{margin}-");
                    item.block(indent + 2, out);
                }
            }
            Self::Map(entries) => {
                *out += "\n";
                for (key, value) in entries {
                    *out += &format!("{margin}{}:", scalar(key));
                    value.block(indent + 2, out);
                }
            }
        }
    }
}

/// Plain if it has only letters, digits and hyphens and begins with a letter; `yes` and `no` included.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !["true", "false", "null"].contains(&text);
    if plain {
        text.to_owned()
    } else if text.contains('\n') {
        serde_json::Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A process without errors; it may have odd parts, like unreachable states.
pub(crate) fn draw_process(rng: &mut Rng) -> Draft {
    let states = 1 + rng.below(6);
    let names: Vec<String> = (0..states).map(|at| format!("{}{at}", *rng.pick(STATE_NAMES))).collect();
    let mut root = vec![
        ("name".to_owned(), Draft::Text(format!("p-{}", rng.below(100)))),
        ("initial".to_owned(), Draft::Text(names[rng.below(states)].clone())),
    ];
    let states = names.iter().map(|name| (name.clone(), draw_state(rng, &names))).collect();
    root.push(("states".to_owned(), Draft::Map(states)));
    if rng.once_in(2) {
        root.push(("initial_prompt".to_owned(), Draft::Text("Walk through: \"it's\" → né".to_owned())));
    }
    if rng.once_in(2) {
        root.push(("session_budget_usd".to_owned(), Draft::Bare((*rng.pick(AMOUNTS)).to_owned())));
    }
    if rng.once_in(2) {
        let tools = (0..rng.below(4)).map(|_| text(rng.pick::<&str>(TOOLS))).collect();
        root.push(("allowed_tools".to_owned(), Draft::List(tools)));
    }
    if rng.once_in(2) {
        root.push(("email_config".to_owned(), draw_mail(rng)));
    }
    if rng.once_in(2) {
        root.push(("policy".to_owned(), draw_policy(rng)));
    }
    Draft::Map(root)
}

const STATE_NAMES: &[&str] = &["env-check", "yes", "no ", "on", "état", "a: b", "1", "~", "it's"];
const ANSWERS: &[&str] = &["yes", "no", "n/a", "on", "null", "1", "true", "- x"];
const ACTIONS: &[&str] = &["block", "warn", "complete", "notify_human"];
const AMOUNTS: &[&str] = &["0", "5.00", "0.000001", "1e2", "2.50e-2", "-0"];
const TOOLS: &[&str] = &["memory", "task", "process_step", "tasks", "bash"];
const CAPABILITIES: &[&str] = &["bash", "*", "mcp:*", "mcp:files:read", "mcp:files:*", "resend-email", "a.b"];
const ADDRESSES: &[&str] = &["ann@example.org", "*@Example.org"];

fn text(text: &str) -> Draft {
    Draft::Text(text.to_owned())
}

fn bare(text: impl ToString) -> Draft {
    Draft::Bare(text.to_string())
}

fn map<const N: usize>(entries: [(&str, Draft); N]) -> Draft {
    Draft::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn draw_state(rng: &mut Rng, names: &[String]) -> Draft {
    let question = text(rng.pick::<&str>(&["Go on?", "", "# really: 'sure'?", "  two\nlines "]).trim());
    let mut answers: Vec<(String, Draft)> = Vec::new();
    for _ in 0..rng.below(4) {
        let key = *rng.pick(ANSWERS);
        if answers.iter().any(|(known, _)| known == key) {
            continue;
        }
        let next = if rng.once_in(3) { bare("null") } else { text(&names[rng.below(names.len())]) };
        let mut answer = vec![("next".to_owned(), next)];
        if rng.once_in(2) {
            answer.push(("action".to_owned(), text(rng.pick::<&str>(ACTIONS))));
        }
        answers.push((key.to_owned(), Draft::Map(answer)));
    }
    map([("question", question), ("answers", Draft::Map(answers))])
}

fn draw_mail(rng: &mut Rng) -> Draft {
    let addresses =
        |rng: &mut Rng| Draft::List((0..rng.below(3)).map(|_| text(rng.pick::<&str>(ADDRESSES))).collect());
    let mut fields = Vec::new();
    if rng.once_in(2) {
        fields.push(("max_emails_per_session".to_owned(), bare(rng.below(9))));
    }
    if rng.once_in(2) {
        fields.push(("allowed_from".to_owned(), addresses(rng)));
    }
    if rng.once_in(2) {
        fields.push(("allowed_to".to_owned(), addresses(rng)));
    }
    Draft::Map(fields)
}

fn draw_policy(rng: &mut Rng) -> Draft {
    let mut fields = vec![("role".to_owned(), text("agent"))];
    for list in ["allow", "ask", "deny"] {
        if rng.once_in(3) {
            continue;
        }
        let rules = (0..rng.below(4)).map(|_| draw_rule(rng, list)).collect();
        fields.push((list.to_owned(), Draft::List(rules)));
    }
    Draft::Map(fields)
}

fn draw_rule(rng: &mut Rng, list: &str) -> Draft {
    let mut fields = vec![("capability".to_owned(), text(rng.pick::<&str>(CAPABILITIES)))];
    if list != "deny" && rng.once_in(2) {
        let limit = [("max_calls", bare(1 + rng.below(9))), ("window_seconds", bare(60))];
        fields.push(("rate_limit".to_owned(), map(limit)));
    }
    if list != "deny" && rng.once_in(2) {
        let period = text(rng.pick::<&str>(&["hourly", "daily", "monthly"]));
        let limit = [("max_usd", bare(*rng.pick(AMOUNTS))), ("period", period)];
        fields.push(("budget_limit".to_owned(), map(limit)));
    }
    Draft::Map(fields)
}

/// A refund: the example of the corpus.
pub(crate) const REFUND: &str = include_str!("../../../../tests/corpus/conversation/definitions/refund.yaml");
/// A workflow with every construct that runs.
pub(crate) const EVERYTHING: &str =
    include_str!("../../../../tests/corpus/conversation/definitions/everything.yaml");

/// The machine of a workflow with these states and transitions, one to a line; its warnings are ignored.
#[track_caller]
pub(crate) fn workflow(states: &[&str], transitions: &[&str]) -> Machine {
    let lines = |items: &[&str]| items.iter().map(|item| format!("  - {item}\n")).collect::<String>();
    let yaml = format!(
        "name: p\nstates:\n{}transitions: {}\n{}",
        lines(states),
        if transitions.is_empty() { "[]" } else { "" },
        lines(transitions)
    );
    let compiled = compile_text("p.yaml", &yaml);
    let findings = compiled.findings;
    compiled.definition.unwrap_or_else(|| panic!("{findings:?}")).machine
}
