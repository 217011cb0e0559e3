//! A cluster with a resolver and services, and the operator's process.

mod account;
mod kubelet;
pub(crate) mod objects;
mod operator;
mod watched;
mod world;

pub(crate) use account::{ACCOUNT, manifests};
pub(crate) use operator::Operator;
pub(crate) use watched::{Held, Watched};
pub(crate) use world::{ELASTI, World};

use std::time::Duration;

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// Makes two tests of a function over a [`World`]: with the embedded server, whose simulator makes pods, and with the real
/// one, its controllers, and a stand-in for the kubelet.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::support::World::embedded(stringify!($name)).await).await;
            })*
        }
        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                // Its nodes are not real: on somebody's cluster, others would see them.
                kube_informer_testbed::require!(kube_informer_testbed::cluster::own_servers().await);
                let cluster = kube_informer_testbed::require!(
                    kube_informer_testbed::cluster::Cluster::shared_with_controllers().await
                );
                super::$name($crate::support::World::real(&cluster, stringify!($name)).await).await;
            })*
        }
    };
}
pub(crate) use on_both;
