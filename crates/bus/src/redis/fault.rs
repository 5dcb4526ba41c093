//! Errors of Redis, and what they mean for the connection.

use ::redis::{ErrorKind, RedisError};

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// The description.
    pub(super) message: &'static str,
    pub(super) what: What,
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The connection is gone.
    Lost,
    /// The server cannot be used, or does not answer: a new connection may lead to a better one.
    Unfit,
    /// As `Unfit`, and trying again helps only after a change of configuration.
    Password,
    /// The connection is fine, the server refuses.
    Server,
    /// The consumer group is gone.
    Group,
}

impl Fault {
    pub(super) const SILENT: Self = Self { message: "it does not answer in time", what: What::Unfit };

    pub(super) fn read(error: &RedisError) -> Self {
        let of = |message, what| Self { message, what };
        if error.kind() == ErrorKind::AuthenticationFailed {
            return of("it does not take the password", What::Password);
        }
        match error.code() {
            Some("NOAUTH") => of("it wants a password (NOAUTH)", What::Password),
            Some("WRONGPASS") => of("it does not take the password (WRONGPASS)", What::Password),
            Some("NOPERM") => of("its user may not do what a bus needs (NOPERM)", What::Server),
            Some("READONLY") => of("it is a replica and takes no writes (READONLY)", What::Unfit),
            Some("OOM") => of("its memory is full (OOM)", What::Server),
            Some("LOADING") => of("it still loads what it had on disk (LOADING)", What::Server),
            Some("MISCONF") => of("it cannot write to its disk and takes no writes (MISCONF)", What::Server),
            Some("NOSCRIPT") => of("it forgets a script that it was just given (NOSCRIPT)", What::Server),
            Some("BUSY") => of("it is held up by a script of somebody else (BUSY)", What::Server),
            Some("WRONGTYPE") => of("something else has the name of a stream (WRONGTYPE)", What::Server),
            Some("NOREPLICAS") => of("it has too few replicas to take writes (NOREPLICAS)", What::Server),
            Some("MASTERDOWN") => of("it is a replica that lost its master (MASTERDOWN)", What::Unfit),
            Some("MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN") => {
                of("it is a part of a Redis Cluster, which cannot be used", What::Server)
            }
            Some("NOGROUP" | "UNBLOCKED") => of("the consumer group is gone (NOGROUP)", What::Group),
            Some(_) if error.detail().is_some_and(|it| it.contains("max number of clients")) => {
                of("it has as many clients as it may have", What::Lost)
            }
            Some(_) => of("it refuses a command, as versions before 7.0 do", What::Server),
            None => Self::of_connection(error),
        }
    }

    fn of_connection(error: &RedisError) -> Self {
        let of = |message| Self { message, what: What::Lost };
        if error.is_timeout() {
            Self::SILENT
        } else if error.is_connection_refusal() {
            of("nobody listens there")
        } else if error.is_connection_dropped() {
            of("the connection ended")
        } else if error.is_io_error() {
            of("no connection can be made")
        } else {
            of("it does not speak as Redis does")
        }
    }
}
