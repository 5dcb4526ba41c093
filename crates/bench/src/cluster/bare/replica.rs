//! A follower of the bare log: its service, and the leader's connection to it.

use std::convert::Infallible;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::client;
use tonic::codegen::http::{self, uri::PathAndQuery};
use tonic::codegen::{BoxFuture, Context, Poll, Service};
use tonic::server::{Grpc, NamedService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::write;

/// The method that appends a batch.
const APPEND: &str = "/switchward.bench.Replica/Append";

/// A batch.
#[derive(Clone, PartialEq, prost::Message)]
struct AppendRequest {
    #[prost(bytes = "vec", tag = "1")]
    bytes: Vec<u8>,
}

/// The batch is on disk.
#[derive(Clone, PartialEq, prost::Message)]
struct AppendResponse {}

/// The service. It has one method, so it looks at no path.
#[derive(Clone)]
struct Replica {
    file: Arc<Mutex<File>>,
}

impl NamedService for Replica {
    const NAME: &'static str = "switchward.bench.Replica";
}

impl Service<http::Request<Body>> for Replica {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let append = Append(Arc::clone(&self.file));
        Box::pin(async move {
            let codec = ProstCodec::<AppendResponse, AppendRequest>::default();
            Ok(Grpc::new(codec).unary(append, request).await)
        })
    }
}

/// The method.
struct Append(Arc<Mutex<File>>);

impl Service<Request<AppendRequest>> for Append {
    type Response = Response<AppendResponse>;
    type Error = Status;
    type Future = BoxFuture<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<AppendRequest>) -> Self::Future {
        let file = Arc::clone(&self.0);
        Box::pin(async move {
            let bytes = request.into_inner().bytes;
            let written = tokio::task::spawn_blocking(move || {
                let mut file = file.lock().map_err(|_| Status::internal("a write panicked"))?;
                write(&mut file, &bytes).map_err(|error| Status::internal(error.to_string()))
            });
            written.await.map_err(|error| Status::internal(error.to_string()))??;
            Ok(Response::new(AppendResponse {}))
        })
    }
}

/// Serves until it is killed, and writes to this file.
///
/// # Errors
/// No port is free.
pub(super) async fn serve(file: File) -> anyhow::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{{\"address\":\"http://{}\"}}", listener.local_addr()?);
    Server::builder()
        .tcp_nodelay(true)
        .add_service(Replica { file: Arc::new(Mutex::new(file)) })
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await?;
    Ok(())
}

/// The leader's connection to a follower.
pub(super) struct Follower {
    client: client::Grpc<Channel>,
}

impl Follower {
    /// Connects to the follower at this address.
    ///
    /// # Errors
    /// It does not listen.
    pub(super) async fn connect(address: &str) -> anyhow::Result<Self> {
        let channel = Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true).connect().await?;
        Ok(Self { client: client::Grpc::new(channel) })
    }

    /// Returns when the follower has a batch on disk.
    ///
    /// # Errors
    /// It is gone, or its disk has failed.
    pub(super) async fn append(&mut self, bytes: Vec<u8>) -> Result<(), Status> {
        self.client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<AppendRequest, AppendResponse>::default();
        let request = Request::new(AppendRequest { bytes });
        self.client.unary(request, PathAndQuery::from_static(APPEND), codec).await.map(drop)
    }
}
