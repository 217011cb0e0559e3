//! What is asked for, by whom, and who answers.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{WebSocketUpgrade, rejection::WebSocketUpgradeRejection};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::Phase;
use super::access::{self, Access, Refused, Speaks};
use super::addresses::{Addresses, Seat};
use super::builder::Settings;
use super::connection::Connection;
use super::door::Peer;
use crate::hub::Hub;
use crate::message::{SUBPROTOCOL, StatusState};
use crate::metrics::Refusal;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) hub: Hub,
    pub(crate) access: Access,
    pub(crate) settings: Settings,
    pub(crate) phase: watch::Receiver<Phase>,
    /// How many WebSockets there are.
    pub(crate) open: watch::Sender<usize>,
    /// Whose they are.
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) registry: Registry,
}

/// A place among the WebSockets; free again when it is dropped.
pub(crate) struct Place {
    app: Arc<App>,
    /// Given back with it.
    _seat: Seat,
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/stream", any(stream))
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .fallback(async || (StatusCode::NOT_FOUND, "there are /v1/stream, /healthz, /readyz and /metrics\n"))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// What holds for every request.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_open = matches!(request.uri().path(), "/healthz" | "/readyz");
    let checked = app.access.check_host(headers).and_then(|()| app.access.check_origin(headers));
    let checked = checked.and_then(|()| if is_open { Ok(()) } else { app.access.check_token(headers) });
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refused) => app.refuse(refused),
    };
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // One request per connection: its time is bounded.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn stream(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let message = format!("this is a WebSocket: {}\n", rejection.body_text());
            return (rejection.status(), message).into_response();
        }
    };
    let speaks = match access::speaks(&headers) {
        Ok(speaks) => speaks,
        Err(refused) => return app.refuse(refused),
    };
    let place = match App::place(&app, peer.address.ip()) {
        Ok(place) => place,
        Err(refused) => {
            let mut response = app.refuse(refused);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
            return response;
        }
    };
    let upgrade = match speaks {
        Speaks::Ours => upgrade.protocols([SUBPROTOCOL]),
        Speaks::Anything => upgrade,
    };
    let frame = app.settings.frame;
    upgrade
        .max_message_size(frame)
        .max_frame_size(frame)
        // Both are held for as long as the connection is.
        .read_buffer_size(2 << 10)
        .write_buffer_size(4 << 10)
        .on_upgrade(move |socket| async move {
            peer.comes_in();
            Connection::new(place, socket, peer).run(speaks == Speaks::Anything).await;
        })
}

async fn ready(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    // What a cluster has, and what is wrong with it, is not for everyone.
    let is_told = app.access.check_token(&headers).is_ok();
    let mut text = String::new();
    let mut is_ready = true;
    for topic in app.hub.topics().into_iter().filter(|topic| topic.wanted) {
        let is_live = topic.ready && topic.state == StatusState::Live;
        is_ready &= is_live;
        let why = topic.why.map(|why| format!(": {why}")).unwrap_or_default();
        text.push_str(&format!("{} {}{why}\n", topic.gvr, topic.state.as_str()));
    }
    let (status, word) =
        if is_ready { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n") };
    (status, if is_told { text } else { word.to_owned() }).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut page = String::new();
    match encode(&mut page, &app.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, kind)], page).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("metrics cannot be written: {error}\n"))
            .into_response(),
    }
}

impl App {
    fn refuse(&self, refused: Refused) -> Response {
        self.hub.metrics().refused(refused.why);
        tracing::debug!(status = refused.status, message = refused.message, "a request was refused");
        let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
        (status, format!("{}\n", refused.message)).into_response()
    }

    /// A place among the WebSockets, where there is one.
    fn place(app: &Arc<Self>, address: IpAddr) -> Result<Place, Refused> {
        let refused = |status, why, message| Err(Refused { status, why, message });
        if *app.phase.borrow() != Phase::Running {
            return refused(503, Refusal::Full, "the server ends; try again later".to_owned());
        }
        let Some(seat) = app.addresses.seat(address) else {
            let most = app.addresses.most(address);
            let message =
                format!("{most} connections of one address are open, more are not allowed; try again later");
            return refused(429, Refusal::Address, message);
        };
        let most = app.settings.connections;
        let is_in = app.open.send_if_modified(|open| {
            let is_room = *open < most;
            *open += usize::from(is_room);
            is_room
        });
        if !is_in {
            let message = format!("{most} connections are open, more are not allowed; try again later");
            return refused(503, Refusal::Full, message);
        }
        Ok(Place { app: Arc::clone(app), _seat: seat })
    }
}

impl std::ops::Deref for Place {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.app.open.send_modify(|open| *open = open.saturating_sub(1));
    }
}
