use super::*;

const HERE: &str = "http://127.0.0.1:7400";

fn context(typed: bool) -> Option<Named> {
    let (api_key, role) = ("its".to_owned(), "agent".to_owned());
    let ca = Some(PathBuf::from("ca.pem"));
    Some(Named {
        name: "dev-agent".to_owned(),
        context: Context { address: HERE.to_owned(), api_key, role, ca },
        typed,
    })
}

fn chosen(address: Option<&str>, key: Option<&str>, named: Option<Named>) -> Result<Target, Exit> {
    Target::chosen(address.map(str::to_owned), key.map(str::to_owned), None, named)
}

#[test]
fn a_key_that_is_given_beats_the_context_in_use_and_not_one_that_is_typed() {
    let key = |given: Option<&str>, typed| chosen(None, given, context(typed)).unwrap().key;
    assert_eq!((key(None, false).as_str(), key(None, true).as_str()), ("its", "its"));
    assert_eq!((key(Some(" mine\n"), false).as_str(), key(Some("mine"), true).as_str()), ("mine", "its"));
    let same = chosen(Some("http://127.0.0.1:7400/"), None, context(false)).unwrap();
    assert_eq!((same.key.as_str(), same.ca), ("its", Some(PathBuf::from("ca.pem"))));
}

#[test]
fn the_key_of_a_context_is_not_sent_to_another_server() {
    let other = Some("http://10.0.0.1:7400");
    assert!(chosen(other, None, context(false)).unwrap_err().message().contains("no API key"));
    let typed = chosen(other, Some("mine"), context(true)).unwrap_err();
    assert!(typed.message().starts_with("the context dev-agent is for http://127.0.0.1:7400"), "{typed:?}");
    let mine = chosen(other, Some("mine"), context(false)).unwrap();
    assert_eq!((mine.key.as_str(), mine.ca), ("mine", None), "nor is its authority believed elsewhere");
}

#[test]
fn without_an_address_there_is_no_server() {
    let error = chosen(None, None, None).unwrap_err();
    assert_eq!(error.message(), "no server address is set");
}

#[test]
fn an_address_is_a_whole_one() {
    for address in ["127.0.0.1:7400", "ftp://x", "http://", "http://a b", ""] {
        assert!(endpoint(address, None).is_err(), "{address}");
    }
    assert!(endpoint("http://[::1]:7400", None).is_ok());
}
