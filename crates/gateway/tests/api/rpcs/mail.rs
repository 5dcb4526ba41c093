//! The calls of MailService.

use super::*;

pub(super) fn rows() -> Vec<Rpc> {
    let name = Some(("name", Kind::Mail));
    vec![
        read(
            "ListQuarantinedMail",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListQuarantinedMailRequest::default()),
        ),
        read(
            "GetQuarantinedMail",
            name,
            ready!(|harness| v1::GetQuarantinedMailRequest {
                name: harness.quarantined().await,
                ..Default::default()
            }),
        ),
        Rpc {
            method: "DeleteQuarantinedMail",
            name,
            ready: ready!(|harness| v1::DeleteQuarantinedMailRequest { name: harness.quarantined().await }),
            other: short_name,
        },
    ]
}
