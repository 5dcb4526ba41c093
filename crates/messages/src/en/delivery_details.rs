//! What exactly goes wrong with deliveries.

use switchward_state::delivery::{
    AddressProblem, DeliveryDetail, ExchangeProblem, HeaderProblem, JobProblem, MailProblem, ModelProblem,
    PingProblem, RequestProblem, SizedPart,
};

/// What exactly has gone wrong with a delivery. A text from outside is shown as it came.
#[must_use]
pub fn delivery_detail(detail: &DeliveryDetail) -> String {
    match detail {
        DeliveryDetail::Quoted { text } => text.clone(),
        DeliveryDetail::TooLarge { part, bytes, max } => too_large(*part, *bytes, *max),
        DeliveryDetail::Address(problem) => address(problem),
        DeliveryDetail::Request(problem) => request(problem),
        DeliveryDetail::Exchange(problem) => exchange(*problem),
        DeliveryDetail::Mail(problem) => mail(problem),
        DeliveryDetail::Model(problem) => model(problem),
        DeliveryDetail::Job(problem) => job(*problem).to_owned(),
        DeliveryDetail::Ping(problem) => ping(problem),
    }
}

fn too_large(part: SizedPart, bytes: u64, max: u64) -> String {
    let size = match part {
        SizedPart::Address => format!("the address has {bytes} bytes"),
        SizedPart::Headers => format!("the headers have {bytes} bytes"),
        SizedPart::Body => format!("the body has {bytes} bytes"),
        SizedPart::Data => format!("the data have {bytes} bytes"),
        SizedPart::Result => format!("the result has {bytes} bytes as JSON"),
    };
    format!("{size}, at most {max} are allowed")
}

fn address(problem: &AddressProblem) -> String {
    let text = match problem {
        AddressProblem::Characters => "the address contains a space, a control character or a backslash",
        AddressProblem::Unreadable { diagnostic } => {
            return format!("the address cannot be read: {diagnostic}");
        }
        AddressProblem::Scheme => "only http and https are allowed",
        AddressProblem::HttpsOnly => "only https is allowed here",
        AddressProblem::Login => "the address contains a user name or a password",
        AddressProblem::NoHost => "the address has no host",
        AddressProblem::HostLength => "the host name is too long",
        AddressProblem::HostCharacters => "the host name contains an invalid character",
        AddressProblem::HostNotListed => "the host is not on the list of allowed hosts",
        AddressProblem::NoPort => "the address has no port",
        AddressProblem::PortNotListed { port } => return format!("the port {port} is not allowed"),
        AddressProblem::NotPublic => "the address is not in the public network",
        AddressProblem::Unresolved { name } => {
            return format!("{name} has no address, or one that is not allowed");
        }
        AddressProblem::RulesUnknown => "the rules of this tenant's requests cannot be read now",
    };
    text.to_owned()
}

fn request(problem: &RequestProblem) -> String {
    match problem {
        RequestProblem::Unreadable { diagnostic } => format!("the request cannot be read: {diagnostic}"),
        RequestProblem::Method => "the method is invalid".to_owned(),
        RequestProblem::TooManyHeaders { count, max } => {
            format!("the request has {count} headers, at most {max} are allowed")
        }
        RequestProblem::Header { number, problem } => format!("header {number}: {}", header(problem)),
        RequestProblem::BodyJson => "the body cannot be written as JSON".to_owned(),
        RequestProblem::BodyText => "the body cannot be written as text".to_owned(),
        RequestProblem::HeaderText => "the request cannot be written".to_owned(),
    }
}

fn header(problem: &HeaderProblem) -> String {
    match problem {
        HeaderProblem::Name => "the name is invalid".to_owned(),
        HeaderProblem::OfServer { name } => format!("{name} is set by the server"),
        HeaderProblem::ControlCharacter => "the value contains a control character".to_owned(),
        HeaderProblem::Value => "the value is invalid".to_owned(),
    }
}

