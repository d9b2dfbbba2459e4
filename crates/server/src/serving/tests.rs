//! Callers who are slow, on purpose or not, over real connections.

use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(1);

/// More than fits between two sockets.
const LARGE: usize = 64 << 20;

async fn server(connections: usize, per_address: usize) -> SocketAddr {
    let routes = Router::new()
        .route("/", get(async || "here"))
        .route("/large", get(async || vec![b'x'; LARGE]))
        .route("/bytes", post(async |body: Bytes| body.len().to_string()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits {
        head: PATIENCE,
        silence: PATIENCE,
        untaken: PATIENCE,
        connections,
        per_address,
        unlimited: Vec::new(),
    };
    tokio::spawn(answer(listener, routes, limits, std::future::pending()));
    address
}

#[tokio::test]
async fn a_connection_that_nobody_answers_any_more_does_not_stay() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (caller, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (stream, _) = accepted.unwrap();
    prepare(&stream);
    let set = rustix::net::sockopt::tcp_user_timeout(&stream).unwrap();
    assert_eq!(u128::from(set), VANISHED.as_millis());
    assert!(stream.nodelay().unwrap());
    drop(caller.unwrap());
}

async fn say(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    stream
}

/// All that is answered until the connection ends.
async fn heard(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection may also be torn.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

const WHOLE: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_head_that_does_not_end_is_waited_for_no_longer_than_its_time() {
    let address = server(1, 1).await;
    let slow = say(address, "GET / HTTP/1.1\r\nhost: ").await;
    assert!(!heard(slow).await.contains("here"));
    // The only place is free again.
    assert!(heard(say(address, WHOLE).await).await.ends_with("here"));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_waited_for_no_longer_than_its_time() {
    let address = server(1, 1).await;
    let head = "POST /bytes HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n";
    let slow = say(address, &format!("{head}abc")).await;
    let answer = heard(slow).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(heard(say(address, WHOLE).await).await.ends_with("here"));
}

#[tokio::test]
async fn whoever_takes_nothing_of_an_answer_loses_the_connection() {
    let address = server(1, 2).await;
    let slow = say(address, "GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await;
    // Waits for the only place, which is free when the other one has lost it.
    assert!(heard(say(address, WHOLE).await).await.ends_with("here"));
    assert!(heard(slow).await.len() < LARGE);
}

#[tokio::test]
async fn callers_beyond_the_limit_of_their_address_are_turned_away() {
    let address = server(8, 2).await;
    let (one, _two) = (say(address, "GET").await, say(address, "GET").await);
    assert_eq!(heard(say(address, WHOLE).await).await, "");
    drop(one);
    // That it has gone is seen some moment later.
    while heard(say(address, WHOLE).await).await.is_empty() {}
}
