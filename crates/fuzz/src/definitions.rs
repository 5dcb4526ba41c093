//! Definitions and scenarios: the bytes of one file, read as YAML and as JSON.

use switchward_formats::{Compiled, Finding, compile_file, has_errors, quoted};
use switchward_machine::Machine;

const DEFINITIONS: [&str; 2] = ["definition.yaml", "definition.json"];
const SCENARIO: &str = "definition.scenario.yaml";

/// Returns true if the bytes are a definition or a scenario.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let mut accepted = false;
    for path in DEFINITIONS {
        let compiled = compile_file(path, bytes, None);
        check(&compiled, bytes);
        assert_eq!(compiled, compile_file(path, bytes, None), "the same bytes compile to different results");
        accepted |= compiled.definition.is_some();
    }
    match switchward_scenario::parse(SCENARIO, bytes) {
        Ok(_) => accepted = true,
        Err(findings) => {
            assert!(has_errors(&findings), "a scenario is refused without an error");
            check_positions(&findings, bytes);
        }
    }
    accepted
}

fn check(compiled: &Compiled, bytes: &[u8]) {
    check_positions(&compiled.findings, bytes);
    assert_eq!(compiled.definition.is_none(), has_errors(&compiled.findings), "an error or a machine");
    if let Some(definition) = &compiled.definition {
        let machine = &definition.machine;
        let encoded = machine.encode();
        let decoded = Machine::decode(&encoded).expect("a compiled machine can be decoded");
        assert_eq!(decoded, *machine, "a machine differs after encoding and decoding");
        assert_eq!(decoded.encode(), encoded, "a machine has two encodings");
    }
}

/// A finding points into the file, or just past its end.
fn check_positions(findings: &[Finding], bytes: &[u8]) {
    let lines = u32::try_from(bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count()).unwrap_or(u32::MAX);
    for finding in findings {
        assert!((1..=lines.saturating_add(1)).contains(&finding.line), "{finding:?} in {lines} lines");
        assert!(finding.column > 0 && finding.width > 0, "{finding:?}");
        assert!(!finding.message.is_empty(), "{finding:?}");
        let shown = quoted(&finding.message);
        assert!(!shown.is_empty(), "{finding:?}");
    }
}
