//! Who is asking. Without tokens everybody is the administrator; with tokens, only those who have one. An administrator may
//! ask as somebody else ([`impersonate`]).

pub(crate) mod impersonate;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError, RwLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::status::ApiError;

/// Somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    /// Empty: none.
    pub(crate) uid: String,
    /// What else is known of them.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The group of everybody who has said who they are.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who has not.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of those who may do everything.
const MASTERS: &str = "system:masters";

impl User {
    pub(crate) fn anonymous() -> Self {
        Self { name: "system:anonymous".into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    fn admin() -> Self {
        Self::named("kubernetes-admin", &[MASTERS])
    }

    /// A user with a token.
    pub(crate) fn named(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, ..Self::default() }
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
        if !self.extra.is_empty() {
            out["extra"] = json!(self.extra);
        }
        out
    }
}

/// More issued tokens than this are not remembered.
const ISSUED: usize = 10_000;

/// The tokens that are taken.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    required: bool,
    users: RwLock<HashMap<String, User>>,
    /// Those that were asked for, oldest first.
    issued: Mutex<VecDeque<String>>,
}

impl Tokens {
    pub(crate) fn new(users: HashMap<String, User>) -> Self {
        Self { required: !users.is_empty(), users: RwLock::new(users), issued: Mutex::default() }
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

    pub(crate) fn user(&self, token: &str) -> Option<User> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Makes a token for a user that nobody can guess. Of many the oldest go.
    pub(crate) fn issue(&self, user: User) -> String {
        let token = format!("issued-{:016x}{:016x}", random(), random());
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        if issued.len() >= ISSUED
            && let Some(oldest) = issued.pop_front()
        {
            users.remove(&oldest);
        }
        issued.push_back(token.clone());
        users.insert(token.clone(), user);
        token
    }
}

/// The standard library's own source of keys that are different in every process and every time.
fn random() -> u64 {
    std::hash::RandomState::new().hash_one(std::time::Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issued_tokens_are_taken_until_too_many_are_newer() {
        let tokens = Tokens::new(HashMap::from([("own".to_owned(), User::named("admin", &[]))]));
        let first = tokens.issue(User::named("first", &[]));
        assert_eq!(tokens.user(&first).map(|user| user.name), Some("first".to_owned()));
        for _ in 0..ISSUED {
            tokens.issue(User::named("other", &[]));
        }
        assert_eq!(tokens.user(&first), None);
        assert!(tokens.user("own").is_some(), "those of the builder stay");
    }
}
