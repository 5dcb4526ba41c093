//! Invalid definitions: the deploy gate and others with values, lines and bytes changed, as JSON and as YAML.
//! Checking and deploying must agree on each.

use prost::Message;
use serde_json::{Map, Value as Json, json};
use switchward_api::v1;

use super::dice::Dice;
use super::{Attack, Target, by};
use crate::protocols::{Protocol, reply};
use crate::rpcs::all;

pub(super) const SENT: usize = 5_000;
const CHANGED: usize = 1_200;
const DAMAGED: usize = 800;
const SNIPPETS: usize = 600;

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
const REFERENCE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/reference.json");
const YAML: [&str; 4] = [
    include_str!("../../../../../tests/corpus/checkpoint/definitions/actions.yaml"),
    include_str!("../../../../../tests/corpus/checkpoint/definitions/both-limits.yaml"),
    include_str!("../../../../../tests/corpus/checkpoint/definitions/mail.yaml"),
    include_str!("../../../../../tests/corpus/checkpoint/definitions/patterns.yaml"),
];

/// Values that are invalid in most positions of a definition.
fn odd(dice: &mut Dice) -> Json {
    let all = [
        json!(null),
        json!(-1),
        json!(0),
        json!(0.000_000_1),
        json!(1e308),
        json!(u64::MAX),
        json!(true),
        json!(""),
        json!("*"),
        json!("**"),
        json!("mcp:*:x"),
        json!("env-check"),
        json!("nowhere"),
        json!("Env-Check"),
        json!("\u{202e}\u{0}"),
        json!("x".repeat(70)),
        json!([]),
        json!(["a", 1, null]),
        json!({}),
        json!({"next": "env-check", "action": "explode"}),
        json!({"capability": "bash", "rate_limit": {"max_calls": 0, "window_seconds": 0}}),
        json!({"capability": "bash", "budget_limit": {"max_usd": -3, "period": "weekly"}}),
        json!({"unknown": {"unknown": {}}}),
        json!(vec!["x"; 400]),
    ];
    dice.pick(&all).clone()
}

/// Changes something at one random position inside a value.
fn change(dice: &mut Dice, value: &mut Json) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = dice.pick(&names).clone();
            match dice.below(7) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert(format!("{name}s"), odd(dice))),
                2 => rename(dice, members, &name),
                3 => drop(members.insert(name, odd(dice))),
                _ => change(dice, members.get_mut(&name).expect("the member exists")),
            }
        }
        Json::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            match dice.below(5) {
                0 => drop(items.remove(at)),
                1 => items.push(odd(dice)),
                2 => items.push(items[at].clone()),
                _ => change(dice, &mut items[at]),
            }
        }
        other => *other = odd(dice),
    }
}

fn rename(dice: &mut Dice, members: &mut Map<String, Json>, name: &str) {
    let to = ["", "Capital", "with space", "\u{e9}", "next", "initial", "nodes", "*", "a.b", "-"];
    if let Some(value) = members.remove(name) {
        members.insert((*dice.pick(&to)).to_owned(), value);
    }
}

/// Sources whose size or shape is the attack.
fn monsters() -> Vec<(String, Vec<u8>)> {
    let levels: String = (1..30).fold("a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let before = level - 1;
        format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "))
    });
    let states: String = (0..20_000).map(|at| format!("  s{at}: {{question: q}}\n")).collect();
    let yaml = [
        levels,
        format!("name: x\ninitial: s0\nstates:\n{states}"),
        "[".repeat(5_000),
        "- ".repeat(50_000),
        "? ".repeat(20_000),
        format!("{}1", "a: ".repeat(10_000)),
        "&a [*a]".into(),
        "name: x\n<<: {initial: a}\nstates: {}".into(),
        "--- a\n--- b\n".into(),
        "name: !!python/object:os.system x".into(),
        "name: x\n\tinitial: a".into(),
        "name: no\ninitial: on\nstates: {no: {question: 012}, on: {question: 2026-01-01}}".into(),
        "%YAML 3.0\n---\nname: x".into(),
        "!<tag:yaml.org,2002:map> {}".into(),
        format!("name: \"{}\"", "\\x41".repeat(50_000)),
        format!("# {}", "x".repeat(1_000_000)),
        "\u{feff}name: x".into(),
        "name: \u{0}x".into(),
    ];
    let json = [
        "[".repeat(100_000),
        format!("{{\"name\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000)),
        "{\"name\":\"x\",\"name\":\"y\"}".into(),
        "{\"name\":\"\\ud800\"}".into(),
        "{\"initial\":1e400,\"states\":{}}".into(),
        DEPLOY_GATE.replace("env-check", &"e".repeat(300)),
        DEPLOY_GATE.replace("yes", "\\u0000"),
        format!("{DEPLOY_GATE}{DEPLOY_GATE}"),
        format!("\u{feff}{DEPLOY_GATE}"),
        "null".into(),
        String::new(),
    ];
    let named = |name: &str, texts: Vec<String>| -> Vec<(String, Vec<u8>)> {
        texts.into_iter().map(|text| (name.to_owned(), text.into_bytes())).collect()
    };
    [named("p.yaml", yaml.to_vec()), named("p.json", json.to_vec())].concat()
}

/// Tokens of YAML and JSON.
const GRAMMAR: &[&str] = &[
    "name: x\n",
    "initial: a\n",
    "states:\n",
    "  a:\n",
    "    question: q\n",
    "    answers: {yes: {next: null}}\n",
    "- ",
    "? ",
    ": ",
    "&a ",
    "*a",
    "!!str ",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    "# ",
    "---\n",
    "...\n",
    "\t",
    "\r\n",
    "\n",
    "  ",
    "%TAG ! x\n",
    "<<: ",
    "~",
    "null",
    "0o7",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\\",
];

