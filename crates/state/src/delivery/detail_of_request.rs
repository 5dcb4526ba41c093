//! What goes wrong with requests and their answers.

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

/// Why an address may not be requested. None of these says to which IP address a name resolves.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressProblem {
    /// It has a space, a control character or a backslash.
    #[n(0)]
    Characters,
    /// The address is not a URL.
    #[n(1)]
    Unreadable {
        /// What the parser reports.
        #[n(0)]
        diagnostic: String,
    },
    /// It has neither the scheme http nor https.
    #[n(2)]
    Scheme,
    /// It has the scheme http, and only https is allowed.
    #[n(3)]
    HttpsOnly,
    /// It has the name of a user or a password.
    #[n(4)]
    Login,
    /// It has no host.
    #[n(5)]
    NoHost,
    /// The name of its host is too long.
    #[n(6)]
    HostLength,
    /// The name of its host has a character that names of hosts do not have.
    #[n(7)]
    HostCharacters,
    /// The tenant's list of hosts does not have its host.
    #[n(8)]
    HostNotListed,
    /// It has no port, and its scheme has none.
    #[n(9)]
    NoPort,
    /// The tenant lists the ports that may be called, and this one is not among them.
    #[n(10)]
    PortNotListed {
        /// The one that it names, or that its scheme has.
        #[n(0)]
        port: u16,
    },
    /// It is the IP address of a host that is not in the public network.
    #[n(11)]
    NotPublic,
    /// Its host has no IP address, or one that is not allowed; it does not say which of the two.
    #[n(12)]
    Unresolved {
        /// The name of the host.
        #[n(0)]
        name: String,
    },
    /// The tenant's rules of requests cannot be read now.
    #[n(13)]
    RulesUnknown,
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestProblem {
    /// The input of the work is no request.
    #[n(0)]
    Unreadable {
        /// What the JSON parser reports.
        #[n(0)]
        diagnostic: String,
    },
    /// It has no method that may be sent.
    #[n(1)]
    Method,
    /// It has too many headers.
    #[n(2)]
    TooManyHeaders {
        /// How many it has.
        #[n(0)]
        count: u64,
        /// The limit.
        #[n(1)]
        max: u64,
    },
    /// One of its headers may not be sent.
    #[n(3)]
    Header {
        /// Which of them, from 1.
        #[n(0)]
        number: u64,
        /// The reason.
        #[n(1)]
        problem: HeaderProblem,
    },
    /// Its body is no JSON.
    #[n(4)]
    BodyJson,
    /// Its body is not UTF-8.
    #[n(5)]
    BodyText,
    /// A header of it is not text.
    #[n(6)]
    HeaderText,
}

/// Why a header may not be sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderProblem {
    /// Its name is not that of a header.
    #[n(0)]
    Name,
    /// The server sets this header itself.
    #[n(1)]
    OfServer {
        /// Its name, in lower case.
        #[n(0)]
        name: String,
    },
    /// Its value has a control character.
    #[n(2)]
    ControlCharacter,
    /// Its value is not that of a header.
    #[n(3)]
    Value,
}

/// Why there is no answer to a request, or not the one that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeProblem {
    /// The HTTP client cannot be set up.
    #[n(0)]
    Setup,
    /// No connection came about.
    #[n(1)]
    NotConnected,
    /// No connection came about in time.
    #[n(2)]
    ConnectTime {
        /// The limit, milliseconds.
        #[n(0)]
        max_ms: u64,
    },
    /// The TLS handshake has failed.
    #[n(3)]
    Tls,
    /// There was no complete answer in time.
    #[n(4)]
    AnswerTime {
        /// The limit, milliseconds.
        #[n(0)]
        max_ms: u64,
    },
    /// The connection has ended, or has broken the rules of HTTP, before the answer was complete.
    #[n(5)]
    Broken,
    /// The answer is too large; the rest of it was not read.
    #[n(6)]
    AnswerSize {
        /// The limit, bytes.
        #[n(0)]
        max: u64,
    },
    /// The answer is compressed, and was not to be.
    #[n(7)]
    Compressed,
    /// The receiver of a message has answered without success.
    #[n(8)]
    ReceiverStatus {
        /// The HTTP status.
        #[n(0)]
        status: u16,
    },
    /// An endpoint has answered an event without success.
    #[n(9)]
    EndpointStatus {
        /// The HTTP status.
        #[n(0)]
        status: u16,
    },
    /// A server of another kind has answered without success.
    #[n(10)]
    Status {
        /// The HTTP status.
        #[n(0)]
        status: u16,
    },
    /// The answer has a status that HTTP does not have.
    #[n(11)]
    NoStatus,
}
