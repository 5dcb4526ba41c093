//! Calls over one connection, by every way in.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::net::SocketAddr;
use switchward_shard::Cluster;
use tokio::net::TcpStream;
use tonic::Status;

use crate::protocols::{Answer, Protocol, Raw, body, reply, stream};

/// Connections that carry any number of concurrent calls, one to each server. A call takes a random one.
#[derive(Clone)]
pub(crate) struct Line {
    /// Of the first server.
    pub(crate) address: SocketAddr,
    wires: Vec<Wire>,
}

/// A connection to one server.
#[derive(Clone)]
pub(crate) struct Wire {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    /// Unless a gateway is called, which has none.
    cluster: Option<Cluster>,
}

impl Wire {
    /// Connects to the server of this cluster.
    pub(crate) async fn connect(address: SocketAddr, cluster: impl Into<Option<Cluster>>) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let handshake = Builder::new(TokioExecutor::new())
            .max_header_list_size(65_536)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = handshake.expect("HTTP/2");
        tokio::spawn(connection);
        Self { address, sender, cluster: cluster.into() }
    }
}

impl Line {
    pub(crate) fn of(wires: Vec<Wire>) -> Self {
        Self { address: wires[0].address, wires }
    }

    /// A line to a gateway or a port of this address.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::of(vec![Wire::connect(address, None).await])
    }

    /// A line to one server alone.
    pub(crate) fn to(&self, server: usize) -> Self {
        Self::of(vec![self.wires[server].clone()])
    }

    pub(crate) async fn send(&self, raw: Raw) -> Answer {
        self.exchange(Raw { http2: true, ..raw }.into_request(self.address)).await
    }

    pub(crate) async fn exchange(&self, request: Request<Full<Bytes>>) -> Answer {
        // A server moves its own clock, and knows which moves it has made: those of a test go to one server.
        let of_clock = request.uri().path().contains("ClockService");
        let wire = &self.wires[if of_clock { 0 } else { rand::random_range(0..self.wires.len()) }];
        if self.wires.len() > 1
            && let Some(cluster) = &wire.cluster
        {
            // A change of keys and tenants holds on every server within a second: no test waits for it.
            cluster.catalogue().read().await.expect("a leader");
        }
        let mut sender = wire.sender.clone();
        sender.ready().await.expect("the connection is open");
        Answer::of(sender.send_request(request).await.expect("an answer")).await
    }

    /// Makes a unary call with a message in bytes of protobuf.
    pub(crate) async fn call(
        &self,
        protocol: Protocol,
        method: &str,
        secret: &str,
        message: &[u8],
    ) -> Result<Bytes, Status> {
        let raw = Raw::post(protocol, method, body(protocol, method, message)).with_key(secret);
        reply(protocol, method, &self.send(raw).await)
    }

    /// Makes a unary call by gRPC.
    pub(crate) async fn ask<R: Message + Default>(
        &self,
        secret: &str,
        method: &str,
        request: &impl Message,
    ) -> Result<R, Status> {
        let bytes = self.call(Protocol::Grpc, method, secret, &request.encode_to_vec()).await?;
        Ok(R::decode(bytes).expect("a reply"))
    }

    /// Makes a call whose stream ends by itself; returns its messages and its end.
    pub(crate) async fn watch(
        &self,
        protocol: Protocol,
        method: &str,
        secret: &str,
        message: &[u8],
    ) -> (Vec<Bytes>, Result<(), Status>) {
        let raw = Raw::post(protocol, method, body(protocol, method, message)).with_key(secret);
        stream(protocol, &self.send(raw).await)
    }
}

impl Raw {
    pub(crate) fn with_key(self, secret: &str) -> Self {
        self.with("authorization", format!("Bearer {secret}"))
    }
}
