//! How an assistant may be called, and that it is made once.

use switchward_engine::{Body, Command, PutAssistant, Reason};

use super::{Care, Memory};
use crate::world::{Answer, Broken};

/// The longest name of an assistant, characters.
const NAME_CHARS: usize = switchward_engine::limits::ASSISTANT_NAME_CHARS_MAX;

impl Memory {
    /// With care, before an assistant is made: under a name that is none it is refused and nothing changes, and under
    /// the longest and the oddest that are allowed it would be made.
    pub(super) fn names_of_assistants(&mut self, command: &Command) -> Result<(), Broken> {
        let (Body::PutAssistant(put), Care::Restart) = (&command.body, self.care) else { return Ok(()) };
        let called = |name: &str| {
            let body = Body::PutAssistant(PutAssistant { name: name.to_owned(), ..put.clone() });
            Command { request: None, body, ..command.clone() }
        };
        for name in ["", "A", "a_b", "a b", &"a".repeat(NAME_CHARS + 1)] {
            let answer = self.unchanged(&called(name))?;
            if !answer.as_ref().is_err_and(|refusal| refusal.reason == Reason::FieldInvalid) {
                return Err(wrong(name, &answer));
            }
        }
        let fits = self.clone().hop(command.clone())?.is_ok();
        for name in ["7-b", &"z".repeat(NAME_CHARS)] {
            let answer = self.clone().hop(called(name))?;
            if answer.is_ok() != fits {
                return Err(wrong(name, &answer));
            }
        }
        Ok(())
    }

    /// With care, after an assistant was made: what is the same as before changes nothing.
    pub(super) fn assistant_again(&mut self, command: &Command) -> Result<(), Broken> {
        let Body::PutAssistant(put) = &command.body else { return Ok(()) };
        let answer = self.unchanged(&Command { request: None, ..command.clone() })?;
        if answer.is_ok() { Ok(()) } else { Err(wrong(&put.name, &answer)) }
    }
}

fn wrong(name: &str, answer: &Answer) -> Broken {
    Broken(format!("an assistant called {name:?} was answered {answer:?}"))
}
