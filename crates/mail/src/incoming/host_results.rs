//! The authentication results of a trusted host, checked by the rules that hold for computed results.

use mail_auth::AuthenticatedMessage;
use mail_auth::dkim::Signature;

use super::Settings;
use super::authentication::{Authentication, AuthenticationInput, Check, Proof, aligned};
use super::proof_reason::ProofReason;
use super::results::MethodResult;
use super::signatures::{flaw, identity};

/// Returns true if the host says that the policy of the sender's domain refuses the message.
pub(super) fn is_refused(results: &[MethodResult]) -> bool {
    results.iter().any(|it| it.method == "dmarc" && !["pass", "none"].contains(&it.result.as_str()))
}

/// Returns the authentication that a trusted host's results prove.
pub(super) fn by_host(
    asked: &AuthenticationInput<'_>,
    message: &AuthenticatedMessage<'_>,
    results: &[MethodResult],
    settings: &Settings,
) -> Authentication {
    let mut detail = Vec::new();
    let from = asked.from.domain.as_str();
    let of = |method: &'static str| results.iter().filter(move |it| it.method == method);
    let dmarc = policy(&of("dmarc").collect::<Vec<_>>(), from);
    // If the policy passed, the host has found the organisational domain of both.
    let stands = |domain: &str| match dmarc {
        Check::Pass => aligned(domain, from) || aligned(from, domain),
        Check::None => aligned(domain, from),
        Check::Fail | Check::Temporary => false,
    };
    let (mut dkim, mut counting) = (Check::None, Vec::new());
    for signed in of("dkim") {
        let domain = signed.domain("header.d").or_else(|| signed.domain("header.i")).unwrap_or_default();
        let passed = signed.result == "pass" && stands(domain);
        match passed.then(|| without_flaws(domain, signed, asked, message, settings)) {
            Some(Ok(meant)) => {
                dkim = Check::Pass;
                counting.extend(meant);
            }
            Some(Err(why)) => detail.push(why),
            None => {}
        }
        dkim = if dkim == Check::None { Check::Fail } else { dkim };
    }
    let identity = identity(&counting, asked);
    if dkim == Check::Pass && identity.is_none() {
        dkim = Check::Fail;
        detail.push(ProofReason::IdentityNotSigned);
    }
    let spf = match of("spf").next() {
        // Without a policy, permission to send for a domain is no permission to write in its name.
        Some(spf) if spf.result == "pass" && dmarc == Check::Pass => {
            if spf.domain("smtp.mailfrom").is_some_and(stands) { Check::Pass } else { Check::Fail }
        }
        Some(spf) if ["none", "pass"].contains(&spf.result.as_str()) => Check::None,
        Some(_) => Check::Fail,
        None => Check::None,
    };
    let aligned = dmarc != Check::Fail && (dkim == Check::Pass || spf == Check::Pass);
    detail.push(if aligned { ProofReason::HostPassed } else { ProofReason::HostDidNotPass });
    Authentication { dkim, spf, dmarc, aligned, identity, how: Proof::TrustedHost, detail }
}

/// The host's result for the policy; if there are several, all must pass for this domain.
fn policy(results: &[&MethodResult], from: &str) -> Check {
    let passes = |it: &&MethodResult| {
        it.result == "pass" && it.domain("header.from").is_none_or(|domain| domain == from)
    };
    if results.is_empty() || results.iter().all(|it| it.result == "none") {
        Check::None
    } else if results.iter().all(passes) {
        Check::Pass
    } else if results.iter().all(|it| it.result == "temperror") {
        Check::Temporary
    } else {
        Check::Fail
    }
}

/// Returns the signatures that a host's result may refer to, or why they do not count. All of them must count.
fn without_flaws<'m>(
    domain: &str,
    signed: &MethodResult,
    asked: &AuthenticationInput<'_>,
    message: &'m AuthenticatedMessage<'_>,
    settings: &Settings,
) -> Result<Vec<&'m Signature>, ProofReason> {
    let selector = signed.property("header.s");
    let meant: Vec<_> = message
        .dkim_headers
        .iter()
        .filter(|it| it.header.d.eq_ignore_ascii_case(domain))
        .filter(|it| selector.is_none_or(|selector| it.header.s.eq_ignore_ascii_case(selector)))
        .collect();
    if meant.is_empty() || !message.errors.is_empty() {
        return Err(ProofReason::SignatureMissing);
    }
    match meant.iter().find_map(|header| flaw(header, asked, settings)) {
        Some(why) => Err(why),
        None => Ok(meant.iter().map(|header| &header.header).collect()),
    }
}
