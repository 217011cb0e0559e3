//! Who gets into a control plane, and how: keys, tokens, kubeconfigs.
//!
//! Everything is derived from the folder, so that a process that did not start the control plane can hand out
//! kubeconfigs as well.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Layout, hex, random_bytes};
use crate::certs::{Authority, PemPair, signing_key};
use crate::http::Endpoint;
use crate::kubeconfig::{Access, Credentials, write_private};

/// The user behind the administrator's token.
const ADMIN: &str = "admin";

/// The group that RBAC is not asked about.
const MASTERS: &str = "system:masters";

/// How long a service account's token is good: longer than any test run.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;

/// Who gets in.
#[derive(Clone, Debug)]
pub struct Accounts {
    layout: Layout,
    admin: Access,
    token: String,
    ca_pem: String,
}

impl Accounts {
    /// Writes new keys, the administrator's token and kubeconfig.
    pub(super) fn create(layout: Layout, port: u16) -> Result<Self> {
        let authority = Authority::generate()?;
        let serving = authority.serving(&["localhost", "kubernetes", "kubernetes.default.svc"])?;
        let ca = authority.pem();
        for (name, pair) in [("ca", &ca), ("apiserver", &serving), ("sa", &signing_key()?)] {
            write_private(&layout.pki(&format!("{name}.crt")), pair.public.as_bytes())?;
            write_private(&layout.pki(&format!("{name}.key")), pair.private.as_bytes())?;
        }
        let token = hex(&random_bytes::<16>()?);
        write_private(&layout.tokens(), format!("{token},{ADMIN},{ADMIN},{MASTERS}\n").as_bytes())?;
        let admin =
            Access::anonymous(format!("https://127.0.0.1:{port}")).with_ca(&ca.public).with_token(&token);
        admin.write(&layout.kubeconfig(ADMIN))?;
        Ok(Self { layout, admin, token, ca_pem: ca.public })
    }

    /// The accounts of the control plane in the folder `dir`.
    pub async fn open(dir: &Path) -> Result<Self> {
        let layout = Layout::new(dir);
        let admin = Access::read(&layout.kubeconfig(ADMIN)).await?;
        let Credentials::Token(token) = admin.credentials.clone() else {
            anyhow::bail!("the administrator in {} has no token", dir.display());
        };
        let ca_pem = admin.ca_pem.clone().context("the administrator's kubeconfig trusts nobody")?;
        Ok(Self { layout, admin, token, ca_pem })
    }

    /// The API server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.admin.url
    }

    /// The authority's certificate.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The administrator's token.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        &self.token
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig(ADMIN)
    }

    /// How the administrator gets in.
    #[must_use]
    pub fn admin(&self) -> Access {
        self.admin.clone()
    }

    /// A kubeconfig of a user: with a client certificate or, for more groups than a certificate can carry,
    /// by the administrator acting as that user, which RBAC does not tell apart.
    pub fn kubeconfig_for_user(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        let access = match groups {
            [] => self.with_certificate(name, None)?,
            [group] => self.with_certificate(name, Some(group))?,
            _ => self.admin().acting_as(name, groups),
        };
        self.write(name, &access)
    }

    /// A kubeconfig with a token of a service account, which is created if it does not exist.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let access = service_account(&self.admin, namespace, name).await?;
        self.write(&format!("system:serviceaccount:{namespace}:{name}"), &access)
    }

    /// A kubeconfig of the controller manager. It acts for all controllers, so nothing is forbidden to it.
    pub(super) fn kubeconfig_for_controller_manager(&self) -> Result<PathBuf> {
        self.kubeconfig_for_user("system:kube-controller-manager", &[MASTERS])
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A user whose client certificate expires then, or has expired.
    pub fn user_until(&self, name: &str, until: SystemTime) -> Result<Access> {
        Ok(self.admin().with_client_certificate(&self.authority()?.client_until(name, until)?))
    }

    fn with_certificate(&self, name: &str, group: Option<&str>) -> Result<Access> {
        Ok(self.admin().with_client_certificate(&self.authority()?.client(name, group)?))
    }

    fn authority(&self) -> Result<Authority> {
        let read = |file: &str| {
            let path = self.layout.pki(file);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        Authority::from_pem(&PemPair { public: read("ca.crt")?, private: read("ca.key")? })
    }

    fn write(&self, user: &str, access: &Access) -> Result<PathBuf> {
        let path = self.layout.kubeconfig(user);
        access.write(&path)?;
        Ok(path)
    }
}

/// Access with a new token of a service account, which is created if it does not exist.
pub(crate) async fn service_account(admin: &Access, namespace: &str, name: &str) -> Result<Access> {
    let endpoint = Endpoint::new(admin.clone())?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let created = endpoint.post(&accounts, &json!({ "metadata": { "name": name } })).await?;
    if created.status != http::StatusCode::CONFLICT {
        created.success()?;
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": TOKEN_SECONDS },
    });
    let answer = endpoint.post(&format!("{accounts}/{name}/token"), &request).await?.success()?.json()?;
    let token = answer["status"]["token"].as_str().context("a TokenRequest was answered without a token")?;
    Ok(Access { impersonate: None, ..admin.clone().with_token(token) })
}
