//! Runs a scenario on both servers and compares what it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kube_informer_apiserver::Server;
use kube_informer_testbed::binaries::Unavailable;
use kube_informer_testbed::cluster::{self, Cluster};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::Value;

use super::normal::normal;
use super::{Api, DIFFERENCES};

/// The administrator of both servers.
const USER: &str = "admin";
const GROUP: &str = "system:masters";

type Transcript = BTreeMap<String, Value>;

/// Runs `scenario` on both servers; fails where they differ in more or less than what is listed.
pub(crate) async fn both(test: &str, name: &str, scenario: impl AsyncFn(&Api) -> Result<()>) -> Result<()> {
    let real = match Cluster::shared().await {
        // Another version, or controllers that act on objects, would be compared with something else.
        Ok(cluster) if cluster.is_existing() || cluster.has_controller_manager() => {
            Err(Unavailable::not_here(
                "scenarios are compared with a control plane of our own without controllers",
            ))
        }
        other => other,
    };
    let on_embedded = async { run(embedded().await?, &scenario).await.context("on the embedded server") };
    let real = match real {
        Ok(real) => real,
        Err(unavailable) => {
            if let (_, Some(failed)) = on_embedded.await? {
                return Err(failed);
            }
            cluster::leave_out(test.split_once("::").map_or(test, |(_, test)| test), &unavailable);
            return Ok(());
        }
    };
    let on_real = async {
        let api = Api::new(real.endpoint().clone(), None, unique()?).await?;
        run(api, &scenario).await.context("on the real server")
    };
    let (embedded, real) = tokio::join!(on_embedded, on_real);
    let (embedded, embedded_failed) = embedded?;
    let (real, real_failed) = real?;
    let found = differences(&embedded, &real);
    let failed = [embedded_failed, real_failed].into_iter().flatten();
    judge(name, &found, failed.map(|error| format!("{error:#}")).collect())
}

async fn embedded() -> Result<Api> {
    let token = "scenario-token";
    let server = Server::builder().token(token, USER, &[GROUP]).start().await?;
    let endpoint = Endpoint::new(Access::anonymous(server.url()).with_token(token))?;
    Api::new(endpoint, Some(Arc::new(server)), unique()?).await
}

/// A transcript, and how the scenario's own assertions failed, if they did: the comparison says more.
async fn run(
    api: Api,
    scenario: &impl AsyncFn(&Api) -> Result<()>,
) -> Result<(Transcript, Option<anyhow::Error>)> {
    let which = if api.embedded.is_some() { "embedded" } else { "real" };
    let result = scenario(&api).await.with_context(|| format!("on the {which} server"));
    let (entries, unique) = api.transcript();
    let transcript = normal(entries, unique);
    api.clean_up().await.context("cleaning up")?;
    Ok((transcript, result.err()))
}

/// A word that cannot be part of anything else.
fn unique() -> Result<String> {
    let mut bytes = [0_u8; 4];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("u{:08x}", u32::from_ne_bytes(bytes)))
}

fn judge(name: &str, found: &[(String, String)], failed: Vec<String>) -> Result<()> {
    let listed: BTreeSet<&str> = DIFFERENCES.iter().filter(|d| d.scenario == name).map(|d| d.path).collect();
    let paths: BTreeSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    let mut report = String::new();
    for (path, both) in found.iter().filter(|(path, _)| !listed.contains(path.as_str())) {
        let _ = writeln!(report, "{path}\n{both}");
    }
    for path in listed.difference(&paths) {
        let _ = writeln!(report, "{path}\n  is listed as a difference and is none");
    }
    for error in failed {
        let _ = writeln!(report, "{error}");
    }
    if report.is_empty() {
        return Ok(());
    }
    bail!("{name}\n{report}")
}

/// The paths at which two transcripts differ, and how.
fn differences(embedded: &Transcript, real: &Transcript) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let steps: BTreeSet<&String> = embedded.keys().chain(real.keys()).collect();
    for step in steps {
        differ(step, embedded.get(step), real.get(step), &mut found);
    }
    found
}

fn differ(path: &str, embedded: Option<&Value>, real: Option<&Value>, found: &mut Vec<(String, String)>) {
    match (embedded, real) {
        (a, b) if a == b => {}
        // A refusal here and an object there have nothing in common to be compared field by field.
        (Some(Value::Object(a)), Some(Value::Object(b))) if a.get("kind") == b.get("kind") => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differ(&format!("{path}/{}", key.replace('/', "~1")), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for number in 0..a.len().max(b.len()) {
                differ(&format!("{path}/{number}"), a.get(number), b.get(number), found);
            }
        }
        (a, b) => {
            let show = |value: Option<&Value>| value.map_or_else(|| "(absent)".to_owned(), Value::to_string);
            found.push((path.to_owned(), format!("  embedded: {}\n  real:     {}", show(a), show(b))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_named_by_its_path() {
        let of = |value| Transcript::from([("01 GET a".to_owned(), value)]);
        let a = of(json!({ "body": { "x": [1, 2], "y/z": 1 } }));
        let b = of(json!({ "body": { "x": [1, 3], "w": 1, "y/z": 1 } }));
        let paths: Vec<String> = differences(&a, &b).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["01 GET a/body/w", "01 GET a/body/x/1"]);
    }

    #[test]
    fn an_unlisted_difference_is_a_failure_and_so_is_none() {
        assert!(judge("no such scenario", &[], Vec::new()).is_ok());
        let error = judge("x", &[("p".into(), "  q".into())], Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "x\np\n  q\n");
    }
}
