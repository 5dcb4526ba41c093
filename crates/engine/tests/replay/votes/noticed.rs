//! The notice of a gate that was opened without recipients is sent again when the directory knows some.

use switchward_state::delivery::RetryEffect;

use super::*;

#[test]
fn a_notice_that_is_sent_again_asks_those_whom_an_escalation_has_asked_still() {
    let contact = Some("eve@y.example".to_owned());
    let started = |start: Start| Start { contact, ..start };
    let mut table = Table::begin(people(&[]), &["conversation_contact"], "agent", started).unwrap();
    let asked = |table: &Table| table.open().unwrap().body.asked.unwrap().to;
    let notice = table.open().unwrap().body.notice.expect("nobody is asked");
    assert_eq!(asked(&table), Vec::<String>::new());
    table.later(ROUND_MS);
    assert_eq!(asked(&table), [HEAD, CLEO_AT_HOME]);

    table.put(Directory { audience: vec![ANN.into(), HEAD.into()], ..Directory::default() });
    table.role = Role::Operator;
    let retry = Body::Delivery(DeliveryCommand::RetryEffect(RetryEffect { number: notice }));
    table.submit("operator", retry).unwrap();
    assert_eq!(asked(&table), [HEAD, CLEO_AT_HOME, ANN]);
    let sent = table.sent();
    assert_eq!((sent.len(), sent[0].0.as_str(), sent[0].1), (1, ANN, Purpose::Ask), "the others were asked");
    assert_eq!(table.open().unwrap().body.notice, None);

    table.role = Role::Approver;
    table.decide(How::Mail, CLEO_AT_HOME, Decision::Approve).unwrap();
    assert!(matches!(table.closed().resolution, Resolution::Decided { by, .. } if by == CLEO_AT_HOME));
}
