//! Bodies of answers: whole, or streamed piece by piece without ever being whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use http_body::{Frame, SizeHint};

use crate::faults::{HangUp, Made};

type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of an answer of the embedded server.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Stream(Pieces),
    /// What faults leave of another body; may end with an error, as a cut connection does.
    Faulty(Box<Made>),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into())))
    }

    pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(pieces)))
    }

    /// A body that has gone through the faults.
    pub(crate) fn faulty(made: Made) -> Self {
        Self(Kind::Faulty(Box::new(made)))
    }

    /// The same, compressed on the way if there is more of it than `size`; and whether it is. Takes that
    /// much of a stream to find out.
    pub(crate) async fn gzipped_above(self, size: usize) -> (Self, bool) {
        match self.0 {
            Kind::Whole(Some(bytes)) if bytes.len() > size => {
                (Self::whole(gzip(std::iter::once(bytes))), true)
            }
            Kind::Stream(mut pieces) => {
                let (mut taken, mut length) = (Vec::new(), 0);
                while let Some(piece) = pieces.next().await {
                    length += piece.len();
                    taken.push(piece);
                    if length > size {
                        let all = futures_util::stream::iter(taken).chain(pieces);
                        return (Self::stream(gzip_stream(Box::pin(all))), true);
                    }
                }
                (Self::whole(taken.concat()), false)
            }
            other => (Self(other), false),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "Body(whole)",
            Kind::Stream(_) => "Body(stream)",
            Kind::Faulty(_) => "Body(faulty)",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = HangUp;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HangUp>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Kind::Stream(pieces) => {
                pieces.as_mut().poll_next(cx).map(|piece| piece.map(|b| Ok(Frame::data(b))))
            }
            Kind::Faulty(made) => http_body::Body::poll_frame(Pin::new(made.as_mut()), cx),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            _ => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }
}

/// Speed matters more than size here, as on the real server.
const LEVEL: flate2::Compression = flate2::Compression::new(1);

fn gzip(pieces: impl Iterator<Item = Bytes>) -> Bytes {
    let mut gzip = flate2::bufread::GzEncoder::new(Chain::new(pieces), LEVEL);
    let mut out = Vec::new();
    match std::io::Read::read_to_end(&mut gzip, &mut out) {
        Ok(_) => out.into(),
        // Reading from memory cannot fail.
        Err(_) => Bytes::new(),
    }
}

/// Pieces read one after the other.
struct Chain<I> {
    pieces: I,
    current: Bytes,
}

impl<I: Iterator<Item = Bytes>> Chain<I> {
    fn new(pieces: I) -> Self {
        Self { pieces, current: Bytes::new() }
    }
}

impl<I: Iterator<Item = Bytes>> std::io::Read for Chain<I> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let available = std::io::BufRead::fill_buf(self)?;
        let length = available.len().min(out.len());
        out[..length].copy_from_slice(&available[..length]);
        std::io::BufRead::consume(self, length);
        Ok(length)
    }
}

impl<I: Iterator<Item = Bytes>> std::io::BufRead for Chain<I> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        while self.current.is_empty() {
            match self.pieces.next() {
                Some(next) => self.current = next,
                None => break,
            }
        }
        Ok(&self.current)
    }

    fn consume(&mut self, amount: usize) {
        bytes::Buf::advance(&mut self.current, amount);
    }
}

/// Compresses a stream, giving out what has come together every few pieces.
fn gzip_stream(pieces: Pieces) -> impl Stream<Item = Bytes> + Send {
    const ENOUGH: usize = 16 * 1024;
    struct State {
        pieces: Pieces,
        gzip: Option<flate2::write::GzEncoder<Vec<u8>>>,
    }
    let gzip = Some(flate2::write::GzEncoder::new(Vec::new(), LEVEL));
    futures_util::stream::unfold(State { pieces, gzip }, |mut state| async move {
        use std::io::Write;
        loop {
            let gzip = state.gzip.as_mut()?;
            match state.pieces.next().await {
                Some(piece) => {
                    // Writing to a Vec cannot fail.
                    let _: Result<(), _> = gzip.write_all(&piece);
                    if gzip.get_ref().len() >= ENOUGH {
                        let out = std::mem::take(gzip.get_mut());
                        return Some((Bytes::from(out), state));
                    }
                }
                None => {
                    let rest = state.gzip.take()?.finish().unwrap_or_default();
                    return Some((Bytes::from(rest), state));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    async fn unzipped(body: Body) -> Vec<u8> {
        let (body, compressed) = body.gzipped_above(100).await;
        assert!(compressed);
        let bytes = body.collect().await.unwrap().to_bytes();
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[tokio::test]
    async fn compressed_bodies_unpack_to_what_went_in() {
        let pieces: Vec<Bytes> = (0..2000).map(|i| Bytes::from(format!("piece {i} "))).collect();
        let plain: Vec<u8> = pieces.concat();
        assert_eq!(unzipped(Body::whole(plain.clone())).await, plain);
        assert_eq!(unzipped(Body::stream(futures_util::stream::iter(pieces))).await, plain);
    }

    #[tokio::test]
    async fn short_bodies_are_left_as_they_are() {
        let pieces = || futures_util::stream::iter((0..10).map(|i| Bytes::from(i.to_string())));
        for body in [Body::whole("0123456789"), Body::stream(pieces()), Body::whole("")] {
            let (body, compressed) = body.gzipped_above(10).await;
            assert!(!compressed);
            let bytes = body.collect().await.unwrap().to_bytes();
            assert!(bytes.is_empty() || bytes == "0123456789");
        }
    }
}
