//! The machines of checkpoint processes. Test names say the rule.

use switchward_machine::{
    ActKind, ArgRule, Breach, BudgetUnit, Decision, Ending, Exit, GateIx, GateKind, Layer, Limit, Machine,
    Micros, NoExit, NodeIx, Num, Op, Otherwise, Outcome, ParamIx, Period, Resolve, Target,
};

use super::support::{clean, compile_text, machine_with, process_with};

fn end(outcome: Outcome) -> Target {
    Target::End(Ending::plain(outcome))
}

fn layer<'a>(machine: &'a Machine, name: &str) -> &'a Layer {
    machine.policy.layers.iter().find(|layer| layer.name == name).expect("the layer is there")
}

/// The exit of the answer `x` with this `next` and action, and true if the process has no findings.
fn exit(answer: &str) -> (Exit, bool) {
    let yaml = format!(
        "name: p\ninitial: a\nstates:\n  a: {{question: Q, answers: {{go: {{next: b}}, x: {answer}}}}}\n  b: {{question: Bye}}\n"
    );
    let compiled = compile_text("p.yaml", &yaml);
    let machine = compiled.definition.expect("no error").machine;
    let node = machine.nodes.iter().find(|node| node.name == "a").expect("it has the state");
    let (_, exit) = node.answer("x").expect("it has the answer");
    (exit.clone(), compiled.findings.is_empty())
}

/// The whole table of action and next.
#[test]
fn the_action_and_next_make_the_exit() {
    let to_b = Target::Node(NodeIx(1));
    for (answer, to, is_clean) in [
        ("{next: b}", to_b.clone(), true),
        ("{next: null}", end(Outcome::Completed), true),
        ("{next: b, action: null}", to_b.clone(), true),
        ("{next: null, action: block}", end(Outcome::Blocked), true),
        ("{next: b, action: block}", end(Outcome::Blocked), false),
        ("{next: null, action: complete}", end(Outcome::Completed), true),
        ("{next: b, action: complete}", end(Outcome::Completed), false),
        ("{next: b, action: warn}", to_b.clone(), true),
        ("{next: null, action: warn}", end(Outcome::Completed), true),
        ("{next: b, action: notify_human}", to_b.clone(), true),
        ("{next: null, action: notify_human}", end(Outcome::Completed), true),
    ] {
        let (exit, was_clean) = exit(answer);
        assert_eq!((exit.to, was_clean), (to, is_clean), "{answer}");
        let log = if answer.contains("warn") { vec![Op::Log("a: x".into())] } else { Vec::new() };
        assert_eq!(exit.ops, log, "{answer}");
        assert_eq!(exit.hold, answer.contains("notify_human").then_some(GateIx(1)), "{answer}");
    }
}

/// A refusal of the review ends the session, so that the cycle has an end.
#[test]
fn a_review_leads_to_an_end() {
    clean(
        "name: p\ninitial: a\nstates:\n  a: {question: Q, answers: {go: {next: a, action: notify_human}}}\n",
    );
}

#[test]
fn a_state_asks_its_question_and_one_without_answers_completes() {
    for bye in ["{question: Bye}", "{question: Bye, answers: {}}", "{question: Bye, answers: null}"] {
        let machine = clean(&format!(
            "name: p\ninitial: a\nstates:\n  a: {{question: Q, answers: {{x: {{next: b}}}}}}\n  b: {bye}\n"
        ))
        .machine;
        let [a, b] = machine.nodes.as_slice() else { panic!("two states, two nodes") };
        assert!(matches!(a.acts[0].kind, ActKind::Ask(ask) if !ask.turns), "{bye}");
        assert_eq!((a.text.as_deref(), &a.on_no_exit), (Some("Q"), &NoExit::Stay));
        assert_eq!(b.acts[0].kind, ActKind::Do(Vec::new()), "{bye}");
        assert_eq!(b.on_no_exit, NoExit::End(Ending::plain(Outcome::Completed)));
        assert_eq!((b.text.as_deref(), b.exits.len()), (Some("Bye"), 0));
    }
}

