//! Connections that are kept for another request: for whom, and where to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::server::{Act, Names, client, client_with, get, json, open, read_request};

/// A server that keeps its connections; where each request came in, with the connection's number.
struct Keeping {
    port: u16,
    seen: Arc<Mutex<Vec<(usize, SocketAddr)>>>,
}

impl Keeping {
    /// One that ends each connection after `each` requests.
    async fn start(each: usize) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port is free");
        let port = listener.local_addr().expect("the listener is bound").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((mut stream, _)) = listener.accept().await {
                number += 1;
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    let here = stream.local_addr().expect("a client connects");
                    for _ in 0..each {
                        if read_request(&mut stream).await.is_none() {
                            return;
                        }
                        all.lock().expect("nobody panicked").push((number, here));
                        let Act::Send(bytes) = json(200, &json!("kept")) else { return };
                        // The other side may leave at any time.
                        let _gone = stream.write_all(&bytes).await;
                    }
                });
            }
        });
        Self { port, seen }
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/", self.port)
    }

    fn connections(&self) -> Vec<usize> {
        self.seen.lock().expect("nobody panicked").iter().map(|(number, _)| *number).collect()
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_its_tenant_alone() {
    let server = Keeping::start(usize::MAX).await;
    let (client, request) = (client(&[server.port]), get(&server.url("127.0.0.1")));
    for tenant in [1, 1, 2, 1] {
        client.send(tenant, &request).await.expect("the request is answered");
    }
    client.send_under(&open(&[server.port]), &request).await.expect("the request is answered");
    assert_eq!(server.connections(), [1, 1, 2, 1, 3]);
}

#[tokio::test]
async fn a_connection_is_kept_though_only_the_head_of_its_answer_matters() {
    let server = Keeping::start(usize::MAX).await;
    let (client, request) = (client(&[server.port]), get(&server.url("127.0.0.1")));
    for _ in 0..3 {
        client.notify(1, &request).await.expect("the request is answered");
    }
    assert_eq!(server.connections(), [1, 1, 1]);
}

#[tokio::test]
async fn a_connection_is_not_used_where_its_name_leads_elsewhere_by_now() {
    let server = Keeping::start(usize::MAX).await;
    let names = Names::of(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1"]]);
    let client = client_with(open(&[server.port]), names);
    for _ in 0..3 {
        client.send(1, &get(&server.url("moving.example"))).await.expect("the request is answered");
    }
    let seen = server.seen.lock().expect("nobody panicked").clone();
    let seen: Vec<String> = seen.iter().map(|(number, here)| format!("{number} {}", here.ip())).collect();
    assert_eq!(seen, ["1 127.0.0.1", "2 127.0.0.2", "1 127.0.0.1"]);
}

#[tokio::test]
async fn a_connection_that_has_ended_is_made_again() {
    let server = Keeping::start(2).await;
    let (client, request) = (client(&[server.port]), get(&server.url("127.0.0.1")));
    for _ in 0..5 {
        client.send(1, &request).await.expect("the request is answered");
        tokio::task::yield_now().await;
    }
    assert_eq!(server.connections(), [1, 1, 2, 2, 3]);
}