fn sources(dice: &mut Dice) -> Vec<(String, Vec<u8>)> {
    let mut sources = monsters();
    let (gate, reference) = (parsed(DEPLOY_GATE), parsed(REFERENCE));
    for turn in 0..CHANGED {
        let mut source = if turn % 3 == 0 { reference.clone() } else { gate.clone() };
        for _ in 0..=dice.below(3) {
            change(dice, &mut source);
        }
        // JSON is YAML, so the other reader gets it as well.
        let name = if turn % 4 == 0 { "p.yaml" } else { "p.json" };
        sources.push((name.into(), source.to_string().into_bytes()));
    }
    for turn in 0..DAMAGED {
        let (name, good) =
            if turn % 2 == 0 { ("p.json", DEPLOY_GATE) } else { ("p.yaml", YAML[turn / 2 % YAML.len()]) };
        sources.push((name.into(), dice.damage(good.as_bytes())));
    }
    for turn in 0..SNIPPETS {
        let mut text: String = YAML[turn % YAML.len()].to_owned();
        if turn % 3 == 0 {
            text.clear();
        }
        for _ in 0..=dice.below(8) {
            let mut at = dice.below(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, dice.pick::<&str>(GRAMMAR));
        }
        sources.push(("p.yaml".into(), text.into_bytes()));
    }
    sources
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).expect("a definition")
}

fn bundle(path: &str, content: &[u8]) -> Vec<v1::DefinitionFile> {
    vec![v1::DefinitionFile { path: path.to_owned(), content: content.to_vec().into() }]
}

async fn target(attack: &Attack, method: &str) -> Target {
    let rpc = all().into_iter().find(|rpc| rpc.method == method).expect("a row");
    Target::of(attack, rpc).await
}

fn set(target: &mut Target, message: &impl Message) {
    let bytes = message.encode_to_vec();
    let input = target.rpc.descriptor().input();
    target.good = prost_reflect::DynamicMessage::decode(input, &bytes[..]).expect("a request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_definitions_get_findings() {
    let mut attack = Attack::start("definitions").await;
    let (mut check, mut deploy) =
        (target(&attack, "CheckDefinition").await, target(&attack, "DeployDefinition").await);
    let (mut good, mut bad) = (0, 0);
    for (turn, (path, content)) in sources(&mut Dice::new(6)).into_iter().enumerate() {
        let what = format!("{path}: {:.300}", String::from_utf8_lossy(&content));
        let protocol = Protocol::ALL[turn % Protocol::ALL.len()];
        let files = bundle(&path, &content);
        set(&mut check, &v1::CheckDefinitionRequest { files: files.clone(), format: 0 });
        let raw = by(protocol, &check.rpc, &check.good);
        let answer = check.shoot(&mut attack, raw, what.clone()).await;
        let answer = answer.unwrap_or_else(|| panic!("a bundle with errors must get an answer: {what}"));
        let answer = reply(protocol, "CheckDefinition", &answer).expect("a reply");
        let checked = v1::CheckDefinitionResponse::decode(answer).expect("a reply");
        let errors =
            checked.findings.iter().filter(|finding| finding.severity() == v1::Severity::Error).count();
        assert_eq!(checked.ok, errors == 0, "{what}: {:?}", checked.findings);

        set(&mut deploy, &v1::DeployDefinitionRequest { files, ..v1::DeployDefinitionRequest::default() });
        let raw = by(protocol, &deploy.rpc, &deploy.good);
        let deployed = deploy.shoot(&mut attack, raw, what.clone()).await;
        assert_eq!(checked.ok, deployed.is_some(), "checked and deployed: {what}");
        *(if checked.ok { &mut good } else { &mut bad }) += 1;
    }
    assert!(good > 100 && bad > 1_000, "{good} good, {bad} bad");
    attack.end(SENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_bundles_are_refused_by_field() {
    let mut attack = Attack::start("bundles").await;
    let file = |path: &str| v1::DefinitionFile {
        path: path.to_owned(),
        content: DEPLOY_GATE.as_bytes().to_vec().into(),
    };
    let large = v1::DefinitionFile { content: vec![b' '; 1024 * 1024 + 1].into(), ..file("p.json") };
    let many = (0..257).map(|at| file(&format!("p{at}.json"))).collect();
    let mut bundles = vec![
        ("files", Vec::new()),
        ("files", many),
        ("files", vec![large]),
        ("files[1].path", vec![file("p.json"), file("p.json")]),
    ];
    let long = "p".repeat(256);
    for path in
        ["", "/p.json", "../p.json", "a/../p.json", "a//p.json", ".", "a/", "p\0.json", "p\n.json", &long]
    {
        bundles.push(("files[0].path", vec![file(path)]));
    }
    for method in ["CheckDefinition", "DeployDefinition"] {
        let mut target = target(&attack, method).await;
        for (field, files) in &bundles {
            if method == "CheckDefinition" {
                set(&mut target, &v1::CheckDefinitionRequest { files: files.clone(), format: 0 });
            } else {
                let files = files.clone();
                set(
                    &mut target,
                    &v1::DeployDefinitionRequest { files, ..v1::DeployDefinitionRequest::default() },
                );
            }
            let raw = by(Protocol::Grpc, &target.rpc, &target.good).with_key(&target.secret);
            let answer = attack.harness.node.line.send(raw.clone()).await;
            let refusal = crate::refusal::refused(super::outcome(&answer), "FIELD_INVALID");
            assert_eq!(refusal.fields, [*field], "{method}");
            target.shoot(&mut attack, raw, (*field).to_owned()).await;
        }
    }
    attack.end(0).await;
}
