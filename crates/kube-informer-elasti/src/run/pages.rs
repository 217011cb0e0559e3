//! What is shown to those who look: metrics, and how it goes.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use kube_informer::runner::{Probe, Probes};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// `/metrics`.
pub(super) fn metrics(registry: &Arc<Registry>) -> Router {
    let registry = Arc::clone(registry);
    Router::new().route("/metrics", get(async move || page(&registry)))
}

/// `/healthz` and `/readyz`.
pub(super) fn probes(probes: Probes) -> Router {
    let ready = probes.clone();
    Router::new()
        .route("/healthz", get(async move || answer(&probes.liveness())))
        .route("/readyz", get(async move || answer(&ready.readiness())))
}

fn page(registry: &Registry) -> Response {
    let mut page = String::new();
    match encode(&mut page, registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, kind)], page).into_response()
        }
        Err(error) => {
            let why = format!("metrics cannot be written: {error}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
        }
    }
}

fn answer(probe: &Probe) -> Response {
    let status = if probe.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("{probe}\n")).into_response()
}
