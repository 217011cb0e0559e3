//! Kubeconfig files: written as JSON, which is YAML, and read back.
//!
//! An [`Access`] is what one context of a kubeconfig says: where the server is, whom to trust, who one is.
//! Reading takes the current context; files it refers to are read in. A file in YAML is converted by kubectl.
//! Credentials that need another program (`exec`, `auth-provider`) are an error that says so.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::binaries;

/// How to reach a cluster as somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The server's address, without a slash at the end.
    pub url: String,
    /// The certificates to trust, as PEM; the server's certificate is not accepted otherwise.
    pub ca_pem: Option<String>,
    /// Who one is.
    pub credentials: Credentials,
    /// Whom to act as, where the credentials allow that.
    pub impersonate: Option<Impersonate>,
}

/// Who one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody.
    Anonymous,
    /// The bearer of a token.
    Token(String),
    /// The subject of a certificate.
    ClientCertificate {
        /// The certificate, PEM.
        cert_pem: String,
        /// Its key, PEM.
        key_pem: String,
    },
}

/// A user to act as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonate {
    /// The name.
    pub user: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Access {
    /// Access without credentials.
    #[must_use]
    pub fn anonymous(url: impl Into<String>) -> Self {
        Self {
            url: url.into().trim_end_matches('/').to_owned(),
            ca_pem: None,
            credentials: Credentials::Anonymous,
            impersonate: None,
        }
    }

    /// Trusts these certificates.
    #[must_use]
    pub fn with_ca(mut self, pem: impl Into<String>) -> Self {
        self.ca_pem = Some(pem.into());
        self
    }

    /// Uses a bearer token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.credentials = Credentials::Token(token.into());
        self
    }

    /// Uses a client certificate.
    #[must_use]
    pub fn with_client_certificate(mut self, pair: &crate::certs::PemPair) -> Self {
        self.credentials =
            Credentials::ClientCertificate { cert_pem: pair.public.clone(), key_pem: pair.private.clone() };
        self
    }

    /// Acts as another user.
    #[must_use]
    pub fn acting_as(mut self, user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.impersonate = Some(Impersonate { user: user.to_owned(), groups });
        self
    }

    /// Points somewhere else, a proxy say, as the same user.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        url.trim_end_matches('/').clone_into(&mut self.url);
        self
    }

    /// Writes a kubeconfig with one context. Only its owner may read it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut user = serde_json::Map::new();
        match &self.credentials {
            Credentials::Anonymous => {}
            Credentials::Token(token) => {
                user.insert("token".to_owned(), json!(token));
            }
            Credentials::ClientCertificate { cert_pem, key_pem } => {
                user.insert("client-certificate-data".to_owned(), json!(BASE64.encode(cert_pem)));
                user.insert("client-key-data".to_owned(), json!(BASE64.encode(key_pem)));
            }
        }
        if let Some(impersonate) = &self.impersonate {
            user.insert("as".to_owned(), json!(impersonate.user));
            user.insert("as-groups".to_owned(), json!(impersonate.groups));
        }
        let mut cluster = json!({ "server": self.url });
        if let Some(ca) = &self.ca_pem {
            cluster["certificate-authority-data"] = json!(BASE64.encode(ca));
        }
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "testbed", "cluster": cluster }],
            "users": [{ "name": "testbed", "user": user }],
            "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "testbed" } }],
            "current-context": "testbed",
        });
        write_private(path, &serde_json::to_vec_pretty(&document)?)
    }

    /// Reads the current context of a kubeconfig.
    pub async fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read(path).with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
        let document = match serde_json::from_slice(&text) {
            Ok(document) => document,
            Err(_) => yaml_to_json(path).await?,
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&document, folder).with_context(|| format!("in the kubeconfig {}", path.display()))
    }

    fn parse(document: &Value, folder: &Path) -> Result<Self> {
        let context = named(document, "contexts", "context", document["current-context"].as_str())?;
        let cluster = named(document, "clusters", "cluster", context["cluster"].as_str())?;
        let user = named(document, "users", "user", context["user"].as_str())?;
        if cluster["insecure-skip-tls-verify"] == true {
            bail!("insecure-skip-tls-verify is not supported: give certificate-authority-data");
        }
        for unsupported in ["exec", "auth-provider"] {
            if !user[unsupported].is_null() {
                bail!("credentials by {unsupported} are not supported: use a token or a client certificate");
            }
        }

        let field = |of: &Value, name: &str| text_or_file(of, name, folder);
        let credentials = if let Some(cert_pem) = field(user, "client-certificate")? {
            let key_pem = field(user, "client-key")?.context("a client certificate without its key")?;
            Credentials::ClientCertificate { cert_pem, key_pem }
        } else if let Some(token) = user["token"].as_str() {
            Credentials::Token(token.to_owned())
        } else if let Some(file) = user["tokenFile"].as_str() {
            Credentials::Token(read_text(&folder.join(file))?.trim().to_owned())
        } else {
            Credentials::Anonymous
        };
        let impersonate = user["as"]
            .as_str()
            .map(|name| Impersonate { user: name.to_owned(), groups: strings(&user["as-groups"]) });
        let url = cluster["server"].as_str().context("the cluster has no server")?;
        Ok(Self {
            ca_pem: field(cluster, "certificate-authority")?,
            credentials,
            impersonate,
            ..Self::anonymous(url)
        })
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let context = || format!("cannot write {}", path.display());
    let mut options = std::fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(path).with_context(context)?;
    file.write_all(bytes).with_context(context)
}

