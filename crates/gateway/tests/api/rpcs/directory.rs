//! The calls of DirectoryService.

use super::*;

/// A directory with one name in it.
fn people(name: &str) -> v1::PutDirectoryRequest {
    let members = vec!["kim@acme.example".into()];
    let entry = v1::DirectoryEntry { name: name.into(), members, settings: None };
    let audience = vec![name.to_owned()];
    let directory = v1::Directory { entries: vec![entry], audience, ..v1::Directory::default() };
    v1::PutDirectoryRequest { directory: Some(directory), ..Default::default() }
}

pub(super) fn rows() -> Vec<Rpc> {
    let parent = Some(("parent", Kind::Tenant));
    vec![
        Rpc {
            method: "PutDirectory",
            name: parent,
            ready: ready!(|harness| people(&harness.fresh("person"))),
            other: |message| {
                let audience = Value::List(vec![Value::String("kim".into())]);
                set(message, "directory.audience", audience);
            },
        },
        read(
            "GetDirectory",
            parent,
            ready!(|harness| {
                let people = people(&harness.fresh("person"));
                let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &people).await;
                v1::GetDirectoryRequest::default()
            }),
        ),
    ]
}