fn exchange(problem: ExchangeProblem) -> String {
    let text = match problem {
        ExchangeProblem::Setup => "failed to set up the connection",
        ExchangeProblem::NotConnected => "failed to connect",
        ExchangeProblem::ConnectTime { max_ms } => {
            return format!("there was no connection within {max_ms} ms");
        }
        ExchangeProblem::Tls => "the TLS handshake failed",
        ExchangeProblem::AnswerTime { max_ms } => {
            return format!("there was no complete answer within {max_ms} ms");
        }
        ExchangeProblem::Broken => "the connection ended or violated HTTP before the answer was complete",
        ExchangeProblem::AnswerSize { max } => return format!("the answer has more than {max} bytes"),
        ExchangeProblem::Compressed => "the answer is compressed although the request asked for plain bytes",
        ExchangeProblem::ReceiverStatus { status } => return format!("the receiver answered {status}"),
        ExchangeProblem::EndpointStatus { status } => return format!("the endpoint answered {status}"),
        ExchangeProblem::Status { status } => return format!("the answer was {status}"),
        ExchangeProblem::NoStatus => "the answer has no status",
    };
    text.to_owned()
}

fn mail(problem: &MailProblem) -> String {
    match problem {
        MailProblem::NotConfigured => "this server has no mail server configured".to_owned(),
        MailProblem::Sender => "the sender is not an address".to_owned(),
        MailProblem::Address { text } => format!("{text:?} is not a mail address"),
        MailProblem::ReplyAddress { to } => {
            format!("{to} is a reply address of this server: the server does not send mail to itself")
        }
        MailProblem::Author { from } => {
            format!("{from} is not allowed as the author: mail.authors does not list it")
        }
        MailProblem::TooManyAddresses { max } => {
            format!("a mail has at most {max} addresses in From, To and Cc")
        }
        MailProblem::Characters => {
            "an address, the subject or an id contains an invalid character".to_owned()
        }
        MailProblem::Length { subject_max, text_max } => {
            format!(
                "the subject of a mail has at most {subject_max} characters, and its text at most {text_max} bytes"
            )
        }
        MailProblem::NoContentType => "the mail has no content type".to_owned(),
        MailProblem::Tls { diagnostic } => format!("TLS cannot be set up: {diagnostic}"),
        MailProblem::NoReply => "the mail server has not answered in time".to_owned(),
        MailProblem::TooSlow => "the mail server took too long".to_owned(),
    }
}

fn model(problem: &ModelProblem) -> String {
    match problem {
        ModelProblem::NotConfigured => "this server has no model configured".to_owned(),
        ModelProblem::Busy => "too many other questions to the model were open until the deadline".to_owned(),
        ModelProblem::Unreadable { diagnostic } => format!("the input cannot be read: {diagnostic}"),
        ModelProblem::TooManyChoices { count, max } => {
            format!("there are {count} choices, at most {max} are allowed")
        }
        ModelProblem::NoChoices => "there are no choices".to_owned(),
        ModelProblem::NameLength { max } => format!("a name is empty or longer than {max} bytes"),
        ModelProblem::InstructionsLength { max } => {
            format!("the instructions are longer than {max} bytes")
        }
        ModelProblem::Status { status, error } => {
            let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
            format!("the model's endpoint answered with status {status}{error}")
        }
        ModelProblem::Declined => "the model declined to answer".to_owned(),
        ModelProblem::AnswerCut => "the model's answer was cut off".to_owned(),
        ModelProblem::AnswerForm => "the model's answer does not have the requested form".to_owned(),
        ModelProblem::ResultSchema => "the answer does not match the result schema".to_owned(),
    }
}

fn job(problem: JobProblem) -> &'static str {
    match problem {
        JobProblem::Late => "the deadline passed before the job began",
        JobProblem::WorkersOnly => "only workers do this kind of work",
    }
}

fn ping(problem: &PingProblem) -> String {
    match problem {
        PingProblem::Busy => {
            "too many messages to endpoints are waiting for answers at this server; send the message again later"
                .to_owned()
        }
        PingProblem::AnswerLost { diagnostic } => format!("the message may have been sent: {diagnostic}"),
        PingProblem::NoAnswer => {
            "no delivery process has answered in time; the message may have been sent".to_owned()
        }
        PingProblem::AnswerForm => "the answer of a delivery process cannot be read".to_owned(),
    }
}
