//! The rows of formats that this build recognises and does not compile.

use crate::document::Node;
use crate::row::Row;

/// Its files are recognised by their names.
pub(crate) const PROCESS_MD: Row = Row {
    name: "process_md",
    marker: "a file named `PROCESS.md` or `pdt.yaml`",
    marker_keys: &[],
    marker_files: &["PROCESS.md", "pdt.yaml"],
    fits: |_| false,
    compiler: None,
};

/// A document whose `type` says that it is a template.
pub(crate) const KNO: Row = Row {
    name: "kno",
    marker: "`type: process-template`",
    marker_keys: &[],
    marker_files: &[],
    fits: |root| root.get("type").and_then(Node::as_text) == Some("process-template"),
    compiler: None,
};
