//! A client that sends what it is told and shows what comes back.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    Nobody,
    /// With the token of a session.
    Session(String),
    /// With an API key.
    Key(String),
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// The stable word of an error; empty where it is none.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The document of an answer that has to be a good one.
    pub(crate) fn ok(self) -> Value {
        assert!(self.status < 300, "{} {}", self.status, self.text());
        self.json()
    }
}

/// A request on its way, and what drives its connection.
async fn begin(
    address: SocketAddr,
    who: &Who,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> (Response<Incoming>, AbortHandle) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await
            .unwrap();
    let driving = tokio::spawn(connection).abort_handle();
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(path)
        .header("host", address.to_string());
    request = match who {
        Who::Nobody => request,
        Who::Session(token) => request.header("cookie", format!("glovebox_session={token}")),
        Who::Key(token) => request.header("authorization", format!("Bearer {token}")),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = sender.send_request(request.body(Full::new(body)).unwrap());
    (answer.await.unwrap(), driving)
}

/// One request over a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    who: &Who,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Answer {
    let (answer, driving) = begin(address, who, method, path, headers, body).await;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    driving.abort();
    Answer {
        status,
        headers,
        bytes,
    }
}

/// A stream of events that is read as it comes.
pub(crate) struct Listening {
    body: Incoming,
    text: String,
    driving: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

/// Begins to read a stream of events.
pub(crate) async fn listen(address: SocketAddr, who: &Who, path: &str) -> Listening {
    let listening = try_listen(address, who, path).await;
    listening.expect("a stream of events")
}

/// The same, where one may be refused.
pub(crate) async fn try_listen(address: SocketAddr, who: &Who, path: &str) -> Option<Listening> {
    let (answer, driving) = begin(address, who, "GET", path, &[], Bytes::new()).await;
    if answer.status() != 200 {
        driving.abort();
        return None;
    }
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    Some(Listening {
        body: answer.into_body(),
        text: String::new(),
        driving,
    })
}

impl Listening {
    /// The next event; nothing when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let data = data.map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                match data {
                    Some(data) => return Some(data),
                    // A heartbeat.
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.unwrap();
            let part = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
    }

    /// All events up to the first of this type.
    pub(crate) async fn until(&mut self, wanted: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let event = event.unwrap_or_else(|| panic!("no {wanted} after {events:?}"));
            let is_it = event["type"] == wanted;
            events.push(event);
            if is_it {
                return events;
            }
        }
    }
}

/// The session that an answer has set.
pub(crate) fn session_of(answer: &Answer) -> Who {
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let value = cookie.split(';').next().unwrap().split_once('=').unwrap().1;
    Who::Session(value.to_owned())
}
