//! The call of ExportService.

use super::*;

pub(super) fn rows() -> Vec<Rpc> {
    let parent = Some(("parent", Kind::Tenant));
    let ready: Ready = ready!(|_harness| v1::ExportRecordsRequest::default());
    vec![read("ExportRecords", parent, ready)]
}
