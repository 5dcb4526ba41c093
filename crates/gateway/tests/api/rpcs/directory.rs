//! The calls of DirectoryService.

use super::*;

/// Who may receive a gate, and who is notified of one: every directory of these requests has them, because the calls of
/// other services need them in between.
pub(super) const NEEDED: [(&str, &str); 2] =
    [("kim", "kim@acme.example"), ("owner:release", "approver@acme")];

/// A directory with one more name in it.
fn people(name: &str) -> v1::PutDirectoryRequest {
    let address = format!("{name}@acme.example");
    let mut request = of(&[(name, &address), NEEDED[0], NEEDED[1]]);
    if let Some(directory) = &mut request.directory {
        directory.audience = vec![name.to_owned()];
    }
    request
}

/// A directory of these names, each with one address.
pub(crate) fn of(people: &[(&str, &str)]) -> v1::PutDirectoryRequest {
    let entry = |(name, address): &(&str, &str)| v1::DirectoryEntry {
        name: (*name).to_owned(),
        members: vec![(*address).to_owned()],
        settings: None,
    };
    let entries = people.iter().map(entry).collect();
    let directory = v1::Directory { entries, ..v1::Directory::default() };
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
