//! The ElastiService: which workload may sleep, and behind which Service it is asked for.
//!
//! Everything that users of the resource have written is read: names of kinds in their singular and plural forms, fields
//! that are left out, and fields of later versions, which are left alone. An object that lacks what it must have can be read,
//! too, so that it can be told what is missing. What is read here is never written back but for
//! the status, so nothing that this version does not know is lost.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube_client::core::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The API group.
pub const GROUP: &str = "elasti.truefoundry.com";

/// The version.
pub const VERSION: &str = "v1alpha1";

/// The kind.
pub const KIND: &str = "ElastiService";

/// What keeps an ElastiService until what was made for it is taken back.
pub const FINALIZER: &str = "elasti.truefoundry.com/finalizer";

/// How long a target is left alone after it was woken, where nothing else is said.
pub const DEFAULT_COOLDOWN_SECONDS: i32 = 900;

/// An ElastiService. See the [module](self).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElastiService {
    /// Name, namespace, finalizers.
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default)]
    pub spec: ElastiServiceSpec,
    /// What there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ElastiServiceStatus>,
}

/// What is wanted of an ElastiService.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceSpec {
    /// What may sleep.
    #[serde(default)]
    pub scale_target_ref: ScaleTargetRef,
    /// The Service that it is asked for by, in the same namespace.
    #[serde(default)]
    pub service: String,
    /// To how many replicas it is woken. Nothing, or less than one, is one: waking never puts to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_target_replicas: Option<i32>,
    /// How many seconds it stays awake after it was woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_period: Option<i32>,
    /// What decides whether it may sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Vec<Trigger>>,
    /// Who else scales it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// When it may sleep at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_period: Option<EnabledPeriod>,
}

/// A workload, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTargetRef {
    /// Group and version: `apps/v1`.
    #[serde(default)]
    pub api_version: String,
    /// The kind, or its plural: `Deployment`, `deployments`.
    #[serde(default)]
    pub kind: String,
    /// The name.
    #[serde(default)]
    pub name: String,
}

/// What decides whether a target may sleep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// `prometheus`.
    #[serde(rename = "type")]
    pub type_: String,
    /// What is asked, of whom: free in form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Who else scales a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autoscaler {
    /// `hpa` or `keda`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its name.
    pub name: String,
}

/// When a target may sleep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledPeriod {
    /// When it begins: five fields of cron, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How long it lasts: `8h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// What there is of an ElastiService.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceStatus {
    /// `serve` or `proxy`. A text, because others may have written something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// When the mode was last switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconciled_time: Option<Timestamp>,
    /// When it was last woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scaled_up_time: Option<Timestamp>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many replicas the target is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// How it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// Who answers for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Its own pods.
    Serve,
    /// The resolver, which keeps requests until there are pods.
    Proxy,
}

impl Mode {
    /// As it is written in the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Proxy => "proxy",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ScaleTargetRef {
    /// `apps` and `v1`. The group of what Kubernetes began with is empty.
    pub(crate) fn group_and_version(&self) -> (&str, &str) {
        self.api_version.split_once('/').unwrap_or(("", &self.api_version))
    }
}

impl fmt::Display for ScaleTargetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.kind, self.name, self.api_version)
    }
}

impl ElastiServiceSpec {
    /// To how many replicas the target is woken: never less than one.
    #[must_use]
    pub fn wake_to(&self) -> i32 {
        self.min_target_replicas.unwrap_or(1).max(1)
    }

    /// How many seconds the target stays awake after it was woken.
    #[must_use]
    pub fn cooldown_seconds(&self) -> i32 {
        self.cooldown_period.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_COOLDOWN_SECONDS)
    }
}

impl Resource for ElastiService {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "elastiservices".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_written_it_is_woken_to_one_at_least() {
        for (written, woken) in [(None, 1), (Some(0), 1), (Some(-1), 1), (Some(i32::MIN), 1), (Some(3), 3)] {
            let spec = ElastiServiceSpec { min_target_replicas: written, ..ElastiServiceSpec::default() };
            assert_eq!(spec.wake_to(), woken, "{written:?}");
        }
    }
}
