//! What is asked by posting: who am I, may I, a token for an account. Nothing here is stored, and nothing
//! is forbidden: this server authenticates but does not authorise.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Handler;
use crate::admission::{self, Writer};
use crate::api::{Part, seconds};
use crate::auth::User;
use crate::kinds::{self, Resource};
use crate::managed_fields::{self, Write};
use crate::object::metadata_mut;
use crate::status::{ApiError, FieldError};

/// For whom tokens are that do not say it.
const ISSUER: &str = "https://kubernetes.default.svc";

impl Handler {
    /// Fills in the status of a review.
    pub(super) fn review(&self, resource: &Resource, mut object: Value, user: &User, manager: &str) -> Value {
        let now = Timestamp::now();
        metadata_mut(&mut object);
        admission::own(resource, &mut object, &Writer { manager, part: Part::Whole, now, old: None });
        if let Some(schema) = &resource.schema {
            schema.normalise(&mut object);
        }
        object["status"] = match resource.kind.as_str() {
            "SelfSubjectReview" => {
                metadata_mut(&mut object).insert("creationTimestamp".into(), seconds(now).into());
                json!({ "userInfo": user.to_json() })
            }
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
                "incomplete": false,
            }),
            "TokenReview" => {
                let token = object.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
                match self.tokens.user(token) {
                    Some(user) => {
                        json!({ "authenticated": true, "user": user.to_json(), "audiences": [ISSUER] })
                    }
                    None => json!({ "error": "invalid bearer token", "user": {} }),
                }
            }
            _ => json!({ "allowed": true }),
        };
        object
    }

    /// A `TokenRequest` answered with a token that this server takes.
    pub(super) fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        mut request: Value,
        manager: &str,
        user: User,
    ) -> Result<Value, ApiError> {
        const HOUR: i64 = 3600;
        let now = Timestamp::now();
        if !request["spec"].is_object() {
            request["spec"] = json!({});
        }
        if request["spec"]["expirationSeconds"].is_null() {
            request["spec"]["expirationSeconds"] = HOUR.into();
        }
        let lasting = request["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let wrong = match lasting {
            ..600 => Some("may not specify a duration less than 10 minutes"),
            4_294_967_297.. => Some("may not specify a duration larger than 2^32 seconds"),
            _ => None,
        };
        if let Some(why) = wrong {
            let error = FieldError::invalid("spec.expirationSeconds", lasting, why);
            return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", &[error]));
        }
        let schema = kinds::kind("authentication.k8s.io", "v1", "TokenRequest");
        if let Some(schema) = &schema {
            schema.normalise(&mut request);
        }
        let time = seconds(now);
        let write =
            Write { manager, api_version: "authentication.k8s.io/v1", subresource: "token", now: &time };
        managed_fields::update(None, &mut request, write, &[], schema.as_ref());
        let metadata = metadata_mut(&mut request);
        metadata.insert("name".into(), name.into());
        metadata.insert("namespace".into(), namespace.into());
        metadata.insert("creationTimestamp".into(), time.into());
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            request["spec"]["audiences"] = json!([ISSUER]);
        }
        let token = self.tokens.issue(user);
        let until = now.checked_add(jiff::SignedDuration::from_secs(lasting)).unwrap_or(now);
        request["status"] = json!({ "token": token, "expirationTimestamp": seconds(until) });
        Ok(request)
    }
}
