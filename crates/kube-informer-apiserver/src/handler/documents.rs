//! Everything that is not about a resource: discovery, OpenAPI, version, health.

use http::Method;
use serde_json::Value;

use super::{Asked, Handler, Reply};
use crate::negotiate::{self, Answer};
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
    matches!(path, "" | "/index.html" | "/version") || path.starts_with("/openapi/v3")
}

impl Handler {
    /// What is not found in a group that the server does not have is not looked for by its API.
    pub(super) fn nowhere(&self, group: &str, error: ApiError) -> ApiError {
        let built_in = kinds::builtin().iter().any(|resource| resource.group == group);
        if built_in { error } else { ApiError::page_not_found() }
    }

    pub(super) fn document(&self, asked: &Asked<'_>, route: &Route) -> Result<Reply, ApiError> {
        // These are answered whatever the method: nobody looks at it.
        let any_method = match route {
            Route::Groups { legacy } => !legacy,
            Route::Group(_) => true,
            Route::Other(path) => is_public(path) && path != "/version" || !is_document(path),
            _ => false,
        };
        if !any_method && !matches!(*asked.method, Method::GET | Method::HEAD) {
            return Err(ApiError::method_not_allowed());
        }
        let resources = self.api.registry.all();
        let found = |document: Option<Value>| match document {
            Some(document) => Ok(Reply::value(200, &document)),
            None => Err(ApiError::unknown_path()),
        };
        match route {
            Route::Groups { legacy } => {
                let document = match (negotiate::answer(asked.headers)?, legacy) {
                    (Answer::Discovery, legacy) => discovery::aggregated(&resources, *legacy),
                    (_, true) => discovery::api_versions(&self.settings.address),
                    (_, false) => discovery::group_list(&resources),
                };
                let mut reply = Reply::value(200, &document);
                if negotiate::answer(asked.headers)? == Answer::Discovery {
                    // Marked as such, or clients fall back to the old form.
                    reply.media = AGGREGATED_DISCOVERY;
                }
                Ok(reply)
            }
            Route::Group(group) => {
                found(discovery::group(&resources, group)).map_err(|_| ApiError::page_not_found())
            }
            Route::Version { group, version } => {
                negotiate::answer(asked.headers)?;
                found(discovery::resource_list(&resources, group, version))
                    .map_err(|error| self.nowhere(group, error))
            }
            Route::Other(path) => match path.as_str() {
                "/version" => Ok(Reply::value(200, &discovery::version())),
                "" | "/index.html" => Ok(Reply::value(200, &discovery::root_paths(&resources))),
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
                        _ => return Err(ApiError::unknown_path()),
                    };
                    found(openapi::document(&resources, group, version))
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
