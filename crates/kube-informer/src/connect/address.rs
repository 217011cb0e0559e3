//! The address of a server, as people write it into a kubeconfig: `127.0.0.1:8080` is one, too.

use http::uri::{PathAndQuery, Scheme, Uri};
use kube_client::Config;

use super::ConnectError;

/// Completes an address without a scheme, as client-go does: `https` where there is something about TLS, and else `http`.
pub(super) fn complete(config: &mut Config) -> Result<(), ConnectError> {
    if config.cluster_url.scheme().is_some() {
        return Ok(());
    }
    let user = &config.auth_info;
    let is_tls = config.root_cert.is_some()
        || config.root_cert_file.is_some()
        || config.accept_invalid_certs
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    let mut parts = config.cluster_url.clone().into_parts();
    parts.scheme = Some(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    match Uri::from_parts(parts) {
        Ok(complete) => {
            config.cluster_url = complete;
            Ok(())
        }
        Err(_) => Err(ConnectError::Address { address: config.cluster_url.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(address: &'static str, insecure: bool) -> Result<String, String> {
        let mut config = Config::new(Uri::from_static(address));
        config.accept_invalid_certs = insecure;
        complete(&mut config).map(|()| config.cluster_url.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_has_no_scheme_gets_one() {
        assert_eq!(completed("127.0.0.1:8080", false).unwrap(), "http://127.0.0.1:8080/");
        assert_eq!(completed("example.com", true).unwrap(), "https://example.com/");
        assert_eq!(completed("https://example.com/a", false).unwrap(), "https://example.com/a");
        let wrong = completed("/a/b", false).unwrap_err();
        assert!(wrong.contains("/a/b") && wrong.contains("https://"), "{wrong}");
    }
}
