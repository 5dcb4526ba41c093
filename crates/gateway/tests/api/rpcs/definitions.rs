//! The calls that retire, archive, delete and compare definitions and versions.

use super::*;

/// The name of a fresh definition that is archived, or of its first version.
async fn archived(harness: &Harness) -> v1::Version {
    let version = harness.deploy(&named(&harness.fresh("process"))).await;
    let request = v1::ArchiveDefinitionRequest { name: definition_of(&version), ..Default::default() };
    let _: v1::ArchiveDefinitionResponse = harness.ask("author", "ArchiveDefinition", &request).await;
    version
}

/// The name of a version's definition.
fn definition_of(version: &v1::Version) -> String {
    version.name.split("/versions/").next().expect("the definition's name").to_owned()
}

/// Another request for the same: with the short form of the name.
fn shorter(message: &mut DynamicMessage) {
    let short = text(message, "name").replace("tenants/acme/definitions/", "");
    set(message, "name", Value::String(short));
}

/// The call that excludes a version from new sessions.
fn retiring() -> Vec<Rpc> {
    let name = Some(("name", Kind::Version));
    vec![Rpc {
        method: "RetireVersion",
        name,
        ready: ready!(|harness| {
            let first = harness.deploy(&named(&harness.fresh("process"))).await;
            let source = named(first.name.split('/').nth(3).expect("the definition's name"));
            harness.deploy(&source.replace("Is it ready?", "Is it all ready?")).await;
            harness.deploy(&source.replace("Is it ready?", "Is all ready?")).await;
            v1::RetireVersionRequest { name: first.name, ..v1::RetireVersionRequest::default() }
        }),
        other: |message| {
            let second = text(message, "name").replace("/versions/1", "/versions/2");
            set(message, "name", Value::String(second));
        },
    }]
}

pub(super) fn rows() -> Vec<Rpc> {
    let mut rows = retiring();
    rows.extend(disposing());
    rows
}

fn disposing() -> Vec<Rpc> {
    let (name, version) = (Some(("name", Kind::Definition)), Some(("name", Kind::Version)));
    vec![
        Rpc {
            method: "ArchiveDefinition",
            name,
            ready: ready!(|harness| {
                let version = harness.deploy(&named(&harness.fresh("process"))).await;
                v1::ArchiveDefinitionRequest { name: definition_of(&version), ..Default::default() }
            }),
            other: shorter,
        },
        Rpc {
            method: "UnarchiveDefinition",
            name,
            ready: ready!(|harness| {
                let name = definition_of(&archived(harness).await);
                v1::UnarchiveDefinitionRequest { name, ..Default::default() }
            }),
            other: shorter,
        },
        Rpc {
            method: "DeleteDefinition",
            name,
            ready: ready!(|harness| {
                let name = definition_of(&archived(harness).await);
                v1::DeleteDefinitionRequest { name, ..Default::default() }
            }),
            other: shorter,
        },
        Rpc {
            method: "DeleteVersion",
            name: version,
            ready: ready!(|harness| {
                let first = harness.deploy(&named(&harness.fresh("process"))).await;
                let source = named(first.name.split('/').nth(3).expect("the definition's name"));
                harness.deploy(&source.replace("Is it ready?", "Is it all ready?")).await;
                let retire = v1::RetireVersionRequest { name: first.name.clone(), ..Default::default() };
                let _: v1::RetireVersionResponse = harness.ask("author", "RetireVersion", &retire).await;
                v1::DeleteVersionRequest { name: first.name, ..Default::default() }
            }),
            other: shorter,
        },
        read(
            "DiffVersions",
            version,
            ready!(|harness| v1::DiffVersionsRequest {
                name: format!("{}/versions/1", harness.acme.only),
                files: bundle(&named("other")),
                ..Default::default()
            }),
        ),
    ]
}
