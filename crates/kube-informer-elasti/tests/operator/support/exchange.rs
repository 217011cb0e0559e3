//! One request and its answer over a connection of their own, byte by byte: with a method, a path, and a body that may come
//! piece by piece.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: String,
    /// One piece is sent with its length; several are sent as a stream, whose length nobody knows before its end.
    pub(crate) body: Vec<Vec<u8>>,
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    pub(crate) fn new(method: &str, path: &str, host: &str, body: &[&[u8]]) -> Self {
        let body = body.iter().map(|piece| piece.to_vec()).collect();
        Self { method: method.to_owned(), path: path.to_owned(), host: host.to_owned(), body }
    }

    /// Sends it, once, and takes the whole answer.
    pub(crate) async fn to(&self, there: SocketAddr) -> Result<Got> {
        let stream = TcpStream::connect(there).await.context("cannot connect")?;
        let (mut read, mut write) = stream.into_split();
        // Who answers piece by piece is not to wait for who sends so.
        let send = async {
            write.write_all(self.head().as_bytes()).await?;
            match &self.body[..] {
                [] => {}
                [whole] => write.write_all(whole).await?,
                pieces => {
                    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                        write.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
                        write.write_all(piece).await?;
                        write.write_all(b"\r\n").await?;
                        write.flush().await?;
                        tokio::task::yield_now().await;
                    }
                    write.write_all(b"0\r\n\r\n").await?;
                }
            }
            anyhow::Ok(())
        };
        let mut answer = Vec::new();
        let (sent, received) = tokio::join!(send, read.read_to_end(&mut answer));
        // Who was refused early need not have been heard to the end.
        received.and(sent.or(Ok(()))).context("the connection broke")?;
        Got::parse(&answer)
    }

    fn head(&self) -> String {
        let Self { method, path, host, body } = self;
        let length = match &body[..] {
            [] => String::new(),
            [whole] => format!("Content-Length: {}\r\n", whole.len()),
            _ => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}\r\n")
    }
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str())
    }

    fn parse(answer: &[u8]) -> Result<Self> {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("they hung up")?;
        let (head, rest) = answer.split_at(end);
        let head = String::from_utf8_lossy(head);
        let status = head.split(' ').nth(1).context("an answer without a status")?.parse()?;
        let headers: Vec<_> = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut got = Self { status, headers, body: rest.get(4..).unwrap_or_default().to_vec() };
        if got.header("transfer-encoding") == Some("chunked") {
            got.body = whole(&got.body)?;
        } else if let Some(length) = got.header("content-length") {
            ensure!(length.parse() == Ok(got.body.len()), "they hung up in the middle");
        }
        Ok(got)
    }
}

/// What came in pieces.
fn whole(mut pieces: &[u8]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let end = pieces.windows(2).position(|two| two == b"\r\n").context("they hung up in the middle")?;
        let (size, rest) = pieces.split_at(end);
        let size = usize::from_str_radix(std::str::from_utf8(size)?, 16)?;
        if size == 0 {
            return Ok(all);
        }
        all.extend_from_slice(rest.get(2..size + 2).context("they hung up in the middle")?);
        pieces = rest.get(size + 4..).context("they hung up in the middle")?;
    }
}
