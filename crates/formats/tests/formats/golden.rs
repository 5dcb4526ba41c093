//! The machine of the format's first example, byte for byte.

use switchward_formats::Format;
use switchward_machine::Machine;

use super::support::{DEPLOY_GATE, DEPLOY_GATE_YAML, compile_text, summaries};

const GOLDEN: &str = include_str!("../golden/deploy-gate-machine.v2.hex");
/// As written by builds whose machines had no data.
const EARLIER: &str = include_str!("../golden/deploy-gate-machine.v1.hex");

#[test]
fn the_deploy_gate_compiles_without_findings_to_its_golden_bytes() {
    let compiled = compile_text("deploy-gate.json", DEPLOY_GATE);
    assert_eq!(
        (compiled.format, summaries(&compiled.findings)),
        (Some(Format::Checkpoint), vec!["SW1230 29:11".to_owned()])
    );
    let definition = compiled.definition.expect("there is no finding");
    assert_eq!(definition.name, "deploy-gate");
    assert_eq!(
        definition.source.to_string(),
        "5dc830a55b3c35168efdbedf24846c689145d8321e2d89bde6eadfa40148a255"
    );
    let machine = definition.machine;
    assert!(machine.inputs.is_empty() && machine.reserved_keys.is_empty(), "it is no conversation");
    assert_eq!(hex(&machine.encode()), GOLDEN, "a form that changes gets a new file with the next version");
    assert_eq!(
        machine.digest().to_string(),
        "2d48b6306f75976f4bb4b0567702f36503de3c46d79a1f9afae2d5591836af6d"
    );
}

#[test]
fn the_golden_bytes_are_read_back() {
    for golden in [GOLDEN, EARLIER] {
        let digits: Vec<u8> = golden.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("the file holds hex");
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        let machine = Machine::decode(&bytes).expect("the golden bytes are a machine");
        assert_eq!(Some(machine), compile_text("x.json", DEPLOY_GATE).definition.map(|it| it.machine));
    }
}

#[test]
fn the_same_in_yaml_is_the_same_machine() {
    let compiled = compile_text("deploy-gate.yaml", DEPLOY_GATE_YAML);
    assert_eq!(summaries(&compiled.findings), ["SW1230 29:3"]);
    let machine = compiled.definition.expect("there is no finding").machine;
    assert_eq!(hex(&machine.encode()), GOLDEN);
}

/// Forty bytes a line.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(40).map(line).collect()
}
