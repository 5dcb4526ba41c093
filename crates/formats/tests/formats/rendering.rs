//! Findings as people and programs see them.

use serde_json::json;
use switchward_formats::{Style, render_json, render_segments};

use super::support::{compile_text, process_with, render_text};

const TWO_FAULTS: &str = "name: Deploy Gate\ninitial: env\nstates:\n  env-check: {question: Q}\n";

#[test]
fn a_block_names_the_position_shows_the_line_and_says_what_to_do() {
    let findings = compile_text("p.yaml", TWO_FAULTS).findings;
    let text = "\
error[SW1201]: `name` may hold lower-case letters, digits and hyphens only, and is `Deploy Gate`
 --> p.yaml:1:7
1 | name: Deploy Gate
  |       ^^^^^^^^^^^
  = nearest: deploy-gate

error[SW1203]: `initial` names the state `env`, which does not exist
 --> p.yaml:2:10
2 | initial: env
  |          ^^^
  = nearest: env-check
  = allowed: env-check
";
    assert_eq!(render_text(&findings, TWO_FAULTS.as_bytes()), text);
}

#[test]
fn the_pieces_say_what_to_colour() {
    let findings = compile_text("p.yaml", TWO_FAULTS).findings;
    let segments = render_segments(&findings, TWO_FAULTS.as_bytes());
    let of = |style| -> Vec<&str> {
        segments.iter().filter(|it| it.style == style).map(|it| it.text.as_str()).collect()
    };
    assert_eq!(of(Style::Error), ["error[SW1201]", "error[SW1203]"]);
    assert_eq!(of(Style::Mark), ["      ^^^^^^^^^^^\n", "         ^^^\n"]);
    assert_eq!(of(Style::Help), ["nearest: deploy-gate\n", "nearest: env-check\n", "allowed: env-check\n"]);
}

#[test]
fn the_json_form_is_the_public_one() {
    let compiled = compile_text("p.yaml", TWO_FAULTS);
    let text = render_json("dir/\"p\".yaml", compiled.format, &compiled.findings);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let finding = json!({
        "code": "SW1203", "severity": "error", "line": 2, "column": 10,
        "message": "`initial` names the state `env`, which does not exist",
        "allowed": ["env-check"], "nearest": "env-check", "hint": null,
    });
    assert_eq!(json["findings"][1], finding);
    assert_eq!(
        (&json["file"], &json["format"], &json["ok"]),
        (&json!("dir/\"p\".yaml"), &json!("checkpoint"), &json!(false))
    );
    let keys = "{\"file\":\"\",\"format\":null,\"ok\":true,\"findings\":[]}";
    assert_eq!(render_json("", None, &[]), keys);
}

#[test]
fn a_warning_alone_is_ok() {
    let compiled = compile_text("p.yaml", &process_with("allowed_tools: [tasks]"));
    let text = render_json("p.yaml", compiled.format, &compiled.findings);
    assert!(text.contains("\"ok\":true") && text.contains("\"severity\":\"warning\""), "{text}");
}

#[test]
fn nothing_of_a_hostile_source_reaches_the_terminal() {
    let yaml = "name: \"\\e[2J\\u202eevil\"\ninitial: \"\u{202e}a\"\nstates: {a: {question: Q}}\n";
    let compiled = compile_text("\u{1b}[31m.yaml", yaml);
    let text = render_text(&compiled.findings, yaml.as_bytes());
    let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(compiled.findings.len() >= 2 && !text.contains(moves), "{text:?}");
}

#[test]
fn a_long_line_is_shown_around_the_mark() {
    let json = format!(
        "{{\"initial\": \"b\", \"id\": \"{}\", \"name\": \"é\", \"states\": {{\"a\": {{\"question\": \"\"}}}}}}",
        "x".repeat(5000)
    );
    let findings = compile_text("p.json", &json).findings;
    let text = render_text(&findings, json.as_bytes());
    assert!(text.lines().all(|line| line.chars().count() < 130), "{text}");
    let name = text.lines().position(|line| line.contains("\"name\": \"é\"")).expect("the line is shown");
    let (line, mark) = (text.lines().nth(name).unwrap(), text.lines().nth(name + 1).unwrap());
    let at = mark.chars().position(|c| c == '^').expect("there is a mark");
    assert_eq!(line.chars().skip(at).take(3).collect::<String>(), "\"é\"");
}
