//! Arguments that name one of several active runs.

use clap::Args;
use switchward_api::v1;

/// Which of several active runs a command is about.
#[derive(Debug, Args)]
pub(crate) struct RunOf {
    /// The number of the run, if several runs are active.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) run: Option<u32>,
    /// The state that the run is at, if several runs are active.
    #[arg(long, value_name = "STATE")]
    pub(crate) at: Option<String>,
    /// The work item of the run, if several runs are active.
    #[arg(long, value_name = "WORK")]
    pub(crate) work_item: Option<String>,
}

impl RunOf {
    /// The address in a request; `None` if no run is named.
    pub(crate) fn address(self) -> Option<v1::RunAddress> {
        let Self { run, at, work_item } = self;
        if run.is_none() && at.is_none() && work_item.is_none() {
            return None;
        }
        let (state, work_item) = (at.unwrap_or_default(), work_item.unwrap_or_default());
        Some(v1::RunAddress { run: run.unwrap_or_default(), state, work_item })
    }
}
