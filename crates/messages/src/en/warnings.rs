//! Warnings about open gates.

use switchward_state::approval::Warning;
use switchward_state::delivery::MailCap;
use switchward_state::policy::time_text;

/// A warning about an open gate, in a sentence.
#[must_use]
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::NoRecipients => "nobody is notified of it".to_owned(),
        Warning::OnlyRequester { to } => {
            format!("nobody is notified except {}, who asked for this and cannot decide", to.join(", "))
        }
        Warning::Unreachable => "no mail reaches anybody who may decide".to_owned(),
        Warning::Waiting { to, more, full } => {
            let (names, until, cap) = (to.join(", "), time_text(full.until), mail_cap(full.cap));
            let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
            format!("not notified before {until}: {names}{more}; {cap}")
        }
        Warning::AllOfNobody => {
            "everybody who is notified must approve, and nobody is notified: one approval decides".to_owned()
        }
        Warning::FewNotified { need, can } => {
            format!("{need} approvals are required, and only {can} of those who are notified may decide")
        }
        Warning::TooFewRecipients { wanted, can, need } => {
            format!(
                "{wanted} approvals are required, and only {can} of those who are asked may decide: {need} are enough"
            )
        }
        Warning::NotInDirectory { who } => {
            format!("{who} is not asked: data or the start names them, and they are not in the directory")
        }
        Warning::NoLongerListed { who } => format!(
            "{}: the directory does not lead to them any more, so they cannot decide; somebody else can be assigned",
            who.join(", ")
        ),
        Warning::UnprovedBounce { to } => format!(
            "a bounce that anybody could have sent says that no mail reaches {to}; it changes nothing"
        ),
    }
}

/// Why a mail waits for the next hour.
#[must_use]
pub fn mail_cap(cap: MailCap) -> String {
    let most = cap.most();
    match cap {
        MailCap::Tenant => format!("the tenant sends at most {most} mails in an hour"),
        MailCap::Definition => format!("sessions of one definition send at most {most} mails in an hour"),
        MailCap::Requester => format!("one requester causes at most {most} mails in an hour"),
        MailCap::Address => format!("at most {most} mails go to one address in an hour"),
        MailCap::RequesterToAddress => {
            format!("one requester causes at most {most} mails to one address in an hour")
        }
    }
}
