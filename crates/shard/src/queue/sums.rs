//! What the commands of a batch use, added up by tenant, so that its share is looked at once for many of them.

use std::ops::AddAssign;
use std::sync::Arc;
use switchward_machine::TenantId;
use switchward_state::Command;

/// Adds up what commands use that follow one another and count alike: the first of them, and their sum.
pub(super) fn sums<'c, T: AddAssign>(
    uses: impl Iterator<Item = (&'c Arc<Command>, T)>,
) -> Vec<(&'c Arc<Command>, T)> {
    let mut sums: Vec<(&'c Arc<Command>, T)> = Vec::new();
    for (command, more) in uses {
        if let Some((first, sum)) = sums.last_mut()
            && counts_as(first) == counts_as(command)
        {
            *sum += more;
        } else {
            sums.push((command, more));
        }
    }
    sums
}

/// Whose use it is, and with which weight.
fn counts_as(command: &Command) -> (TenantId, Option<u32>) {
    (command.tenant, command.settings.quotas.weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::run::{Answer, RunCommand};
    use switchward_state::{Body, Scope};

    fn command(tenant: u32, weight: Option<u32>) -> Arc<Command> {
        let answer = Answer { state: None, answer: "yes".into(), note: String::new() };
        let body = Body::Run(RunCommand::Answer(answer));
        let mut command = Command::of_server(TenantId(tenant), Scope::Shard, body);
        command.settings.quotas.weight = weight;
        command.into()
    }

    #[test]
    fn what_follows_one_another_and_counts_alike_is_one_sum() {
        let kinds = [(1, None), (1, None), (2, None), (1, None), (1, Some(2)), (1, Some(2))];
        let commands = kinds.map(|(tenant, weight)| command(tenant, weight));
        let found = sums(commands.iter().zip([1_usize, 2, 4, 8, 16, 32]));
        let found: Vec<_> = found.into_iter().map(|(first, sum)| (counts_as(first), sum)).collect();
        let (one, two) = (TenantId(1), TenantId(2));
        assert_eq!(found, [((one, None), 3), ((two, None), 4), ((one, None), 8), ((one, Some(2)), 48)]);
        assert!(sums(std::iter::empty::<(&Arc<Command>, usize)>()).is_empty());
    }
}
