//! A body that is made while it is read.
//!
//! The maker runs inside the body: it only runs while the connection reads,
//! and ends with it. A body that fails lets go out first what was made before.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

use super::transcript::{End, Recorder};

/// The body of an answer on its way to the client, through the faults.
pub struct Made {
    maker: Pin<Box<dyn Future<Output = Result<(), End>> + Send>>,
    pieces: mpsc::Receiver<Bytes>,
    recorder: Arc<Recorder>,
    state: State,
}

enum State {
    Making,
    /// Pieces may be left.
    Done,
    /// The connection is given one chance to write what it has.
    Failing,
    Failed,
}

/// The connection to the client is to be closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangUp;

impl Made {
    /// A body made by a future that sends pieces to what the call is given.
    pub(crate) fn new<F>(recorder: Arc<Recorder>, maker: impl FnOnce(mpsc::Sender<Bytes>) -> F) -> Self
    where
        F: Future<Output = Result<(), End>> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(1);
        Self { maker: Box::pin(maker(sender)), pieces, recorder, state: State::Making }
    }
}

impl http_body::Body for Made {
    type Data = Bytes;
    type Error = HangUp;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HangUp>>> {
        let this = self.get_mut();
        loop {
            match this.state {
                State::Failed => return Poll::Ready(Some(Err(HangUp))),
                State::Failing => {
                    // A connection drops what it has not written when a body
                    // fails, and writes when it has to wait.
                    this.state = State::Failed;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                State::Making | State::Done => {}
            }
            if let Poll::Ready(Some(piece)) = this.pieces.poll_recv(cx) {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let State::Done = this.state {
                return Poll::Ready(None);
            }
            match this.maker.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => {
                    this.recorder.end(End::Complete);
                    this.state = State::Done;
                }
                Poll::Ready(Err(end)) => {
                    this.recorder.end(end);
                    this.state = State::Failing;
                    if let Poll::Ready(Some(piece)) = this.pieces.poll_recv(cx) {
                        return Poll::Ready(Some(Ok(Frame::data(piece))));
                    }
                }
                Poll::Pending => {
                    return match this.pieces.poll_recv(cx) {
                        Poll::Ready(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }
}

impl std::fmt::Display for HangUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a fault closes the connection")
    }
}

impl std::error::Error for HangUp {}
