//! Everything that is not about a resource: discovery, OpenAPI, version, health.

use http::Method;
use serde_json::Value;

use super::{Asked, Handler, Reply};
use crate::negotiate::{self, Answer, Offers};
use crate::request::Route;
use crate::status::ApiError;
use crate::{discovery, kinds, openapi};

const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answered without a token.
pub(super) fn is_public(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    matches!(first, "healthz" | "livez" | "readyz" | "version")
}

fn is_document(path: &str) -> bool {
    matches!(path, "/" | "/index.html") || path.starts_with("/openapi/v3")
}

impl Handler {
    /// What is not found in a group that the server does not have is not looked for by its API.
    pub(super) fn nowhere(&self, group: &str, error: ApiError) -> ApiError {
        let built_in = kinds::builtin().iter().any(|resource| resource.group == group);
        if built_in { error } else { ApiError::page_not_found() }
    }

    pub(super) fn document(&self, asked: &Asked<'_>, route: &Route) -> Result<Reply, ApiError> {
        let allowed = match (route, asked.method) {
            (_, &Method::GET) => true,
            // These are answered whatever the method: nobody looks at it.
            (Route::Groups { legacy: false } | Route::Group(_), _) => true,
            (Route::Other(path), method) => match path.as_str() {
                "/version" | "/version/" => false,
                path => *method == Method::HEAD || !is_document(path),
            },
            _ => false,
        };
        if !allowed {
            return Err(ApiError::method_not_allowed());
        }
        let resources = self.api.registry.all();
        let found = |document: Option<Value>| match document {
            Some(document) => Ok(Reply::value(200, &document)),
            None => Err(ApiError::unknown_path()),
        };
        match route {
            Route::Groups { legacy } => {
                if *legacy {
                    negotiate::takes_json(asked.headers)?;
                }
                let answer = negotiate::answer(asked.headers, Offers::Discovery)?;
                let document = match (answer, legacy) {
                    (Answer::Discovery, legacy) => discovery::aggregated(&resources, *legacy),
                    (_, true) => discovery::api_versions(&self.settings.address),
                    (_, false) => discovery::group_list(&resources),
                };
                let mut reply = Reply::value(200, &document);
                if answer == Answer::Discovery {
                    // Marked as such, or clients fall back to the old form.
                    reply.media = AGGREGATED_DISCOVERY;
                }
                Ok(reply)
            }
            Route::Group(group) => {
                negotiate::answer(asked.headers, Offers::Nothing)?;
                found(discovery::group(&resources, group)).map_err(|_| ApiError::page_not_found())
            }
            Route::Version { group, version } => {
                negotiate::takes_json(asked.headers)?;
                negotiate::answer(asked.headers, Offers::Nothing)?;
                found(discovery::resource_list(&resources, group, version))
                    .map_err(|error| self.nowhere(group, error))
            }
            Route::Other(path) => match path.as_str() {
                "/version" | "/version/" => {
                    negotiate::takes_json(asked.headers).map(|()| Reply::value(200, &discovery::version()))
                }
                "/" | "/index.html" => Ok(Reply::value(200, &discovery::root_paths(&resources))),
                "/openapi/v2" if negotiate::takes_openapi_protobuf(asked.headers) => {
                    let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
                    Ok(Reply { media, ..Reply::json(200, openapi::v2_protobuf()) })
                }
                "/openapi/v2" => Ok(Reply::value(200, &openapi::v2())),
                "/openapi/v3" => Ok(Reply::value(200, &openapi::index(&resources))),
                path if path.starts_with("/openapi/v3/") => {
                    let mut parts = path.split('/').skip(3);
                    let (group, version) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
                        (Some("api"), Some(version), None, _) => ("", version),
                        (Some("apis"), Some(group), Some(version), None) => (group, version),
                        _ => return Ok(Reply::empty(404)),
                    };
                    let document = openapi::document(&resources, group, version);
                    Ok(document.map_or_else(|| Reply::empty(404), |document| Reply::value(200, &document)))
                }
                "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping" => {
                    Ok(Reply::text(200, "ok"))
                }
                _ => Err(ApiError::page_not_found()),
            },
            Route::Resource(_) => Err(ApiError::unknown_path()),
        }
    }
}
