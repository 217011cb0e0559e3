//! What pods answer: at `/` their name; at `/bytes/N` so many bytes, at `/stream/N` so many lines one by one; whatever comes
//! with a body, at any other path, comes back as it came, piece by piece.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method};

/// Which pod answered, and what it was asked.
pub(crate) const POD: &str = "x-pod";
pub(crate) const ASKED: &str = "x-asked";

/// A pod that answers.
pub(crate) fn app(pod: String) -> Router {
    Router::new().fallback(async move |request: Request| answer(&pod, request))
}

fn answer(pod: &str, request: Request) -> Response {
    let asked = format!("{} {}", request.method(), request.uri());
    let path = request.uri().path().to_owned();
    let body = match path.split('/').collect::<Vec<_>>()[..] {
        ["", ""] if request.method() == Method::GET => Body::from(pod.to_owned()),
        ["", "bytes", count] => Body::from(bytes(count)),
        ["", "stream", count] => lines(count),
        _ => request.into_body(),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [(POD, pod), (ASKED, &asked)] {
        headers.insert(name, HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static("")));
    }
    response
}

/// So many bytes, of which none is as the one before it.
pub(crate) fn bytes(count: &str) -> Vec<u8> {
    (0..count.parse::<usize>().unwrap_or(0)).map(|number| (number % 251) as u8).collect()
}

/// The lines that `/stream/N` answers with.
pub(crate) fn line(number: usize) -> String {
    format!("line {number}\n")
}

fn lines(count: &str) -> Body {
    let lines = stream::iter(0..count.parse().unwrap_or(0)).then(async |number| {
        tokio::task::yield_now().await;
        Ok::<_, std::convert::Infallible>(Bytes::from(line(number)))
    });
    Body::from_stream(lines)
}
