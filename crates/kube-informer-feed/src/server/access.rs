//! Who may come in: by token, by the name that the server is called, by the page that asks.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};

use crate::message::SUBPROTOCOL;
use crate::metrics::Refusal;

/// Before a token in a subprotocol.
const BEARER: &str = "kube-informer.bearer.";
/// The shortest token that is taken.
pub(crate) const SHORTEST: usize = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Access {
    token: Option<Token>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// What clients must know. It is never shown.
pub(crate) struct Token {
    plain: String,
    /// As it stands in a subprotocol.
    subprotocol: String,
    keys: [RandomState; 2],
}

/// What a client wants to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// The subprotocol that it named.
    Ours,
    /// It named none.
    Anything,
}

/// Why a request is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) why: Refusal,
    pub(crate) message: String,
}

/// The subprotocol that carries a token, for clients that cannot set headers, as those in browsers:
/// `new WebSocket(url, ["kube-informer.v1.json", bearer])`. It is never answered with.
///
/// ```
/// use kube_informer_feed::server::bearer_subprotocol;
///
/// assert_eq!(bearer_subprotocol("a secret/of 17 b."), "kube-informer.bearer.YSBzZWNyZXQvb2YgMTcgYi4");
/// ```
#[must_use]
pub fn bearer_subprotocol(token: &str) -> String {
    format!("{BEARER}{}", base64url(token.as_bytes()))
}

impl Access {
    pub(crate) fn new(token: Option<Token>, hosts: Vec<String>, origins: Vec<String>) -> Self {
        Self { token, hosts, origins }
    }

    /// Whether the server may be called so: by an address, as `localhost`, or by a name that was allowed. A name that was
    /// made to point here is none of these.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = text(headers, &HOST).unwrap_or_default();
        if self.is_host(&host.to_ascii_lowercase()) {
            return Ok(());
        }
        let host = crate::message::short(&host);
        let message =
            format!("the Host {host:?} is not this server; call it by its address, or allow that name");
        Err(Refused { status: 403, why: Refusal::Host, message })
    }

    fn is_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        name == "localhost"
            || bare.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|allowed| allowed == name || allowed == host)
    }

    /// Whether the page that asks may: it came from this server, or was allowed. Who is no browser sends no origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = String::from_utf8_lossy(origin.as_bytes()).to_ascii_lowercase();
        let host = text(headers, &HOST).unwrap_or_default().to_ascii_lowercase();
        let is_own = origin.split_once("://").is_some_and(|(_, from)| !from.is_empty() && from == host);
        if is_own || self.origins.contains(&origin) {
            return Ok(());
        }
        let origin = crate::message::short(&origin);
        let message = format!("pages of {origin:?} may not connect; allow that origin, if they should");
        Err(Refused { status: 403, why: Refusal::Origin, message })
    }

    /// Whether the client knows the token, where there is one.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else { return Ok(()) };
        let header = text(headers, &AUTHORIZATION).unwrap_or_default();
        let is_bearer = |scheme: &str| scheme.eq_ignore_ascii_case("bearer");
        let given =
            header.split_once(' ').filter(|(scheme, _)| is_bearer(scheme)).map(|(_, given)| given.trim());
        let knows = given.is_some_and(|given| token.is(given))
            || protocols(headers)
                .any(|protocol| protocol.starts_with(BEARER) && token.is_subprotocol(&protocol));
        if knows {
            return Ok(());
        }
        let message =
            "a token is wanted: send it as \"Authorization: Bearer …\", or as a subprotocol".to_owned();
        Err(Refused { status: 401, why: Refusal::Token, message })
    }
}

/// What a client wants to speak.
pub(crate) fn speaks(headers: &HeaderMap) -> Result<Speaks, Refused> {
    let mut others = Vec::new();
    for protocol in protocols(headers).filter(|protocol| !protocol.starts_with(BEARER)) {
        if protocol == SUBPROTOCOL {
            return Ok(Speaks::Ours);
        }
        others.push(protocol);
    }
    if others.is_empty() {
        return Ok(Speaks::Anything);
    }
    let named = crate::message::short(&others.join(", "));
    let message = format!("none of the subprotocols {named:?} is spoken here: name {SUBPROTOCOL:?}, or none");
    Err(Refused { status: 400, why: Refusal::Subprotocol, message })
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let words =
        values.flat_map(|value| value.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>());
    words.filter(|word| !word.is_empty())
}

fn text(headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.contains(':') => name,
        // An address of the newer kind stands in brackets where a port follows.
        Some((name, _)) if name.starts_with('[') && name.ends_with(']') => name,
        _ => host,
    }
}

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self {
            plain: token.to_owned(),
            subprotocol: bearer_subprotocol(token),
            keys: [RandomState::new(), RandomState::new()],
        }
    }

    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.plain.is_empty() {
            return Some("is empty");
        }
        if self.plain.len() < SHORTEST {
            return Some("is too short");
        }
        let is_visible = self.plain.bytes().all(|byte| byte.is_ascii_graphic());
        (!is_visible).then_some("has characters that a header cannot carry")
    }

    fn is(&self, given: &str) -> bool {
        self.same(&self.plain, given)
    }

    fn is_subprotocol(&self, given: &str) -> bool {
        self.same(&self.subprotocol, given)
    }

    /// How long this takes says nothing about how much of a guess is right: hashes under keys that nobody knows are
    /// compared, and only what has the same ones is looked at.
    fn same(&self, token: &str, given: &str) -> bool {
        let hashes = |text: &str| [self.keys[0].hash_one(text), self.keys[1].hash_one(text)];
        hashes(token) == hashes(given) && token == given
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// RFC 4648 §5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..=chunk.len() {
            let at = (bits >> (18 - 6 * letter)) & 63;
            text.extend(LETTERS.get(at as usize).map(|letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests;
