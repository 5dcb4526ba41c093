//! Why deliveries fail. Compared with `expected/`.

use crate::support::{entry, same};
use switchward_messages::{delivery_detail, delivery_failure, public_value};
use switchward_state::PublicValue;
use switchward_testkit::{delivery_details, failure_codes, missing_facts};

#[test]
fn every_failure_is_rendered() {
    let all = failure_codes();
    assert_eq!(missing_facts(&all), Vec::<String>::new());
    let made: String = all.iter().map(|code| entry(code.word(), &[&delivery_failure(code, None)])).collect();
    same(&made, include_str!("../expected/deliveries.txt"));
}

#[test]
fn every_detail_is_rendered() {
    let all = delivery_details();
    assert_eq!(missing_facts(&all), Vec::<String>::new());
    let made: String = all.iter().map(|detail| delivery_detail(detail) + "\n").collect();
    same(&made, include_str!("../expected/delivery_details.txt"));
}

#[test]
fn a_detail_has_the_same_words_wherever_a_failure_is_shown() {
    for code in failure_codes() {
        let value = |detail| PublicValue::DeliveryFailure(code.clone(), detail);
        assert_eq!(public_value(&value(None)), delivery_failure(&code, None));
        for detail in delivery_details() {
            let words = delivery_detail(&detail);
            assert_eq!(delivery_failure(&code, Some(&detail)), words);
            assert_eq!(public_value(&value(Some(detail))), words);
        }
    }
}
