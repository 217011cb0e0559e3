//! The CustomResourceDefinition of the ElastiService, as it is applied to a cluster.
//!
//! It accepts every object that KubeElasti's definition accepted, drops nothing of it, and can take that one's place while
//! objects exist.

/// The name of the definition.
pub const NAME: &str = "elastiservices.elasti.truefoundry.com";

/// The definition, in YAML: `kubectl apply --server-side -f -`.
#[must_use]
pub fn manifest() -> &'static str {
    include_str!("../manifests/crd.yaml")
}
