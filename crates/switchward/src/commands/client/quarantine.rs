//! `switchward mail quarantine`: inbound mail that was not accepted.

use switchward_api::v1;
use switchward_messages::cli;

use super::list::{LIMIT_DEFAULT, Missing, follow, incomplete, more};
use super::show;
use super::talk::Talk;
use crate::args::{DeleteMail, Page, QuarantineCommand, ShowMail};
use crate::exit::Exit;
use crate::output::{CARE, STRONG, Table, card, clean, print_bytes};

pub(super) async fn run(talk: &Talk, what: QuarantineCommand) -> Result<(), Exit> {
    match what {
        QuarantineCommand::List(page) => list(talk, page).await,
        QuarantineCommand::Show(show) => self::show(talk, show).await,
        QuarantineCommand::Delete(delete) => self::delete(talk, delete).await,
    }
}

async fn list(talk: &Talk, page: Page) -> Result<(), Exit> {
    let missing = Missing::default();
    let fetch = async |page_size, page_token| {
        let request = v1::ListQuarantinedMailRequest { page_size, page_token, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.mail.list_quarantined_mail(request).await });
        reply.await.map(|reply| (reply.mails, missing.note(reply.unreachable, reply.next_page_token)))
    };
    let (mails, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let unreachable = missing.take();
    let reply = v1::ListQuarantinedMailResponse { mails, next_page_token, unreachable };
    let text = || {
        let mut table = Table::new(&["MAIL", "REASON", "FROM", "SUBJECT", "CREATE_TIME"]);
        for mail in &reply.mails {
            table.row([
                show::id(&mail.name).to_owned(),
                clean(&mail.reason),
                clean(&mail.from),
                clean(&mail.subject),
                show::time(mail.create_time.as_ref()),
            ]);
        }
        table.text(cli::client::NO_QUARANTINED_MAIL)
    };
    talk.printer.list("ListQuarantinedMailResponse", &reply, "QuarantinedMail", &reply.mails, text)?;
    if let Some(first) = reply.mails.first() {
        talk.printer.advice(&format!("switchward mail quarantine show {}", show::id(&first.name)));
    }
    more(talk, &reply.next_page_token);
    incomplete(talk, &reply.unreachable);
    Ok(())
}

async fn show(talk: &Talk, args: ShowMail) -> Result<(), Exit> {
    let request = v1::GetQuarantinedMailRequest { name: args.name, ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.mail.get_quarantined_mail(request).await });
    let reply = reply.await?;
    let mail = reply.mail.clone().unwrap_or_default();
    if args.raw {
        return print_bytes(&mail.content);
    }
    talk.printer.message("GetQuarantinedMailResponse", &reply, || shown(&mail))
}

fn shown(mail: &v1::QuarantinedMail) -> String {
    let size = match mail.size_bytes {
        0 => "unknown".to_owned(),
        bytes if mail.truncated => format!("{bytes}, of which {} are stored", mail.content.len()),
        bytes => bytes.to_string(),
    };
    let sender = mail.sender.as_ref();
    let unmatched = if mail.unmatched { cli::client::MAIL_WITHOUT_TENANT } else { "" };
    let head = card(&[
        ("mail", clean(show::id(&mail.name))),
        ("outcome", format!("{CARE}{}: {}{CARE:#}", clean(&mail.outcome), clean(&mail.reason))),
        ("unmatched", unmatched.to_owned()),
        ("session", clean(show::id(&mail.session))),
        ("from", clean(&mail.from)),
        ("subject", clean(&mail.subject)),
        ("sender", sender.map_or_else(String::new, |one| format!("<{}>", clean(one)))),
        ("recipients", clean(&mail.recipients.join(", "))),
        ("create_time", show::time(mail.create_time.as_ref())),
        ("size_bytes", size),
    ]);
    let part = |title: &str, text: &str| {
        let text = clean(&text.replace("\r\n", "\n"));
        match text.trim() {
            "" => String::new(),
            text => format!("\n{STRONG}{title}{STRONG:#}\n{text}\n"),
        }
    };
    format!("{head}{}{}", part("HEADERS", &mail.headers), part("TEXT", &mail.text))
}

async fn delete(talk: &Talk, delete: DeleteMail) -> Result<(), Exit> {
    if !delete.yes {
        talk.sure(&format!("deleting {}", delete.name))?;
    }
    let request = v1::DeleteQuarantinedMailRequest { name: delete.name.clone() };
    let reply = talk
        .client
        .call_once(request, |mut it, request| async move { it.mail.delete_quarantined_mail(request).await });
    let reply = reply.await?;
    talk.printer
        .message("DeleteQuarantinedMailResponse", &reply, || card(&[("deleted", clean(&delete.name))]))?;
    if !reply.unreachable.is_empty() {
        let servers = reply.unreachable.join(", ");
        talk.printer
            .advice(&format!("{servers} did not answer and may still keep the mail; list it again later"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mail_says_moves_no_cursor_and_renders_nothing() {
        let mail = v1::QuarantinedMail {
            name: "tenants/acme/quarantine/ab".into(),
            outcome: "quarantined".into(),
            reason: "no_token".into(),
            sender: Some(String::new()),
            subject: "\u{1b}[2Jhi".into(),
            session: "tenants/acme/sessions/ses_1".into(),
            size_bytes: 7,
            headers: "From: a\r\nSubject: b\r\n".into(),
            text: "<b>\u{1b}]0;x\u{7}</b>\r\n".into(),
            ..v1::QuarantinedMail::default()
        };
        let text = anstream::adapter::strip_str(&shown(&mail)).to_string();
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
        assert!(
            text.ends_with("\nHEADERS\nFrom: a\nSubject: b\n\nTEXT\n<b>\u{fffd}]0;x\u{fffd}</b>\n"),
            "{text:?}"
        );
        assert!(text.contains("quarantined: no_token") && text.contains("<>"), "{text:?}");
        assert!(text.lines().any(|line| line.split_whitespace().eq(["session", "ses_1"])), "{text:?}");
    }
}
