//! Changes the links between servers.

use switchward_messages::cli::dev as texts;

use super::super::control::Answer;
use super::super::link::Mode;
use super::{Crew, done};

impl Crew {
    /// Cuts a server off from all others.
    pub(super) fn partition(&self, number: u64) -> Result<Answer, String> {
        self.plan.server(number)?;
        self.links.partition(number);
        Ok(done(texts::cut_off(number)))
    }

    /// Opens the links of a server, or all.
    pub(super) async fn heal(&mut self, number: Option<u64>) -> Result<Answer, String> {
        let healed = match number {
            Some(number) => {
                self.plan.server(number)?;
                self.links.heal(number);
                texts::links_opened(number)
            }
            None => {
                self.links.heal_all();
                texts::ALL_LINKS_OPENED.to_owned()
            }
        };
        Ok(Answer::Done { done: healed, missed: self.align().await })
    }

    /// Changes one link.
    pub(super) fn set_link(&self, from: u64, to: u64, mode: Mode) -> Result<Answer, String> {
        if !self.links.set(from, to, mode) {
            let message = format!("there is no link from server {from} to server {to}");
            return Err(message);
        }
        Ok(done(texts::link_changed(from, to, &mode)))
    }
}
