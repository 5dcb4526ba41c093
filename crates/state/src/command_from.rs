//! How commands of one aggregate become requests.

use crate::Body;
use crate::approval::ApprovalCommand;
use crate::catalogue::CatalogueCommand;
use crate::delivery::DeliveryCommand;
use crate::policy::PolicyCommand;
use crate::run::RunCommand;
use crate::session::SessionCommand;
use crate::work::WorkCommand;

macro_rules! commands {
    ($($aggregate:ident($command:ident);)*) => {$(
        impl From<$command> for Body {
            fn from(command: $command) -> Self {
                Self::$aggregate(command)
            }
        }
    )*};
}

commands! {
    Session(SessionCommand);
    Run(RunCommand);
    Approval(ApprovalCommand);
    Work(WorkCommand);
    Delivery(DeliveryCommand);
    Policy(PolicyCommand);
    Catalogue(CatalogueCommand);
}
