//! Calls about the servers of the cluster. Besides the server of the test there are servers that do not run.

use futures::FutureExt;
use prost::Message;
use prost_reflect::Value;
use switchward_api::v1;
use switchward_state::catalogue::ServerState;

use super::{Rpc, read, set};
use crate::harness::Harness;

pub(super) fn rows() -> Vec<Rpc> {
    vec![
        read("GetCluster", None, ready!(|_harness| v1::GetClusterRequest {})),
        read("VerifyGroup", None, ready!(|_harness| v1::VerifyGroupRequest { group: 1 })),
        Rpc {
            method: "DrainServer",
            name: None,
            ready: ready!(|harness| v1::DrainServerRequest {
                server: harness.node.spare_server(ServerState::Active).await,
                ..v1::DrainServerRequest::default()
            }),
            other: |message| set(message, "server", Value::U64(1)),
        },
        Rpc {
            method: "ActivateServer",
            name: None,
            ready: ready!(|harness| v1::ActivateServerRequest {
                server: harness.node.spare_server(ServerState::Draining).await,
                ..v1::ActivateServerRequest::default()
            }),
            other: |message| set(message, "server", Value::U64(1)),
        },
        Rpc {
            method: "RemoveServer",
            name: None,
            ready: ready!(|harness| v1::RemoveServerRequest {
                server: harness.node.server_to_remove().await,
                ..v1::RemoveServerRequest::default()
            }),
            other: |message| set(message, "server", Value::U64(1)),
        },
        Rpc {
            method: "ReplaceServer",
            name: None,
            ready: ready!(|harness| v1::ReplaceServerRequest {
                server: harness.node.spare_server(ServerState::Active).await,
                replaced_by: 1,
                ..v1::ReplaceServerRequest::default()
            }),
            other: |message| set(message, "replaced_by", Value::U64(9_999)),
        },
        Rpc {
            method: "TransferLeaders",
            name: None,
            ready: ready!(|harness| v1::TransferLeadersRequest {
                from_server: harness.node.spare_server(ServerState::Active).await,
                ..v1::TransferLeadersRequest::default()
            }),
            other: |message| set(message, "to_server", Value::U64(1)),
        },
        Rpc {
            method: "RaiseLevel",
            name: None,
            // The level in force: the test raises nothing for the calls after it.
            ready: ready!(|harness| {
                let _spare = harness.node.spare_server(ServerState::Active).await;
                v1::RaiseLevelRequest { level: 1, ..v1::RaiseLevelRequest::default() }
            }),
            other: |message| set(message, "level", Value::U32(9)),
        },
    ]
}
