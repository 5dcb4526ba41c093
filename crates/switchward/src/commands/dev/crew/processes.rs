//! Kills, starts, pauses and resumes servers.

use switchward_messages::cli::dev as texts;

use super::super::control::Answer;
use super::super::process::KeyCheck;
use super::{Crew, State, done};

impl Crew {
    /// Kills a server.
    pub(super) async fn kill(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        process.kill().await.map_err(|error| format!("{error:#}"))?;
        self.states.insert(number, State::Ended("killed".to_owned()));
        Ok(done(texts::killed(number)))
    }

    /// Starts a server again.
    pub(super) fn start_at_once(&mut self, number: u64) -> Result<Answer, String> {
        self.plan.server(number)?;
        if let Some(State::Up(process)) = self.states.get(&number) {
            return Err(format!("server {number} is {}", process.state()));
        }
        self.begin(number, KeyCheck::Skip).map_err(|error| format!("{error:#}"))?;
        Ok(done(texts::started(number)))
    }

    /// Starts a server again, and waits until it is ready.
    pub(super) async fn start(&mut self, number: u64) -> Result<Answer, String> {
        self.start_at_once(number)?;
        if let Err(error) = self.ready(number).await {
            let message = format!("{error:#}; its log says why");
            return Err(message);
        }
        Ok(Answer::Done { done: texts::ready(number), missed: self.align().await })
    }

    /// Pauses a server.
    pub(super) fn pause(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        if process.is_paused() {
            return Err(format!("server {number} is paused"));
        }
        process.pause().map_err(|error| format!("{error:#}"))?;
        Ok(done(texts::paused(number)))
    }

    /// Continues a server.
    pub(super) async fn resume(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        if !process.is_paused() {
            let message = format!("server {number} is not paused");
            return Err(message);
        }
        process.resume().map_err(|error| format!("{error:#}"))?;
        Ok(Answer::Done { done: texts::resumed(number), missed: self.align().await })
    }
}
