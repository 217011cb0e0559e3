//! Who is asking. Without tokens everybody is the administrator; with tokens, only those who have one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::status::ApiError;

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    /// Empty: none.
    pub(crate) uid: String,
}

/// The group of everybody who has said who they are.
const AUTHENTICATED: &str = "system:authenticated";

impl User {
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            uid: String::new(),
        }
    }

    fn admin() -> Self {
        Self::named("kubernetes-admin", &["system:masters"])
    }

    /// A user with a token.
    pub(crate) fn named(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, uid: String::new() }
    }

    pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let of_namespace = format!("system:serviceaccounts:{namespace}");
        let name = format!("system:serviceaccount:{namespace}:{name}");
        Self { uid: uid.into(), ..Self::named(&name, &["system:serviceaccounts", &of_namespace]) }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut out = json!({ "username": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            out["uid"] = self.uid.clone().into();
        }
        out
    }
}

/// The tokens that are taken.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    required: bool,
    users: RwLock<HashMap<String, User>>,
    issued: AtomicU64,
}

impl Tokens {
    pub(crate) fn new(users: HashMap<String, User>) -> Self {
        Self { required: !users.is_empty(), users: RwLock::new(users), issued: AtomicU64::new(0) }
    }

    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, ApiError> {
        let header = headers.get(AUTHORIZATION).and_then(|h| h.to_str().ok());
        let token =
            header.and_then(|h| h.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        match token {
            Some((_, token)) => match self.user(token.trim()) {
                Some(user) => Ok(user),
                None if self.required => Err(ApiError::unauthorized()),
                None => Ok(User::admin()),
            },
            None if self.required => Err(ApiError::unauthorized()),
            None => Ok(User::admin()),
        }
    }

    /// A token is shown, and it is not one of ours.
    pub(crate) fn is_wrong(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(AUTHORIZATION) && self.authenticate(headers).is_err()
    }

    pub(crate) fn user(&self, token: &str) -> Option<User> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Makes a token for a user.
    pub(crate) fn issue(&self, user: User) -> String {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let token = format!("issued-{number}-{}", user.name.replace(':', "."));
        self.users.write().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), user);
        token
    }
}
