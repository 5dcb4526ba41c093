//! Samples of why deliveries fail.

use switchward_machine::DeliveryReason;
use switchward_state::delivery::{
    AddressProblem, DeliveryDetail, DisabledReason, EventProblem, EventSubject, ExchangeProblem, FailureCode,
    HeaderProblem, JobProblem, MailCap, MailProblem, ModelProblem, PingProblem, PublishedType,
    RequestProblem, SizedPart,
};

/// Every code of a failed delivery at least once, with each problem of an event that cannot be sent.
#[must_use]
pub fn failure_codes() -> Vec<FailureCode> {
    let problems = [
        EventProblem::EndpointDisabled { reason: DisabledReason::Gone },
        EventProblem::NoSession,
        EventProblem::UnknownSubject {
            kind: PublishedType::DefinitionDeployed,
            about: Some(EventSubject::OfSession("release".into())),
        },
    ];
    let mut all = vec![
        FailureCode::Attempt(DeliveryReason::Timeout),
        FailureCode::WebhookFailed,
        FailureCode::TooLarge,
        FailureCode::MailNotConfigured,
        "carrier_pigeon_lost".parse().expect("a program may report it"),
    ];
    all.extend(problems.map(FailureCode::Unsendable));
    all.extend(MailCap::ALL.map(FailureCode::MailCap));
    all
}

/// Every detail of a failed delivery at least once.
#[must_use]
pub fn delivery_details() -> Vec<DeliveryDetail> {
    let parts = [SizedPart::Address, SizedPart::Headers, SizedPart::Body, SizedPart::Data, SizedPart::Result];
    let too_large = |part| DeliveryDetail::TooLarge { part, bytes: 1_048_577, max: 1_048_576 };
    let mut all = vec![DeliveryDetail::Quoted { text: "550 no such user".into() }];
    all.extend(parts.map(too_large));
    all.extend(addresses().into_iter().map(DeliveryDetail::from));
    all.extend(requests().into_iter().map(DeliveryDetail::from));
    all.extend(exchanges().into_iter().map(DeliveryDetail::from));
    all.extend(mails().into_iter().map(DeliveryDetail::from));
    all.extend(models().into_iter().map(DeliveryDetail::from));
    all.extend([JobProblem::Late, JobProblem::WorkersOnly].map(DeliveryDetail::from));
    all.extend(pings().into_iter().map(DeliveryDetail::from));
    all
}

fn diagnostic() -> String {
    "missing field `url`".into()
}

fn addresses() -> Vec<AddressProblem> {
    vec![
        AddressProblem::Characters,
        AddressProblem::Unreadable { diagnostic: "invalid port number".into() },
        AddressProblem::Scheme,
        AddressProblem::HttpsOnly,
        AddressProblem::Login,
        AddressProblem::NoHost,
        AddressProblem::HostLength,
        AddressProblem::HostCharacters,
        AddressProblem::HostNotListed,
        AddressProblem::NoPort,
        AddressProblem::PortNotListed { port: 25 },
        AddressProblem::NotPublic,
        AddressProblem::Unresolved { name: "inner.example".into() },
        AddressProblem::RulesUnknown,
    ]
}

fn requests() -> Vec<RequestProblem> {
    let header = |problem| RequestProblem::Header { number: 2, problem };
    vec![
        RequestProblem::Unreadable { diagnostic: diagnostic() },
        RequestProblem::Method,
        RequestProblem::TooManyHeaders { count: 65, max: 64 },
        header(HeaderProblem::Name),
        header(HeaderProblem::OfServer { name: "host".into() }),
        header(HeaderProblem::ControlCharacter),
        header(HeaderProblem::Value),
        RequestProblem::BodyJson,
        RequestProblem::BodyText,
        RequestProblem::HeaderText,
    ]
}

fn exchanges() -> Vec<ExchangeProblem> {
    vec![
        ExchangeProblem::Setup,
        ExchangeProblem::NotConnected,
        ExchangeProblem::ConnectTime { max_ms: 10_000 },
        ExchangeProblem::Tls,
        ExchangeProblem::AnswerTime { max_ms: 20_000 },
        ExchangeProblem::Broken,
        ExchangeProblem::AnswerSize { max: 1_048_576 },
        ExchangeProblem::Compressed,
        ExchangeProblem::ReceiverStatus { status: 503 },
        ExchangeProblem::EndpointStatus { status: 410 },
        ExchangeProblem::Status { status: 502 },
        ExchangeProblem::NoStatus,
    ]
}

fn mails() -> Vec<MailProblem> {
    vec![
        MailProblem::NotConfigured,
        MailProblem::Sender,
        MailProblem::Address { text: "kim \"at\" home".into() },
        MailProblem::ReplyAddress { to: "reply+abc@acme.example".into() },
        MailProblem::Author { from: "lead@acme.example".into() },
        MailProblem::TooManyAddresses { max: 128 },
        MailProblem::Characters,
        MailProblem::Length { subject_max: 998, text_max: 1_048_576 },
        MailProblem::NoContentType,
        MailProblem::Tls { diagnostic: "no certificate".into() },
        MailProblem::NoReply,
        MailProblem::TooSlow,
    ]
}

fn models() -> Vec<ModelProblem> {
    vec![
        ModelProblem::NotConfigured,
        ModelProblem::Busy,
        ModelProblem::Unreadable { diagnostic: diagnostic() },
        ModelProblem::TooManyChoices { count: 201, max: 200 },
        ModelProblem::NoChoices,
        ModelProblem::NameLength { max: 256 },
        ModelProblem::InstructionsLength { max: 32_768 },
        ModelProblem::Status { status: 529, error: Some("overloaded_error".into()) },
        ModelProblem::Status { status: 404, error: None },
        ModelProblem::Declined,
        ModelProblem::AnswerCut,
        ModelProblem::AnswerForm,
        ModelProblem::ResultSchema,
    ]
}

fn pings() -> Vec<PingProblem> {
    vec![
        PingProblem::Busy,
        PingProblem::AnswerLost { diagnostic: "the bus cannot be reached".into() },
        PingProblem::NoAnswer,
        PingProblem::AnswerForm,
    ]
}
