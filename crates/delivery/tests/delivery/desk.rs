//! The desk between a bus in memory and servers on this machine.

use serde_json::json;
use switchward_bus::Envelope;
use switchward_delivery::desk::{Errand, ErrandError};

const GOLDEN: &str = include_str!("../golden/errand.v1.json");

fn golden() -> Errand {
    Errand {
        name: "ses_1:3".to_owned(),
        tenant: 7,
        session: "ses_1".to_owned(),
        item: 3,
        token: "t0k3n".to_owned(),
        kind: "http".to_owned(),
        input: json!({ "method": "GET", "url": "https://example.org/" }),
        result_schema: json!({}),
        deadline_ms: 1_767_225_600_000,
        idempotency_key: "ses_1:3:http".to_owned(),
    }
}

#[test]
fn an_errand_is_written_and_read_as_ever() {
    assert_eq!(serde_json::to_string(&golden()).expect("it can be written"), GOLDEN.trim_end());
    let envelope =
        |tenant, body: &str| Envelope { tenant, id: "a".to_owned(), body: body.as_bytes().to_vec() };
    assert_eq!(Errand::read(&envelope(7, GOLDEN)), Ok(golden()));
    let newer = GOLDEN.replacen('{', "{\"more\":1,", 1);
    assert_eq!(Errand::read(&envelope(7, &newer)), Ok(golden()));
    assert_eq!(Errand::read(&envelope(8, GOLDEN)), Err(ErrandError::OtherTenant));
    let broken = Errand::read(&envelope(7, "{\"name\":")).expect_err("it is cut");
    assert!(matches!(broken, ErrandError::Unreadable(_)), "{broken}");
    assert!(!format!("{:?}", golden()).contains("t0k3n"));
}
