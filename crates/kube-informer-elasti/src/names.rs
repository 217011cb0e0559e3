//! What the objects are called that are made for a service.
//!
//! The names are those that KubeElasti gives, so that its objects are taken over and its resolver finds them.

use sha2::{Digest, Sha256};

/// The longest name that a Service may have.
const LONGEST: usize = 63;

/// The Service that leads to the pods alone: the resolver asks there.
///
/// ```
/// assert_eq!(kube_informer_elasti::names::private_service("target-deployment"), "elasti-target-deployment-pvt-9696239e87");
/// ```
#[must_use]
pub fn private_service(service: &str) -> String {
    format!("elasti-{service}-pvt-{}", hash(service))
}

/// The EndpointSlice that leads from a service to the resolver.
#[must_use]
pub fn resolver_slice(service: &str) -> String {
    format!("elasti-{service}-endpointslice-to-resolver-{}", hash(service))
}

/// Whether the private Service can have its name.
#[must_use]
pub fn fits(service: &str) -> bool {
    private_service(service).len() <= LONGEST
}

/// The first ten digits of the name's SHA-256.
fn hash(service: &str) -> String {
    Sha256::digest(service).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}
