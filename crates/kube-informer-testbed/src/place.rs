//! A server, embedded or real, with a namespace of a test's own: most tests are made for both ([`on_both!`](crate::on_both)).

use anyhow::{Context, Result, ensure};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Namespace};
use crate::http::Endpoint;
use crate::kubeconfig::Access;

/// See the module.
pub struct Place {
    kubeconfig: String,
    /// Straight to the server, as somebody who may do everything.
    pub endpoint: Endpoint,
    /// The test's own.
    pub namespace: String,
    /// What ends with the test.
    server: Option<Server>,
    _own: Option<Namespace>,
}

impl Place {
    /// The embedded server.
    ///
    /// # Errors
    ///
    /// Where it does not start.
    pub async fn embedded() -> Result<Self> {
        Self::of(Server::builder().start().await?).await
    }

    /// An embedded server that was made in some way.
    ///
    /// # Errors
    ///
    /// Where it cannot be reached.
    pub async fn of(server: Server) -> Result<Self> {
        let kubeconfig = server.kubeconfig();
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, &kubeconfig)?;
        let endpoint = Endpoint::new(Access::read(&file).await?)?;
        let namespace = "test".to_owned();
        let place = Self { kubeconfig, endpoint, namespace, server: Some(server), _own: None };
        place.post("/api/v1/namespaces", &json!({ "metadata": { "name": "test" } })).await?;
        Ok(place)
    }

    /// The real server of this test run.
    ///
    /// # Errors
    ///
    /// Where it cannot be reached.
    pub async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        let namespace = cluster.namespace(test).await?;
        let kubeconfig = std::fs::read_to_string(cluster.admin_kubeconfig())?;
        let endpoint = cluster.endpoint().clone();
        let name = namespace.name().to_owned();
        Ok(Self { kubeconfig, endpoint, namespace: name, server: None, _own: Some(namespace) })
    }

    /// Whether it is kube-apiserver. The embedded server answers in JSON only.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.server.is_none()
    }

    /// The embedded server, if it is that.
    #[must_use]
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// What people put into a file.
    #[must_use]
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The path of something in the namespace, of the core group (`pods/web/status`) or of another one
    /// (`apps/v1/deployments`).
    #[must_use]
    pub fn path(&self, rest: &str) -> String {
        let namespace = &self.namespace;
        match rest.splitn(3, '/').collect::<Vec<_>>()[..] {
            [group, version, rest] if is_version(version) => {
                format!("/apis/{group}/{version}/namespaces/{namespace}/{rest}")
            }
            _ => format!("/api/v1/namespaces/{namespace}/{rest}"),
        }
    }

    /// # Errors
    ///
    /// Where the answer is not a success.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.endpoint.get(path).await?;
        ensure!(answer.status.is_success(), "GET {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    /// # Errors
    ///
    /// Where the answer is not a success.
    pub async fn post(&self, path: &str, object: &Value) -> Result<Value> {
        let answer = self.endpoint.post(path, object).await?;
        ensure!(answer.status.is_success(), "POST {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    /// # Errors
    ///
    /// Where the answer is not a success.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        let answer = self.endpoint.merge_patch(path, patch).await?;
        ensure!(answer.status.is_success(), "PATCH {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    /// # Errors
    ///
    /// Where the answer is not a success.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let answer = self.endpoint.delete(path).await?;
        ensure!(answer.status.is_success(), "DELETE {path}: {answer:?}");
        Ok(())
    }
}

/// `v1`, `v1alpha1`.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Makes two tests of a function over the `crate::harness::Place` of a test binary, which has `embedded` and `real` as
/// [`Place`] has them.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the harness is that of the test binary")]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name(crate::harness::Place::embedded().await?).await
            })*
        }
        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let cluster = $crate::require!($crate::cluster::Cluster::shared().await);
                let place = crate::harness::Place::real(cluster, stringify!($name)).await.unwrap();
                super::$name(place).await.unwrap();
            })*
        }
    };
}
