//! A WebSocket client that knows what it was told: it plays snapshots and changes, and checks that they fit.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use kube_informer_feed::change::What;
use kube_informer_feed::journal::Cursor;
use kube_informer_feed::message::{ChangeMessage, Hello, Message, SUBPROTOCOL};
use kube_informer_feed::server::Server;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::{self, Message as Frame};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async, connect_async};

use crate::harness::SOON;

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub(crate) hello: Hello,
}

/// What is read: a message, or the end with its code.
#[derive(Debug)]
pub(crate) enum Read {
    Message(Box<Message>),
    End(Option<u16>),
}

impl Client {
    /// Connects and speaks the protocol.
    pub(crate) async fn speaking(url: &str) -> Result<Self> {
        Self::with(url, &[("sec-websocket-protocol", SUBPROTOCOL)]).await
    }

    /// Connects as any WebSocket client does.
    pub(crate) async fn plain(url: &str) -> Result<Self> {
        Self::with(url, &[]).await
    }

    /// Connects with little room for what is not read.
    pub(crate) async fn narrow(server: &Server) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(8 << 10)?;
        let stream = MaybeTlsStream::Plain(socket.connect(server.address()).await?);
        let headers = [("sec-websocket-protocol", SUBPROTOCOL)];
        let (socket, _) = client_async(request(&server.url(), &headers)?, stream).await?;
        Self::of(socket).await
    }

    pub(crate) async fn with(url: &str, headers: &[(&str, &str)]) -> Result<Self> {
        let (socket, response) = connect_async(request(url, headers)?).await?;
        let chosen = response.headers().get("sec-websocket-protocol").and_then(|value| value.to_str().ok());
        let named = headers
            .iter()
            .any(|(name, value)| *name == "sec-websocket-protocol" && value.contains(SUBPROTOCOL));
        ensure!(chosen == named.then_some(SUBPROTOCOL), "the server chose {chosen:?}");
        Self::of(socket).await
    }

    async fn of(socket: WebSocketStream<MaybeTlsStream<TcpStream>>) -> Result<Self> {
        let hello = Hello {
            epoch: String::new(),
            cursor: "0:0".parse()?,
            limits: kube_informer_feed::message::Limits { subscriptions: 0, frame: 0, outbox: 0 },
            resources: Vec::new(),
            any: false,
        };
        let mut client = Self { socket, hello };
        match client.message().await? {
            Message::Hello(hello) => client.hello = hello,
            other => bail!("hello comes first, and not {other:?}"),
        }
        Ok(client)
    }

    pub(crate) async fn send(&mut self, request: &Value) -> Result<()> {
        self.text(&request.to_string()).await
    }

    pub(crate) async fn text(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.send(Frame::text(text)).await?)
    }

    /// Subscribes to config maps, with more fields.
    pub(crate) async fn sub(&mut self, id: &str, more: Value) -> Result<()> {
        let mut request = json!({ "op": "sub", "id": id, "gvr": "v1/configmaps" });
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        self.send(&request).await
    }

    pub(crate) async fn read(&mut self) -> Result<Read> {
        loop {
            let frame = timeout(SOON, self.socket.next()).await.context("nothing came")?;
            match frame {
                None => return Ok(Read::End(None)),
                Some(Ok(Frame::Text(text))) => {
                    let message =
                        serde_json::from_str(&text).with_context(|| format!("not understood: {text}"))?;
                    return Ok(Read::Message(Box::new(message)));
                }
                Some(Ok(Frame::Close(frame))) => return Ok(Read::End(frame.map(|frame| frame.code.into()))),
                Some(Ok(_)) => {}
                Some(Err(tungstenite::Error::Protocol(_) | tungstenite::Error::Io(_))) => {
                    return Ok(Read::End(None));
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Result<Message> {
        match self.read().await? {
            Read::Message(message) => Ok(*message),
            Read::End(code) => bail!("the connection ended with {code:?}"),
        }
    }

    /// The next message of a kind; others are skipped.
    pub(crate) async fn find<T>(&mut self, mut wanted: impl FnMut(Message) -> Option<T>) -> Result<T> {
        loop {
            if let Some(found) = wanted(self.message().await?) {
                return Ok(found);
            }
        }
    }

    /// The next change.
    pub(crate) async fn change(&mut self) -> Result<ChangeMessage> {
        self.find(|message| match message {
            Message::Change(change) => Some(*change),
            Message::Gap(gap) => panic!("{gap:?}"),
            Message::Err(err) => panic!("{err:?}"),
            _ => None,
        })
        .await
    }

    /// The next error.
    pub(crate) async fn err(&mut self) -> Result<(u16, Option<String>, String)> {
        self.find(|message| match message {
            Message::Err(err) => Some((err.code, err.sub, err.message)),
            _ => None,
        })
        .await
    }

    /// The names of the objects of a snapshot, and its cursor.
    pub(crate) async fn snapshot(&mut self, id: &str) -> Result<(BTreeSet<String>, Cursor)> {
        let mut names = BTreeSet::new();
        let mut begun = false;
        loop {
            match self.message().await? {
                Message::SnapBegin(begin) if begin.sub == id => begun = true,
                Message::SnapItem(item) if item.sub == id => {
                    ensure!(begun, "an item before the beginning");
                    ensure!(names.insert(item.obj.name.clone()), "{} twice", item.obj.name);
                }
                Message::SnapEnd(end) if end.sub == id => {
                    ensure!(begun && end.count == names.len(), "{end:?}, and {names:?}");
                    return Ok((names, end.cursor));
                }
                Message::Change(change) => bail!("a change before the snapshot's end: {change:?}"),
                Message::Err(err) => bail!("{err}"),
                _ => {}
            }
        }
    }

    /// Answers pings and reads nothing else, until the server has closed the connection; how it did.
    pub(crate) async fn end(&mut self) -> Result<Option<u16>> {
        loop {
            if let Read::End(code) = self.read().await? {
                return Ok(code);
            }
        }
    }
}

pub(crate) fn request(
    url: &str,
    headers: &[(&str, &str)],
) -> Result<tungstenite::handshake::client::Request> {
    let mut request = url.into_client_request()?;
    for (name, value) in headers {
        request.headers_mut().insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
    }
    Ok(request)
}

/// How the server refuses a connection: status and text.
pub(crate) async fn refusal(url: &str, headers: &[(&str, &str)]) -> Result<(u16, String)> {
    match connect_async(request(url, headers)?).await {
        Ok(_) => bail!("it was let in"),
        Err(tungstenite::Error::Http(response)) => {
            let text =
                response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
            Ok((response.status().as_u16(), text))
        }
        Err(other) => Err(other.into()),
    }
}

/// What a client in full mode knows, by UID. It refuses what does not follow from what it knows.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Replay {
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) gaps: usize,
    pub(crate) changes: u32,
    is_complete: bool,
}

impl Replay {
    /// Takes a message in. `again`: whether changes may be told a second time, after a resume.
    pub(crate) fn take(&mut self, message: &Message, again: bool) -> Result<()> {
        match message {
            Message::SnapBegin(_) => {
                self.objects.clear();
                self.is_complete = false;
            }
            Message::SnapItem(item) => {
                let object = item.object.clone().context("an item without its object")?;
                ensure!(self.objects.insert(item.obj.uid.clone(), object).is_none(), "twice: {item:?}");
            }
            Message::SnapEnd(end) => {
                ensure!(end.count == self.objects.len(), "{end:?}, and {} objects", self.objects.len());
                (self.cursor, self.is_complete) = (Some(end.cursor), true);
            }
            Message::Change(change) => self.change(change, again)?,
            Message::Bookmark(bookmark) => self.cursor = Some(bookmark.cursor),
            Message::Gap(_) => self.gaps += 1,
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, message: &ChangeMessage, again: bool) -> Result<()> {
        let ChangeMessage { cursor, change, object, .. } = message;
        ensure!(self.is_complete, "a change before the snapshot's end: {change:?}");
        let before = self.cursor.replace(*cursor);
        ensure!(
            again || before.is_none_or(|before| before.seq < cursor.seq),
            "cursors go up: {before:?}, {cursor}"
        );
        let object = object.clone().context("a change without its object")?;
        self.changes += change.coalesced;
        let known = match change.what {
            What::Deleted => self.objects.remove(&change.obj.uid),
            What::Added | What::Modified => self.objects.insert(change.obj.uid.clone(), object),
        };
        let fits = known.is_some() == (change.what != What::Added);
        ensure!(
            fits || again,
            "{:?} of something that is {}known: {change:?}",
            change.what,
            if known.is_some() { "" } else { "not " }
        );
        Ok(())
    }

    /// The value of each object, by name.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.objects
            .values()
            .map(|object| (text(&object["metadata"]["name"]), text(&object["data"]["key"])))
            .collect()
    }
}
