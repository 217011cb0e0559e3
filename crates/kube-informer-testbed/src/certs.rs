//! Certificates of a control plane: one authority, serving and client certificates, signing keys.
//!
//! All keys are ECDSA P-256. An [`Authority`] can be written down as two PEM texts and read back, so that a
//! control plane that runs detached can mint client certificates later.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

/// A certificate or a public key, and the private key to it, as PEM.
#[derive(Clone, Debug)]
pub struct PemPair {
    /// The certificate, or the public key of a bare key pair.
    pub public: String,
    /// The private key, PKCS#8.
    pub private: String,
}

/// A certificate authority.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority.
    pub fn generate() -> Result<Self> {
        let key = KeyPair::generate().context("cannot generate the authority's key")?;
        let certificate =
            Self::params().self_signed(&key).context("cannot sign the authority's certificate")?.pem();
        Ok(Self { certificate, issuer: Issuer::new(Self::params(), key) })
    }

    /// The authority that [`Authority::pem`] wrote down.
    pub fn from_pem(pem: &PemPair) -> Result<Self> {
        let key = KeyPair::from_pem(&pem.private).context("the authority's key is no PKCS#8 PEM")?;
        // Issued certificates name their issuer by subject and key: both are the same again.
        Ok(Self { certificate: pem.public.clone(), issuer: Issuer::new(Self::params(), key) })
    }

    /// The certificate and the private key.
    #[must_use]
    pub fn pem(&self) -> PemPair {
        PemPair { public: self.certificate.clone(), private: self.issuer.key().serialize_pem() }
    }

    /// A certificate for a server on this machine.
    pub fn serving(&self, names: &[&str]) -> Result<PemPair> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).context("bad name for a serving certificate")?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// A certificate that the API server takes for the user `name`, in `group` if there is one.
    ///
    /// More than one group would need a subject with several organizations, which rcgen does not write.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<PemPair> {
        self.issue(Self::client_params(name, group))
    }

    /// The same, for a user whose certificate expires then, or has expired.
    pub fn client_until(&self, name: &str, until: SystemTime) -> Result<PemPair> {
        let since = until.duration_since(UNIX_EPOCH).context("a certificate that expires before 1970")?;
        let mut params = Self::client_params(name, None);
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(1970, 1, 1) + since);
        self.issue(params)
    }

    fn client_params(name: &str, group: Option<&str>) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params
    }

    fn issue(&self, mut params: CertificateParams) -> Result<PemPair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("cannot generate a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("cannot sign a certificate")?;
        Ok(PemPair { public: certificate.pem(), private: key.serialize_pem() })
    }

    fn params() -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "kube-informer testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params
    }
}

/// A key pair without a certificate, as service account tokens are signed with.
pub fn signing_key() -> Result<PemPair> {
    let key = KeyPair::generate().context("cannot generate a signing key")?;
    Ok(PemPair { public: key.public_key_pem(), private: key.serialize_pem() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_read_back_issues_under_the_same_certificate() {
        let first = Authority::generate().unwrap();
        let again = Authority::from_pem(&first.pem()).unwrap();
        assert_eq!(first.pem().public, again.pem().public);
        assert_eq!(first.pem().private, again.pem().private);
        assert!(again.client("jane", Some("dev")).unwrap().public.contains("BEGIN CERTIFICATE"));
    }
}
