//! `switchward mail`: ingests received mail, and sends mail in a session's name.

use http::StatusCode;
use serde_json::Value;
use switchward_mail::limits::MESSAGE_BYTES_MAX;

use super::talk::Talk;
use super::{drive, quarantine};
use crate::args::{IngestMail, MailArgs, MailCommand, On, Output, files};
use crate::client::{Brought, Target, bring_mail};
use crate::exit::Exit;
use crate::output::{clean, print};

pub(super) async fn run(on: On<MailArgs>, output: Output) -> Result<(), Exit> {
    match on.what.what {
        MailCommand::Ingest(mail) => {
            let connection = &on.connection;
            let target = Target::of(connection)?;
            let raw = files::read_within(&mail.file, MESSAGE_BYTES_MAX)?;
            let call = bring_mail(&target, connection.timeout, query(&mail), raw);
            report(call.await?, output)
        }
        MailCommand::Send(mail) => drive::send(&Talk::open(&on.connection, output).await?, mail).await,
        MailCommand::Quarantine(it) => {
            quarantine::run(&Talk::open(&on.connection, output).await?, it.what).await
        }
    }
}

/// The envelope as a query string.
fn query(mail: &IngestMail) -> String {
    let sender = mail.sender.iter().map(|sender| ("sender", sender));
    let recipients = mail.recipients.iter().map(|recipient| ("recipient", recipient));
    let pairs: Vec<String> =
        sender.chain(recipients).map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// A percent-encoded value of a query string.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let byte = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(byte).collect()
}

fn report(brought: Brought, output: Output) -> Result<(), Exit> {
    let said: Value = serde_json::from_slice(&brought.body).unwrap_or_default();
    let word = |name: &str| said[name].as_str().unwrap_or_default();
    match brought.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(Exit::missing("mail ingress is not configured on this server")),
        status => return Err(Exit::answered(status, word("message"))),
    }
    let (outcome, why) = (word("outcome"), word("why"));
    // A mail that was taken is not brought again, so a page of another server must not count as an outcome.
    if outcome.is_empty() {
        let exit = Exit::unreachable("the response does not say what became of the mail");
        return Err(exit.next("check the address: is it a Switchward server?"));
    }
    let line = match (output.json(), why) {
        (true, _) => said.to_string(),
        (false, "") => clean(outcome),
        (false, why) => format!("{}: {}", clean(outcome), clean(why)),
    };
    print(&format!("{line}\n")).or_else(Exit::unless_output_closed)?;
    if outcome == "quarantined" { Err(Exit::quarantined()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_of_another_server_is_no_success() {
        for body in ["", "<html>a page</html>", "{}", "[]"] {
            let brought = Brought { status: StatusCode::OK, body: body.into() };
            let exit = report(brought, Output::Text).unwrap_err();
            assert_eq!(exit.message(), "the response does not say what became of the mail", "{body}");
        }
    }

    #[test]
    fn addresses_may_hold_what_a_query_may_not() {
        let mail = IngestMail {
            file: "-".into(),
            sender: Some(String::new()),
            recipients: vec!["r+a&b=ü@x".to_owned(), "c".to_owned()],
        };
        assert_eq!(query(&mail), "sender=&recipient=r%2Ba%26b%3D%C3%BC%40x&recipient=c");
    }
}
