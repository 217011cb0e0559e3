//! A WebSocket client, as anybody has one, and files for commands.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::harness::SOON;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The next message of which this is so.
pub(crate) async fn message(socket: &mut Socket, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let message = socket.next().await.expect("the connection is open").unwrap();
            if let Message::Text(text) = message {
                let message: Value = serde_json::from_str(&text).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the message comes in time")
}

/// The next message with this `op`.
pub(crate) async fn op(socket: &mut Socket, op: &str) -> Value {
    message(socket, |message| message["op"] == op).await
}

/// Reads on until the connection is closed.
pub(crate) async fn closed(mut socket: Socket) {
    let rest = async { while socket.next().await.is_some_and(|message| message.is_ok()) {} };
    tokio::time::timeout(SOON, rest).await.expect("the connection is closed");
}

/// The word of a line that begins so.
pub(crate) fn word<'a>(line: &'a str, begin: &str) -> &'a str {
    let found = line.split_whitespace().find(|word| word.starts_with(begin));
    found.unwrap_or_else(|| panic!("{begin} is not in {line:?}"))
}

/// What is said about the context `none`, where there is no such one.
pub(crate) const NO_CONTEXT: &str = ": none; `kubectl config get-contexts` lists the contexts there are\n";

/// What is said where an address is taken, and what to do.
pub(crate) fn taken_address(address: &str) -> String {
    let why = std::io::Error::from(rustix::io::Errno::ADDRINUSE);
    format!(
        "cannot listen on {address}: {why}; give --listen another address, or 127.0.0.1:0 for a free port\n"
    )
}

/// A file that goes away with the test, and that no other one has.
pub(crate) struct File(PathBuf);

impl File {
    fn new(kind: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{number}.{kind}", std::process::id());
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    pub(crate) fn token(text: &str) -> Self {
        let file = Self::new("token");
        std::fs::write(&file.0, text).unwrap();
        file
    }

    pub(crate) fn kubeconfig(access: &Access) -> Self {
        let file = Self::new("kubeconfig");
        access.write(&file.0).unwrap();
        file
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // It is in a folder for such things.
        let _ = std::fs::remove_file(&self.0);
    }
}
