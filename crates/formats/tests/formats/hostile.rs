//! For any input bytes: no panic, and located findings or a machine.

use switchward_formats::{Format, compile_file, has_errors, render_json};
use switchward_machine::Machine;
use switchward_testkit::Rng;

use super::support::{DEPLOY_GATE, DEPLOY_GATE_YAML, Draft, EVERYTHING, REFUND, draw_process, render_text};

const NAMES: [&str; 3] = ["p.json", "p.yaml", "-"];

/// Compiles in every way and checks the invariants of any result.
fn check(bytes: &[u8]) -> bool {
    let mut compiles = false;
    for name in NAMES {
        for format in [None, Some(Format::Checkpoint)] {
            let compiled = compile_file(name, bytes, format);
            let shown = || String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(compiled.definition.is_none(), has_errors(&compiled.findings), "{}", shown());
            let lines = 1 + bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            for finding in &compiled.findings {
                let line = usize::try_from(finding.line).expect("a line fits");
                assert!((1..=lines).contains(&line) && finding.column >= 1, "{finding:?} in {}", shown());
                assert!(!finding.message.is_empty() && finding.width >= 1);
            }
            let rendered = render_text(&compiled.findings, bytes);
            assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
            let json = render_json(name, compiled.format, &compiled.findings);
            serde_json::from_str::<serde_json::Value>(&json).expect("the report is JSON");
            if let Some(definition) = compiled.definition {
                compiles = true;
                let machine = definition.machine;
                assert_eq!(Machine::decode(&machine.encode()), Ok(machine), "{}", shown());
            }
        }
    }
    compiles
}

#[test]
fn arbitrary_bytes_are_answered() {
    let mut rng = Rng::new(1);
    for _ in 0..1_500 {
        let length = rng.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| u8::try_from(rng.below(256)).expect("a byte")).collect();
        check(&bytes);
    }
}

/// Bytes that mean something to one of the parsers, in no order.
#[test]
fn arbitrary_tokens_are_answered() {
    const TOKENS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        ",",
        "\"",
        "'",
        "\\",
        "\\u",
        "d83d",
        "- ",
        "? ",
        "& ",
        "&a ",
        "*a",
        "!",
        "!!str ",
        "|",
        ">",
        "|\n",
        "%",
        "#",
        " #",
        "---\n",
        "...\n",
        "\n",
        "\r",
        "\t",
        "  ",
        "\n  ",
        "\n    ",
        "null",
        "true",
        "1e9",
        "0x1",
        "states",
        "initial",
        "\"states\": {",
        "é",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "<<: ",
        "@",
        "`",
        "a",
        "-",
    ];
    let mut rng = Rng::new(2);
    for _ in 0..4_000 {
        let text: String = (0..rng.below(30)).map(|_| *rng.pick(TOKENS)).collect();
        check(text.as_bytes());
    }
}

/// Flips, cuts, doublings and swaps of valid sources, in both syntaxes.
#[test]
fn mutated_sources_are_answered() {
    let mut rng = Rng::new(3);
    let mut compiled = 0;
    const ROUNDS: usize = 2_500;
    for round in 0..ROUNDS {
        let mut bytes = match round % 4 {
            0 => DEPLOY_GATE.as_bytes().to_vec(),
            1 => DEPLOY_GATE_YAML.as_bytes().to_vec(),
            2 => draw_process(&mut rng).json().into_bytes(),
            _ => draw_process(&mut rng).yaml().into_bytes(),
        };
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &mut rng);
        }
        compiled += usize::from(check(&bytes));
    }
    assert!((ROUNDS / 50..ROUNDS).contains(&compiled), "{compiled} of {ROUNDS} still compile");
}

