//! A watch as a test reads it: whole events, in either format, with a deadline.

#![allow(dead_code, reason = "each test binary that has this module uses its part of it")]

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::BytesMut;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method};
use kube_informer_testbed::http::{Endpoint, Streaming};
use kube_informer_testbed::proxy::{Format, WatchEvent};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

pub(crate) struct Watch {
    stream: Streaming,
    format: Format,
    buffer: BytesMut,
}

/// GET with an Accept header, as a stream.
pub(crate) async fn get(endpoint: &Endpoint, path: &str, accept: &str) -> Result<Streaming> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept)?)]);
    endpoint.stream(Method::GET, path, headers, "").await
}

pub(crate) async fn watch(endpoint: &Endpoint, path: &str, format: Format) -> Watch {
    let accept = match format {
        Format::Json => "application/json",
        Format::Protobuf => PROTOBUF_WATCH,
    };
    let stream = get(endpoint, path, accept).await.unwrap();
    assert_eq!(stream.status, 200, "{path}");
    Watch { stream, format, buffer: BytesMut::new() }
}

impl Watch {
    /// The next event; `None` at a clean end, an error where the stream breaks
    /// off, inside an event or not.
    pub(crate) async fn next(&mut self) -> Result<Option<WatchEvent>> {
        match tokio::time::timeout(DEADLINE, self.read()).await {
            Ok(event) => event,
            Err(_) => bail!("no event within {DEADLINE:?}"),
        }
    }

    /// The next event, which must come.
    pub(crate) async fn event(&mut self) -> WatchEvent {
        self.next().await.unwrap().expect("the watch ended")
    }

    /// The names of the next events.
    pub(crate) async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.event().await.name());
        }
        names
    }

    /// What came of an event that is not complete.
    pub(crate) fn unfinished(&self) -> &[u8] {
        &self.buffer
    }

    async fn read(&mut self) -> Result<Option<WatchEvent>> {
        loop {
            let end = match self.format {
                Format::Json => self.buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
                Format::Protobuf => {
                    self.buffer.first_chunk::<4>().map(|prefix| 4 + u32::from_be_bytes(*prefix) as usize)
                }
            };
            if let Some(end) = end.filter(|end| *end <= self.buffer.len()) {
                let frame = self.buffer.split_to(end).freeze();
                return Ok(Some(WatchEvent::parse(self.format, frame).expect("an event")));
            }
            match self.stream.chunk().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None if self.buffer.is_empty() => return Ok(None),
                None => bail!("ended inside an event"),
            }
        }
    }
}

/// Awaits something that must happen.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("it must happen soon")
}