fn named<'a>(document: &'a Value, list: &str, inner: &str, name: Option<&str>) -> Result<&'a Value> {
    let name = name.with_context(|| format!("nothing names an entry of {list}"))?;
    document[list]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["name"] == name)
        .map(|entry| &entry[inner])
        .with_context(|| format!("{list} has no {name:?}"))
}

/// The PEM in `<name>-data`, or in the file that `<name>` gives.
fn text_or_file(of: &Value, name: &str, folder: &Path) -> Result<Option<String>> {
    if let Some(data) = of[format!("{name}-data")].as_str() {
        let bytes = BASE64.decode(data).with_context(|| format!("{name}-data is not base64"))?;
        return Ok(Some(String::from_utf8(bytes).with_context(|| format!("{name}-data is no PEM"))?));
    }
    of[name].as_str().map(|file| read_text(&folder.join(file))).transpose()
}

fn read_text(path: &PathBuf) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn yaml_to_json(path: &Path) -> Result<Value> {
    let kubectl = binaries::kubectl().await.context("a kubeconfig in YAML is read with kubectl")?;
    let output = tokio::process::Command::new(kubectl)
        .args(["config", "view", "--raw", "--minify", "--flatten", "-o", "json", "--kubeconfig"])
        .arg(path)
        .output()
        .await
        .context("cannot run kubectl")?;
    if !output.status.success() {
        bail!("kubectl cannot read {}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("kubectl printed no JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::PemPair;

    #[tokio::test]
    async fn what_was_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let pair = PemPair { public: "cert".to_owned(), private: "key".to_owned() };
        let plain = Access::anonymous("https://127.0.0.1:1/").with_ca("ca");
        for access in [
            plain.clone(),
            plain.clone().with_token("secret"),
            plain.clone().with_client_certificate(&pair),
            plain.with_token("secret").acting_as("jane", &["dev", "ops"]),
        ] {
            access.write(&path).unwrap();
            assert_eq!(Access::read(&path).await.unwrap(), access);
        }
    }

    #[test]
    fn credentials_that_need_another_program_are_named() {
        let document = json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": { "server": "https://k" } }],
            "users": [{ "name": "u", "user": { "exec": { "command": "login" } } }],
        });
        let error = Access::parse(&document, Path::new(".")).unwrap_err();
        assert!(error.to_string().contains("exec"), "{error}");
    }
}