/// The same for conversation workflows.
#[test]
fn mutated_workflows_are_answered() {
    let mut rng = Rng::new(7);
    let mut compiled = 0;
    const ROUNDS: usize = 600;
    for round in 0..ROUNDS {
        let source = if round % 2 == 0 { REFUND } else { EVERYTHING };
        let mut bytes = source.as_bytes().to_vec();
        for _ in 0..=rng.below(2) {
            mutate(&mut bytes, &mut rng);
        }
        compiled += usize::from(check(&bytes));
    }
    assert!((ROUNDS / 100..ROUNDS).contains(&compiled), "{compiled} of {ROUNDS} still compile");
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.below(bytes.len());
    let end = at + rng.below((bytes.len() - at).min(40));
    match rng.below(6) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            let to = rng.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        4 => bytes[at] = *rng.pick(b"\"{}:\n-0 *&"),
        _ => {
            let other = rng.below(bytes.len());
            bytes.swap(at, other);
        }
    }
}

/// Keys renamed, values of another type, entries doubled, lost and moved: the syntax stays right.
#[test]
fn misshapen_documents_are_answered() {
    let mut rng = Rng::new(4);
    for _ in 0..1_000 {
        let mut draft = draw_process(&mut rng);
        for _ in 0..=rng.below(3) {
            misshape(&mut draft, &mut rng);
        }
        check(draft.json().as_bytes());
        check(draft.yaml().as_bytes());
    }
}

fn misshape(draft: &mut Draft, rng: &mut Rng) {
    const BARE: &[&str] =
        &["null", "true", "-1", "1e400", "0.00000001", "[]", "{}", "9999999999999999999999"];
    const TEXTS: &[&str] = &["", "mcp:*:x", "nowhere", "a\u{0}b", "no", "\u{202e}"];
    match draft {
        Draft::Map(entries) if !entries.is_empty() && !rng.once_in(4) => {
            let at = rng.below(entries.len());
            match rng.below(6) {
                0 => drop(entries.remove(at)),
                1 => entries[at].0.push('x'),
                2 => entries.push(entries[at].clone()),
                _ => misshape(&mut entries[at].1, rng),
            }
        }
        Draft::List(items) if !items.is_empty() && !rng.once_in(4) => {
            let at = rng.below(items.len());
            misshape(&mut items[at], rng);
        }
        Draft::Bare(_) | Draft::Text(_) | Draft::List(_) | Draft::Map(_) => {
            *draft = if rng.once_in(2) {
                Draft::Bare((*rng.pick(BARE)).to_owned())
            } else {
                Draft::Text((*rng.pick(TEXTS)).to_owned())
            };
        }
    }
}

/// Small sources that would be large trees, or deep ones; each is refused by a maximum and not by its size.
#[test]
fn bombs_stay_within_the_maxima() {
    const FULL: usize = 1024 * 1024;
    let full = |piece: &str| piece.repeat(FULL / piece.len());
    let laughs: String = (1..20)
        .map(|at| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(", ")))
        .collect();
    for (bomb, codes) in [
        (format!("a0: &a0 lol\n{laughs}"), &["SW1013", "SW1101", "SW1003"][..]),
        (full("["), &["SW1006", "SW1004", "SW1007"]),
        (full("{\"a\":"), &["SW1006", "SW1007"]),
        (full("- "), &["SW1007", "SW1003"]),
        (full("? "), &["SW1007", "SW1003"]),
        (full("a: "), &["SW1007", "SW1003"]),
        (format!("[{}]", full("1,")), &["SW1007", "SW1003", "SW1001"]),
        (full("- &a b\n"), &["SW1007", "SW1003"]),
        (full("---\n"), &["SW1007", "SW1003"]),
        (full("\u{1}"), &["SW1014", "SW1003", "SW1101", "SW1099"]),
        (full("\""), &["SW1003", "SW1004", "SW1005"]),
        (full("é"), &["SW1101", "SW1003"]),
        (full("\n"), &["SW1015"]),
        // Many values before many empty lines.
        (format!("{}{}", "- a\n".repeat(60_000), "\n".repeat(FULL - 240_000)), &["SW1101", "SW1003"]),
    ] {
        for name in NAMES {
            let compiled = compile_file(name, bomb.as_bytes(), None);
            assert!(compiled.definition.is_none());
            for finding in &compiled.findings {
                assert!(codes.contains(&finding.code), "{name} {:?}: {finding:?}", &bomb[..20]);
            }
            assert!(!render_text(&compiled.findings, bomb.as_bytes()).is_empty());
        }
    }
}
