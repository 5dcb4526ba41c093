//! The stored forms of this crate's types: one of each, as hex. `BLESS=1` rewrites the file.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails if it cannot continue, and it reads golden files"
)]

use minicbor::{CborLen, Decode, Encode};
use switchward_expr::{Braces, CmpOp, DataType, Logic, Path, Reducer, Transform};

#[derive(Debug, PartialEq, Encode, Decode, CborLen)]
struct Forms {
    #[n(0)]
    path: Path,
    #[n(1)]
    braces: Braces,
    #[n(2)]
    ops: Vec<CmpOp>,
    #[n(3)]
    reducers: Vec<Reducer>,
    #[n(4)]
    types: Vec<DataType>,
    #[n(5)]
    transforms: Vec<Transform>,
    #[n(6)]
    logic: Logic,
}

fn forms() -> Forms {
    Forms {
        path: Path::new("customer.address.0.city").unwrap(),
        braces: Braces::parse("Hello {gathered.name}, {\"a\": 1}"),
        ops: CmpOp::ALL.to_vec(),
        reducers: Reducer::ALL.to_vec(),
        types: DataType::ALL.to_vec(),
        transforms: Transform::WORDS.iter().map(|word| Transform::from_word(word).unwrap()).collect(),
        logic: Logic::guard_json(r#"{"and": [{"<": [{"var": "order.total"}, 100.5]}, {"!": {"var": "é"}}]}"#)
            .unwrap(),
    }
}

#[test]
fn each_type_keeps_its_form() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/expr.v1.hex");
    let bytes = minicbor::to_vec(forms()).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, format!("{hex}\n")).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        hex,
        known.trim(),
        "the form has changed, but machines contain it and sessions are pinned to their digests"
    );
    assert_eq!(minicbor::decode::<Forms>(&bytes).unwrap(), forms());
    assert_eq!(minicbor::len(forms()), bytes.len());
}
