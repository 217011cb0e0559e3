//! A certificate made on the spot, for loopback.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("making a certificate failed: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("setting up TLS failed: {0}")]
    Config(#[from] rustls::Error),
}

/// A server's TLS and what clients need to trust it.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) ca_pem: String,
}

impl Tls {
    /// For the loopback names and the address that is listened on.
    pub(crate) fn generate(address: std::net::IpAddr) -> Result<Self, TlsError> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let address = address.to_string();
        if !names.contains(&address) {
            names.push(address);
        }
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), ca_pem: made.cert.pem() })
    }
}
