//! What is asked by posting: who am I, may I, a token for an account. Nothing here is stored, and nothing
//! is forbidden: this server authenticates but does not authorise.

use serde_json::{Value, json};

use super::Handler;
use crate::auth::User;
use crate::kinds::Resource;

impl Handler {
    /// Fills in the status of a review.
    pub(super) fn review(&self, resource: &Resource, mut object: Value, user: &User) -> Value {
        object["status"] = match resource.kind.as_str() {
            "SelfSubjectReview" => json!({ "userInfo": user.to_json() }),
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
                "incomplete": false,
            }),
            "TokenReview" => {
                let token = object.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
                match self.tokens.user(token) {
                    Some(user) => json!({ "authenticated": true, "user": user.to_json() }),
                    None => json!({ "authenticated": false, "user": {} }),
                }
            }
            _ => json!({ "allowed": true, "reason": "this server does not authorise" }),
        };
        object
    }

    /// A `TokenRequest` answered with a token that this server takes.
    pub(super) fn service_account_token(&self, namespace: &str, name: &str, mut request: Value) -> Value {
        let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
        let token = self.tokens.issue(User::service_account(namespace, name));
        let until = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds.clamp(600, 1 << 32));
        let until = jiff::Timestamp::from_second(until.as_second()).unwrap_or_default();
        request["kind"] = "TokenRequest".into();
        request["apiVersion"] = "authentication.k8s.io/v1".into();
        request["status"] = json!({ "token": token, "expirationTimestamp": until.to_string() });
        request
    }
}
