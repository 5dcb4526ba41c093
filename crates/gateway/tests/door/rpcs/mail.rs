//! The calls of MailService.

use super::*;

pub(super) fn rows() -> Vec<Rpc> {
    let name = Some(("name", Kind::Mail));
    vec![
        read(
            "ListQuarantinedMail",
            Some(("parent", Kind::Tenant)),
            ready!(|_world| v1::ListQuarantinedMailRequest::default()),
        ),
        read(
            "GetQuarantinedMail",
            name,
            ready!(|world| v1::GetQuarantinedMailRequest {
                name: world.quarantined().await,
                ..Default::default()
            }),
        ),
        Rpc {
            method: "DeleteQuarantinedMail",
            name,
            ready: ready!(|world| v1::DeleteQuarantinedMailRequest { name: world.quarantined().await }),
            other: short_name,
        },
    ]
}
