//! Kills, starts, pauses and resumes servers.

use super::super::control::Answer;
use super::super::logs::ready_words;
use super::super::process::KeyCheck;
use super::{Crew, State, done};

impl Crew {
    /// Kills a server.
    pub(super) async fn kill(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        process.kill().await.map_err(|error| format!("{error:#}"))?;
        self.states.insert(number, State::Ended("killed".to_owned()));
        Ok(done(format!("killed server {number}")))
    }

    /// Starts a server again.
    pub(super) fn start_at_once(&mut self, number: u64) -> Result<Answer, String> {
        self.plan.server(number)?;
        if let Some(State::Up(process)) = self.states.get(&number) {
            return Err(format!("server {number} is {}", process.state()));
        }
        self.begin(number, KeyCheck::Skip).map_err(|error| format!("{error:#}"))?;
        Ok(done(format!("started server {number}")))
    }

    /// Starts a server again, and waits until it is ready.
    pub(super) async fn start(&mut self, number: u64) -> Result<Answer, String> {
        self.start_at_once(number)?;
        self.ready(number).await.map_err(|error| format!("{error:#}; its log says why"))?;
        Ok(Answer::Done { done: ready_words(number), missed: self.align().await })
    }

    /// Pauses a server.
    pub(super) fn pause(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        if process.is_paused() {
            return Err(format!("server {number} is paused"));
        }
        process.pause().map_err(|error| format!("{error:#}"))?;
        Ok(done(format!("paused server {number}")))
    }

    /// Continues a server.
    pub(super) async fn resume(&mut self, number: u64) -> Result<Answer, String> {
        let process = self.process(number)?;
        if !process.is_paused() {
            return Err(format!("server {number} is not paused"));
        }
        process.resume().map_err(|error| format!("{error:#}"))?;
        Ok(Answer::Done { done: format!("server {number} runs again"), missed: self.align().await })
    }
}
