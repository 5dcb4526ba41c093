use switchward_gateway::Refusal;

use super::*;

fn of(refusal: Refusal) -> Exit {
    Exit::refused(&Status::from(refusal))
}

fn wrong_answer() -> Exit {
    let refusal = Refusal::new(Reason::AnswerNotAllowed, "\"ye\" is not an answer of \"env-check\"");
    of(refusal.allowed(["yes", "no"]).meta("state", "env-check"))
}

#[test]
fn a_reason_has_its_code() {
    for (reason, code) in [
        (Reason::DefinitionInvalid, 5),
        (Reason::FieldInvalid, 2),
        (Reason::NotFound, 3),
        (Reason::AnswerNotAllowed, 4),
        (Reason::SequenceConflict, 4),
        (Reason::RoleNotAllowed, 6),
        (Reason::SelfApproval, 6),
        (Reason::CredentialInvalid, 6),
        (Reason::ApprovalPending, 7),
        (Reason::Draining, 69),
        (Reason::InternalError, 1),
    ] {
        assert_eq!(of(Refusal::new(reason, "no")).0.code, code, "{reason:?}");
    }
}

#[test]
fn a_status_without_a_reason_has_one_too() {
    assert_eq!(Exit::refused(&Status::unavailable("gone")).0.code, 69);
    assert_eq!(Exit::refused(&Status::cancelled("Timeout expired")).0.code, 69);
    assert_eq!(Exit::refused(&Status::unknown("h2 protocol error")).0.code, 69);
    assert_eq!(Exit::refused(&Status::unimplemented("no such method")).0.code, 1);
}

#[test]
fn a_plain_request_that_may_be_made_again_is_no_usage_error() {
    for (status, code) in [(400, 2), (401, 6), (403, 6), (408, 69), (413, 2), (429, 69), (500, 1), (503, 69)]
    {
        let exit = Exit::answered(StatusCode::from_u16(status).unwrap(), "no");
        assert_eq!(exit.0.code, code, "{status}");
    }
}

#[test]
fn allowed_and_nearest_values_are_shown() {
    let exit = wrong_answer().typed("ye");
    let Cause::Server(refused) = &exit.0.cause else { panic!("{exit:?}") };
    let text = anstream::adapter::strip_str(&exit.text(refused.message(), &refused.facts())).to_string();
    assert_eq!(
        text,
        "error: \"ye\" is not an answer of \"env-check\"\n  reason   ANSWER_NOT_ALLOWED\n  allowed  yes, no\n  \
         nearest  yes\n  fact     state = env-check\n"
    );
}

#[test]
fn json_says_what_the_server_says() {
    let error = &wrong_answer().typed("ye").json()["error"];
    assert_eq!(error["code"], "failed_precondition");
    assert_eq!(error["reason"], "ANSWER_NOT_ALLOWED");
    assert_eq!(error["metadata"]["allowed"], r#"["yes","no"]"#);
    assert_eq!(error["details"][0]["type"], "google.rpc.ErrorInfo");
    assert_eq!(error["details"][0]["debug"]["metadata"]["state"], "env-check");
    assert_eq!(error["nearest"], "yes");
}

#[test]
fn retry_delay_is_shown() {
    let exit = of(Refusal::new(Reason::RateLimited, "full").retry_after(Duration::from_secs(3_661)));
    let Cause::Server(refused) = &exit.0.cause else { panic!("{exit:?}") };
    assert!(refused.facts().contains(&("retry", "in 1h 1m 1s".to_owned())), "{:?}", refused.facts());
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let gone = unwritten(ErrorKind::BrokenPipe.into()).context("failed to write");
    assert_eq!(Exit::failed(gone).0.code, 0);
    let full = unwritten(ErrorKind::StorageFull.into());
    assert_eq!(Exit::failed(full).0.code, 1);
    assert_eq!(Exit::failed(anyhow::anyhow!("odd")).0.code, 1);
}

#[test]
fn only_a_closed_output_is_passed_over() {
    let gone = || std::io::Error::from(ErrorKind::BrokenPipe);
    assert!(Exit::from(unwritten(gone())).unless_output_closed().is_ok());
    let other = Exit::failed(anyhow::Error::from(gone()).context("failed to send a request"));
    assert!(other.message().starts_with("failed to send a request: "), "{other:?}");
    assert!(other.unless_output_closed().is_err(), "the pipe was not the command's output");
    assert!(Exit::from(gone()).unless_output_closed().is_err());
    for exit in [Exit::reported(DENIED), Exit::failed(anyhow::anyhow!("odd"))] {
        assert!(exit.unless_output_closed().is_err());
    }
}

#[test]
fn the_end_of_a_process_does_not_wait_for_a_reader() {
    let (reader, mut full) = std::io::pipe().unwrap();
    within(Duration::from_millis(50), move || {
        let _nobody_reads = std::io::Write::write_all(&mut full, "x".repeat(4 << 20).as_bytes());
    });
    drop(reader);
    let (done, seen) = channel();
    within(Duration::from_secs(60), move || done.send("said").unwrap());
    assert_eq!(seen.try_recv(), Ok("said"));
}
