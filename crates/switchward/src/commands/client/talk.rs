//! The connection of one command, and its printer.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::args::{Connection, Output};
use crate::client::{Client, Target, drawn_request_id};
use crate::exit::Exit;
use crate::output::{CARE, Printer, clean};

/// A connected command.
pub(super) struct Talk {
    pub(super) client: Client,
    pub(super) printer: Printer,
    /// The server's address, such as `http://127.0.0.1:7400`.
    pub(super) address: String,
    request_id: Option<String>,
    may_ask: bool,
}

impl Talk {
    /// Connects as the command line, the environment and the context say.
    ///
    /// # Errors
    /// There is no address or key, or the server does not respond.
    pub(super) async fn open(connection: &Connection, output: Output) -> Result<Self, Exit> {
        let target = Target::of(connection)?;
        let client = Client::connect(&target, connection.timeout).await?;
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Ok(Self {
            client,
            printer: if connection.quiet { Printer::quiet(output) } else { Printer::new(output) },
            address: target.address,
            request_id: connection.request_id.clone(),
            may_ask: terminal && !connection.no_input && !output.json(),
        })
    }

    /// The request id of a change: the given one, or a new one.
    pub(super) fn request_id(&self) -> String {
        self.request_id.clone().unwrap_or_else(drawn_request_id)
    }

    /// The given request id; empty if there is none, because the server recognises these repeats without one.
    pub(super) fn own_request_id(&self) -> String {
        self.request_id.clone().unwrap_or_default()
    }

    /// Returns true if a request id is given.
    pub(super) fn request_id_is_given(&self) -> bool {
        self.request_id.is_some()
    }

    /// Asks for confirmation of something that cannot be undone.
    ///
    /// # Errors
    /// It is not confirmed, or nobody can be asked.
    pub(super) fn sure(&self, what: &str) -> Result<(), Exit> {
        if !self.may_ask {
            return Err(Exit::usage(format!("{what} cannot be undone")).next("--yes confirms it"));
        }
        let mut err = anstream::stderr().lock();
        write!(err, "{CARE}{} cannot be undone.{CARE:#} Continue? [y/N] ", clean(what))?;
        err.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Exit::usage("nothing was done")) }
    }
}