#[test]
fn states_and_answers_keep_the_authors_order() {
    let machine = clean(
        "name: p\ninitial: z\nstates:\n  m: {question: Q}\n  z: {question: Q, answers: {b: {next: m}, a: {next: z}}}\n",
    )
    .machine;
    assert_eq!(machine.start, NodeIx(1));
    let names: Vec<&str> = machine.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["m", "z"]);
    assert_eq!(machine.nodes[1].answers().collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn gates_are_asks_always_and_notices_where_used() {
    let machine = machine_with("");
    assert_eq!(machine.policy.ask_gate, Some(GateIx(0)));
    let [ask] = machine.gates.as_slice() else { panic!("one gate") };
    assert_eq!(ask.kind, GateKind::ToolAsk);
    assert_eq!(ask.resolve(Decision::Approve), Some(&Resolve::Grant));
    assert_eq!(ask.resolve(Decision::Refuse), Some(&Resolve::Deny));
    let yaml = "name: p\ninitial: a\nstates:\n  a: {question: Q, answers: {x: {next: null, action: notify_human}}}\n";
    let machine = clean(yaml).machine;
    let notice = &machine.gates[1];
    assert_eq!(notice.kind, GateKind::Notify);
    assert_eq!(notice.resolve(Decision::Approve), Some(&Resolve::TakeHeld));
    assert_eq!(notice.resolve(Decision::Refuse), Some(&Resolve::End(Ending::plain(Outcome::Blocked))));
}

#[test]
fn the_opening_holds_prompt_role_and_warnings() {
    let opening = machine_with("initial_prompt: Begin.\npolicy: {role: agent}").opening;
    assert_eq!((opening.text.as_deref(), opening.role.as_deref()), (Some("Begin."), Some("agent")));
    let compiled = compile_text("p.yaml", &process_with("allowed_tools: [tasks]"));
    let opening = compiled.definition.expect("only a warning").machine.opening;
    assert_eq!(
        opening.warnings,
        ["`tasks` in `allowed_tools` is not one of the endpoint's tools and is ignored"]
    );
    assert_eq!((opening.text, opening.role), (None, None));
}

#[test]
fn words_and_meta_are_the_formats() {
    let machine = machine_with("");
    let words = (&*machine.words.waiting, &*machine.words.at_gate, &*machine.words.suspended);
    assert_eq!(words, ("active", "paused", "paused"));
    assert_eq!((&*machine.meta.name, &*machine.meta.format), ("p", "checkpoint"));
}

/// If no rule matches, a call is allowed by default.
#[test]
fn the_policy_layer_is_there_always_and_never_speaks_of_process_step() {
    for lines in ["", "policy: null", "policy: {role: agent}", "policy: {role: agent, deny: null}"] {
        let machine = machine_with(lines);
        let policy = layer(&machine, "policy");
        assert_eq!(policy.otherwise, Otherwise::TenantDefault);
        assert!(policy.deny.is_empty() && policy.ask.is_empty() && policy.allow.is_empty());
        assert!(
            policy.speaks("bash", switchward_machine::NodeIx(0))
                && policy.speaks("mcp:process:task", switchward_machine::NodeIx(0))
        );
        assert!(!policy.speaks("mcp:process:process_step", switchward_machine::NodeIx(0)));
    }
}

/// See `docs/formats-checkpoint.md#the-policy`.
#[test]
fn rules_carry_their_limits_and_asks_their_gate() {
    let machine = machine_with(
        "policy:\n  role: agent\n  deny: [{capability: rm}]\n  ask: [{capability: 'mcp:*', budget_limit: {period: daily, max_usd: 5.00}}]\n  allow:\n  - {capability: bash, budget_limit: {max_usd: 0.000001, period: monthly}, rate_limit: {window_seconds: 60, max_calls: 2}}\n  - {capability: x, rate_limit: null, budget_limit: {max_usd: 0, period: hourly}}",
    );
    let policy = layer(&machine, "policy");
    let money = |max, period| Limit::Money { max: Micros(max), period };
    assert_eq!(policy.deny[0].pattern.as_str(), "rm");
    assert_eq!((policy.deny[0].gate, policy.deny[0].limits.len()), (None, 0));
    assert_eq!(policy.ask[0].gate, Some(GateIx(0)));
    assert_eq!(policy.ask[0].limits, [money(5_000_000, Period::Day)]);
    assert_eq!(policy.allow[0].gate, None);
    assert_eq!(policy.allow[0].limits, [Limit::Rate { max: 2, window_ms: 60_000 }, money(1, Period::Month)]);
    assert_eq!(policy.allow[1].limits, [money(0, Period::Hour)]);
}

/// See `docs/formats-checkpoint.md#the-process`, `allowed_tools`: intersected with the whitelist; absent means all of
/// it, empty none.
#[test]
fn allowed_tools_make_a_closed_layer() {
    for (lines, allowed) in [
        ("", &["memory", "task", "process_step"][..]),
        ("allowed_tools: null", &["memory", "task", "process_step"]),
        ("allowed_tools: []", &[]),
        ("allowed_tools: [task, memory, task]", &["memory", "task"]),
    ] {
        let machine = machine_with(lines);
        let tools = layer(&machine, "allowed_tools");
        let names: Vec<&str> = tools.allow.iter().map(|rule| rule.pattern.as_str()).collect();
        let wanted: Vec<String> = allowed.iter().map(|tool| format!("mcp:process:{tool}")).collect();
        assert_eq!(names, wanted, "{lines}");
        assert_eq!(tools.otherwise, Otherwise::Deny);
        assert!(
            tools.speaks("mcp:process:memory", switchward_machine::NodeIx(0))
                && !tools.speaks("mcp:process:process_step", switchward_machine::NodeIx(0))
        );
        assert!(
            !tools.speaks("bash", switchward_machine::NodeIx(0))
                && !tools.speaks("mcp:files:read", switchward_machine::NodeIx(0))
        );
    }
}

/// See `docs/formats-checkpoint.md#the-process`, `session_budget_usd`: a parameter, so that it can be raised.
#[test]
fn the_session_budget_is_a_parameter_and_spares_process_step() {
    let machine = machine_with("session_budget_usd: 2.5");
    let [budget] = machine.budgets.as_slice() else { panic!("one budget") };
    assert_eq!(
        (budget.unit, budget.cap, budget.breach),
        (BudgetUnit::UsdMicros, Num::Param(ParamIx(0)), Breach::DenyCalls)
    );
    assert!(budget.stops("bash") && !budget.stops("mcp:process:process_step"));
    assert_eq!((&*machine.params[0].name, machine.params[0].value), ("cost_usd", 2_500_000));
    assert!(machine_with("session_budget_usd: null").budgets.is_empty());
    assert_eq!(machine_with("session_budget_usd: 0").params[0].value, 0);
}

/// See `docs/formats-checkpoint.md#the-process`, `email_config`: an absent list restricts nothing, an empty one allows
/// no address.
#[test]
fn email_config_makes_a_layer_and_a_budget() {
    let machine = machine_with(
        "email_config: {max_emails_per_session: 0, allowed_from: [], allowed_to: ['*@Example.org']}",
    );
    let mail = layer(&machine, "email_config");
    assert!(
        mail.speaks("resend-email", switchward_machine::NodeIx(0))
            && !mail.speaks("bash", switchward_machine::NodeIx(0))
            && !mail.speaks("mcp:resend:send", switchward_machine::NodeIx(0))
    );
    assert_eq!((mail.allow.len(), mail.otherwise), (1, Otherwise::Deny));
    let Some(ArgRule::Mail { from, to }) = &mail.allow[0].args else { panic!("the rule checks addresses") };
    assert_eq!(from.as_deref(), Some(&[][..]));
    assert_eq!(to.as_ref().map(|to| to[0].as_str()), Some("*@example.org"));
    let [budget] = machine.budgets.as_slice() else { panic!("one budget") };
    assert_eq!((budget.unit, budget.cap), (BudgetUnit::Mails, Num::Literal(0)));
    assert!(budget.stops("resend-email") && !budget.stops("bash"));

    let machine = machine_with("email_config: {}");
    let rule = &layer(&machine, "email_config").allow[0];
    assert_eq!(rule.args, Some(ArgRule::Mail { from: None, to: None }));
    assert!(machine.budgets.is_empty());
    assert!(
        machine_with("email_config: null").policy.layers.iter().all(|layer| layer.name != "email_config")
    );
}

/// What the system assigns is accepted and ignored.
#[test]
fn system_fields_change_nothing() {
    let lines = "id: [proc_01]\ncreatedAt: 2026-01-01T00:00:00.000Z\nupdatedAt: {a: null}";
    assert_eq!(machine_with(lines).encode(), machine_with("").encode());
}

#[test]
fn warnings_of_the_graph_wait_until_the_states_are_right() {
    let yaml =
        "name: p\ninitial: a\nstates:\n  a: {question: Q, answers: {x: {next: bb}}}\n  b: {question: Q}\n";
    let findings = compile_text("p.yaml", yaml).findings;
    assert_eq!(
        findings.iter().map(|it| it.code).collect::<Vec<_>>(),
        ["SW1204"],
        "there is no finding that b is unreachable"
    );
    let yaml = "name: p\ninitial: a\nstates:\n  a: {question: Q, answers: {<<: {x: {next: b}}}}\n  b: {question: Q}\n";
    let findings = compile_text("p.yaml", yaml).findings;
    assert_eq!(findings.iter().map(|it| it.code).collect::<Vec<_>>(), ["SW1110"]);
    let yaml = "name: P\ninitial: a\nstates:\n  a: {question: Q}\n  b: {question: Q}\n";
    let findings = compile_text("p.yaml", yaml).findings;
    assert_eq!(findings.iter().map(|it| it.code).collect::<Vec<_>>(), ["SW1201", "SW1206"]);
}
