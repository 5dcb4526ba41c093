//! Calls over one connection, by every way in.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tonic::Status;

use crate::ways::{Answer, Raw, Way, body, reply, stream};

/// A connection that carries any number of concurrent calls.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Line {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let handshake = Builder::new(TokioExecutor::new())
            .max_header_list_size(65_536)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = handshake.expect("HTTP/2");
        tokio::spawn(connection);
        Self { address, sender }
    }

    pub(crate) async fn send(&self, raw: Raw) -> Answer {
        self.exchange(Raw { http2: true, ..raw }.into_request(self.address)).await
    }

    pub(crate) async fn exchange(&self, request: Request<Full<Bytes>>) -> Answer {
        let mut sender = self.sender.clone();
        sender.ready().await.expect("the connection is open");
        Answer::of(sender.send_request(request).await.expect("an answer")).await
    }

    /// Makes a unary call with a message in bytes of protobuf.
    pub(crate) async fn call(
        &self,
        way: Way,
        method: &str,
        secret: &str,
        message: &[u8],
    ) -> Result<Bytes, Status> {
        let raw = Raw::post(way, method, body(way, method, message)).with_key(secret);
        reply(way, method, &self.send(raw).await)
    }

    /// Makes a unary call by gRPC.
    pub(crate) async fn ask<R: Message + Default>(
        &self,
        secret: &str,
        method: &str,
        request: &impl Message,
    ) -> Result<R, Status> {
        let bytes = self.call(Way::Grpc, method, secret, &request.encode_to_vec()).await?;
        Ok(R::decode(bytes).expect("a reply"))
    }

    /// Makes a call whose stream ends by itself; returns its messages and its end.
    pub(crate) async fn watch(
        &self,
        way: Way,
        method: &str,
        secret: &str,
        message: &[u8],
    ) -> (Vec<Bytes>, Result<(), Status>) {
        let raw = Raw::post(way, method, body(way, method, message)).with_key(secret);
        stream(way, &self.send(raw).await)
    }
}

impl Raw {
    pub(crate) fn with_key(self, secret: &str) -> Self {
        self.with("authorization", format!("Bearer {secret}"))
    }
}
