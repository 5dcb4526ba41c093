//! The answers of the bus in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

use crate::limits::ANSWERS_MAX;

/// All answers that were not taken, by name.
#[derive(Default)]
pub(super) struct Answers {
    known: BTreeMap<String, VecDeque<(u64, Vec<u8>)>>,
    /// When each of `known` is forgotten, with its number.
    ends: BTreeSet<(Instant, u64, String)>,
    next: u64,
}

impl Answers {
    /// Adds an answer, which is forgotten at `end`.
    pub(super) fn add(&mut self, name: &str, answer: Vec<u8>, now: Instant, end: Instant) {
        self.forget(now);
        while self.ends.len() >= ANSWERS_MAX && self.forget_first() {}
        self.next += 1;
        self.ends.insert((end, self.next, name.to_owned()));
        self.known.entry(name.to_owned()).or_default().push_back((self.next, answer));
    }

    /// Takes the first answer under a name.
    pub(super) fn take(&mut self, name: &str, now: Instant) -> Option<Vec<u8>> {
        self.forget(now);
        let answers = self.known.get_mut(name)?;
        let (number, answer) = answers.pop_front()?;
        if answers.is_empty() {
            self.known.remove(name);
        }
        self.ends.retain(|(_, other, _)| *other != number);
        Some(answer)
    }

    fn forget(&mut self, now: Instant) {
        while self.ends.first().is_some_and(|(end, ..)| *end <= now) && self.forget_first() {}
    }

    /// Forgets the answer that ends first. Returns false if there is none.
    fn forget_first(&mut self) -> bool {
        let Some((_, number, name)) = self.ends.pop_first() else { return false };
        if let Some(answers) = self.known.get_mut(&name) {
            answers.retain(|(other, _)| *other != number);
            if answers.is_empty() {
                self.known.remove(&name);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nothing_is_left_of_what_was_taken_or_has_ended() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        answers.add("a", vec![1], at(0), at(10));
        answers.add("a", vec![2], at(0), at(20));
        answers.add("b", vec![3], at(0), at(10));
        assert_eq!(answers.take("a", at(9)), Some(vec![1]));
        assert_eq!((answers.take("b", at(10)), answers.take("a", at(19))), (None, Some(vec![2])));
        assert_eq!((answers.known.len(), answers.ends.len()), (0, 0));
    }

    #[test]
    fn what_ends_first_makes_way_when_there_are_too_many() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        let end = now + Duration::from_secs(10);
        for number in 0..=ANSWERS_MAX {
            answers.add(&number.to_string(), vec![7], now, end);
        }
        assert_eq!((answers.take("0", now), answers.take("1", now)), (None, Some(vec![7])));
    }
}
