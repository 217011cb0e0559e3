//! The door for WebSocket clients: where it is, and who may come in. The flags of every command that has one.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::{Server, ServerError};
use prometheus_client::registry::Registry;

use crate::usage::Usage;

/// What to do where an address cannot be listened on.
pub(crate) const ELSEWHERE: &str = "give --listen another address, or 127.0.0.1:0 for a free port";

/// See the module.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "WebSocket clients")]
pub(crate) struct Door {
    /// Address for WebSocket clients: 127.0.0.1:8080, or :8080 for every address of this machine; port 0 takes a free one.
    /// Other addresses than loopback ones need a token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Clients must know the token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name by which clients may call this server, beside localhost and addresses; can be given several times
    #[arg(long = "allow-host", value_name = "NAME", value_parser = host)]
    allow_hosts: Vec<String>,
    /// A site whose pages may connect, with its scheme: `https://dash.example.com`; can be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = origin)]
    allow_origins: Vec<String>,
}

impl Door {
    /// Whether it may be opened: to be asked before anybody else is asked for anything.
    ///
    /// # Errors
    ///
    /// Where everyone could come in.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        let is_safe = self.token_file.is_some() || self.listen.ip().is_loopback();
        if is_safe { Ok(()) } else { Err(token_wanted(self.listen)) }
    }

    /// Starts a server for a hub, with this door, which also shows what is registered.
    ///
    /// # Errors
    ///
    /// Where it does not start: it says what to do.
    pub(crate) async fn open(&self, hub: Hub, registry: Registry) -> anyhow::Result<Server> {
        let mut server = Server::builder(hub).listen(self.listen).registry(registry);
        if let Some(file) = &self.token_file {
            server = server.token_file(file);
        }
        for host in &self.allow_hosts {
            server = server.allow_host(host);
        }
        for origin in &self.allow_origins {
            server = server.allow_origin(origin);
        }
        server.start().await.map_err(|error| match error {
            ServerError::Listen { .. } => anyhow::anyhow!("{error}; {ELSEWHERE}"),
            ServerError::TokenWanted { address } => token_wanted(address).into(),
            error => error.into(),
        })
    }

    /// What to connect to, where the address that is listened on is none to connect to: a line, or nothing.
    pub(crate) fn hint(&self, address: SocketAddr) -> String {
        let ip = address.ip();
        if !ip.is_unspecified() {
            return String::new();
        }
        let names = match &self.allow_hosts[..] {
            [] => "; to call it by a name, give --allow-host NAME".to_owned(),
            hosts => format!(", or to {}", hosts.join(", ")),
        };
        format!("{ip} is every address of this machine: connect to one of them{names}\n")
    }
}

fn token_wanted(address: SocketAddr) -> Usage {
    Usage::new(format!(
        "{address} can be reached by others: give --token-file FILE, with what they must know, or --listen a loopback \
         address such as 127.0.0.1:8080"
    ))
}

/// An address to listen on. `:8080` is every one of this machine, as Go's programs have it.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let read = match text.starts_with(':') {
        true => format!("0.0.0.0{text}").parse().map(|any: SocketAddr| everywhere(any.port())),
        false => text.parse(),
    };
    read.map_err(|_| {
        "is no address: give IP and port, as 127.0.0.1:8080, or :8080 for every address of this machine"
            .to_owned()
    })
}

/// Every address of this machine: of both families, where there are both.
fn everywhere(port: u16) -> SocketAddr {
    // Whether there is the newer one is known when something is bound to it.
    match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        Err(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

fn host(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err("is no name of a host: give it alone, as feed.example.com".to_owned()),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let is_site =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && is_site(rest) => Ok(text.to_owned()),
        _ => {
            Err("is no origin: give scheme and host, without a path, as https://dash.example.com".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn parsed(args: &[&str]) -> Result<Door, clap::Error> {
        let command = Door::augment_args(clap::Command::new("door").no_binary_name(true));
        Door::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn names_and_sites_can_be_allowed_several_times() {
        let args = parsed(&[
            "--allow-host",
            "feed.example.com",
            "--allow-host=feed:8080",
            "--allow-origin",
            "https://dash.example.com",
            "--allow-origin=http://localhost:3000",
        ]);
        let args = args.unwrap();
        assert_eq!(args.allow_hosts, ["feed.example.com", "feed:8080"]);
        assert_eq!(args.allow_origins, ["https://dash.example.com", "http://localhost:3000"]);
        for wrong in ["", "https://feed", "a/b", "a b"] {
            assert!(parsed(&["--allow-host", wrong]).is_err(), "{wrong}");
        }
        for wrong in ["", "dash.example.com", "https://", "https://a/b", "://a"] {
            assert!(parsed(&["--allow-origin", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_alone_is_every_address_of_this_machine() {
        let everywhere = address(":8080").unwrap();
        assert!(everywhere.ip().is_unspecified() && everywhere.port() == 8080, "{everywhere}");
        assert_eq!(address(":0").unwrap().port(), 0);
        assert_eq!(address("[::1]:80"), Ok((Ipv6Addr::LOCALHOST, 80).into()));
        for wrong in ["", ":", "8080", ":65536", ":-1", ":+1", "::", "localhost:80", "127.0.0.1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_lets_in_others_must_have_a_token() {
        let check = |args: &[&str]| parsed(args).unwrap().check();
        for safe in [&[][..], &["--listen", "[::1]:80"], &["--listen", ":80", "--token-file", "token"]] {
            assert!(check(safe).is_ok(), "{safe:?}");
        }
        for open in [":80", "0.0.0.0:80", "192.0.2.1:80"] {
            let why = check(&["--listen", open]).unwrap_err().to_string();
            assert!(why.contains("give --token-file FILE"), "{open}: {why}");
        }
    }

    #[test]
    fn who_listens_everywhere_is_told_what_to_connect_to() {
        let said = |address: &str, args: &[&str]| parsed(args).unwrap().hint(address.parse().unwrap());
        assert_eq!(said("127.0.0.1:80", &[]), "");
        assert!(said("0.0.0.0:80", &[]).contains("--allow-host"));
        let named = said("[::]:80", &["--allow-host", "feed.example.com"]);
        assert!(named.starts_with(":: is every address") && named.contains("feed.example.com"), "{named}");
    }
}
