//! Answers to callers that wait: a list for each name, which expires.

use std::time::Duration;

use ::redis::{RedisResult, cmd};
use tokio::time::Instant;

use super::{Redis, ms};
use crate::error::BusError;
use crate::limits::BLOCK_MS_MAX;

impl Redis {
    fn key_of_answer(&self, name: &str) -> String {
        format!("{}:answer:{name}", self.config.space())
    }

    /// Gives an answer of a valid size.
    pub(super) async fn give_answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        let mut script = self.scripts.answer.key(self.key_of_answer(name));
        script.arg(answer).arg(ms(self.config.settings.answer_kept).max(1));
        self.run(&script).await.map(drop)
    }

    /// Takes the first answer that comes before `end`.
    pub(super) async fn take_answer(&self, name: &str, end: Instant) -> Result<Option<Vec<u8>>, BusError> {
        let key = self.key_of_answer(name);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // 0 would block for ever.
            let block = Duration::from_millis(ms(left).clamp(1, BLOCK_MS_MAX));
            let mut own = self.link.own().await?;
            let mut pop = cmd("BLPOP");
            pop.arg(&key).arg(block.as_secs_f64());
            let answer: RedisResult<Option<(String, Vec<u8>)>> = pop.query_async(&mut own.connection).await;
            match answer {
                Ok(answer) => {
                    self.link.spare(own);
                    if answer.is_some() || left.is_zero() {
                        return Ok(answer.map(|(_, answer)| answer));
                    }
                }
                Err(error) => self.wait_failed(&own, &error)?,
            }
        }
    }
}
