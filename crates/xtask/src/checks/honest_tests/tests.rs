use super::*;

fn lines(path: &str, text: &str) -> Vec<usize> {
    check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
}

#[test]
fn tests_that_do_not_run_are_reported() {
    // Put together here, so that a search of this tree for it does not find this.
    let text = ["#[test]\n#[ig", "nore = \"slow\"]\nfn a() {}\n#[test]\nfn b() {}\n"].concat();
    assert_eq!(lines("crates/x/src/lib.rs", &text), [2]);
}

#[test]
fn a_test_that_sleeps_is_reported_and_product_code_and_end_to_end_tests_are_not() {
    let text = "fn a() {\n    sleep(1);\n}\n#[cfg(test)]\nmod tests {\n    fn b() {\n        tokio::time::sleep(c);\n    }\n}\n";
    assert_eq!(lines("crates/x/src/lib.rs", text), [7]);
    assert_eq!(lines("crates/x/tests/restart.rs", text), [2, 7]);
    assert_eq!(lines("crates/x/tests/it/restart.rs", text), Vec::<usize>::new());
}
