//! Where to listen.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// An address to listen on, as Go's programs take it: `:8080` is every address of the machine, in both families where there
/// are both; `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`; port 0 takes a free one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Empty is every address.
    host: String,
    port: u16,
}

/// Nothing can listen there.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; give {flag} another address")]
pub struct ListenError {
    /// Where.
    pub address: Address,
    /// The flag that says where.
    pub flag: &'static str,
    /// Why not.
    #[source]
    pub source: io::Error,
}

impl Address {
    /// Every address of the machine.
    #[must_use]
    pub fn everywhere(port: u16) -> Self {
        Self { host: String::new(), port }
    }

    /// Listens there.
    ///
    /// # Errors
    ///
    /// Where that cannot be; it names the flag that says where to listen.
    pub async fn listen(&self, flag: &'static str) -> Result<TcpListener, ListenError> {
        let listening = match self.host.as_str() {
            "" => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, self.port)).await {
                Ok(listener) => Ok(listener),
                // Taken is taken. Anything else may be a machine without IPv6.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.port)).await,
            },
            host => TcpListener::bind((host, self.port)).await,
        };
        listening.map_err(|source| ListenError { address: self.clone(), flag, source })
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "is no address: give host and port, as 127.0.0.1:8080 or :8080".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bare {
            Some(bare) if bare.parse::<Ipv6Addr>().is_ok() => bare,
            Some(_) => return Err(wrong()),
            None => host,
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        match bare.is_some() || host.bytes().all(fits) {
            true => Ok(Self { host: host.to_owned(), port }),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
