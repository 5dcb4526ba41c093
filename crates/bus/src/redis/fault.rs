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
            return of("it does not accept the password", What::Password);
        }
        match error.code() {
            Some("NOAUTH") => of("it requires a password (NOAUTH)", What::Password),
            Some("WRONGPASS") => of("it does not accept the password (WRONGPASS)", What::Password),
            Some("NOPERM") => of("its user lacks permissions that the bus needs (NOPERM)", What::Server),
            Some("READONLY") => of("it is a replica and accepts no writes (READONLY)", What::Unfit),
            Some("OOM") => of("its memory is full (OOM)", What::Server),
            Some("LOADING") => of("it is still loading its data from disk (LOADING)", What::Server),
            Some("MISCONF") => {
                of("it cannot write to its disk and accepts no writes (MISCONF)", What::Server)
            }
            Some("NOSCRIPT") => of("it does not keep the scripts that it is given (NOSCRIPT)", What::Server),
            Some("BUSY") => of("it is blocked by a script of another client (BUSY)", What::Server),
            Some("WRONGTYPE") => of("the key of a stream holds another type (WRONGTYPE)", What::Server),
            Some("NOREPLICAS") => of("it has too few replicas to accept writes (NOREPLICAS)", What::Server),
            Some("MASTERDOWN") => of("it is a replica that lost its master (MASTERDOWN)", What::Unfit),
            Some("MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN") => {
                of("it is part of a Redis Cluster, which is not supported", What::Server)
            }
            Some("NOGROUP" | "UNBLOCKED") => of("the consumer group is gone (NOGROUP)", What::Group),
            Some(_) if error.detail().is_some_and(|it| it.contains("max number of clients")) => {
                of("it has reached its maximum number of clients", What::Lost)
            }
            Some(_) => of("it refuses a command; version 7.0 or newer is required", What::Server),
            None => Self::of_connection(error),
        }
    }

    fn of_connection(error: &RedisError) -> Self {
        let of = |message| Self { message, what: What::Lost };
        if error.is_timeout() {
            Self::SILENT
        } else if error.is_connection_refusal() {
            of("the connection was refused")
        } else if error.is_connection_dropped() {
            of("the connection ended")
        } else if error.is_io_error() {
            of("the connection failed")
        } else {
            of("it does not speak the Redis protocol")
        }
    }
}
