//! Why deliveries fail. Compared with `expected/`.

use crate::support::{entry, same};
use switchward_messages::{delivery_failure, public_value};
use switchward_state::PublicValue;
use switchward_testkit::{failure_codes, missing_facts};

#[test]
fn every_failure_is_rendered() {
    let all = failure_codes();
    assert_eq!(missing_facts(&all), Vec::<String>::new());
    let made: String = all.iter().map(|code| entry(code.word(), &[&delivery_failure(code, "")])).collect();
    same(&made, include_str!("../expected/deliveries.txt"));
}

#[test]
fn a_diagnostic_is_shown_as_it_came_wherever_a_failure_is_shown() {
    for code in failure_codes() {
        let answer = "550 no such user";
        assert_eq!(delivery_failure(&code, answer), answer);
        let value = |diagnostic: &str| PublicValue::DeliveryFailure(code.clone(), diagnostic.to_owned());
        assert_eq!(public_value(&value(answer)), answer);
        assert_eq!(public_value(&value("")), delivery_failure(&code, ""));
    }
}
