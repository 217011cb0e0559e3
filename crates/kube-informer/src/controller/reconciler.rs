//! Who brings the world closer to what is wanted.

use std::future::Future;

use super::action::{Action, BoxError};
use super::context::Context;

/// Looks at one object, and does what is missing. What happened before is not told: whatever it was, the reconciler looks
/// at how things are, and may be called more often than needed.
///
/// - For one request, it is never called twice at the same time.
/// - An error is retried with a growing delay; one that is [`terminal`](super::terminal) is not. A panic is an error, and so
///   is a call that takes longer than [`Controller::timeout`](super::Controller::timeout).
/// - It may be dropped where it waits: after the timeout, at the end of a shutdown, when leadership is lost.
///
/// Functions and closures are reconcilers, too:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::controller::{Action, BoxError, Context, Reconciler};
///
/// async fn reconcile(context: Context<ConfigMap>) -> Result<Action, BoxError> {
///     let Some(object) = context.object() else { return Ok(Action::done()) };
///     println!("{} at {}", object.key(), object.version());
///     Ok(Action::done())
/// }
///
/// struct Greeter { greeting: String }
///
/// impl Reconciler<ConfigMap> for Greeter {
///     async fn reconcile(&self, context: Context<ConfigMap>) -> Result<Action, BoxError> {
///         println!("{} {}", self.greeting, context.request());
///         Ok(Action::done())
///     }
/// }
///
/// fn is_one(_: impl Reconciler<ConfigMap>) {}
/// is_one(reconcile);
/// is_one(Greeter { greeting: "hello".to_owned() });
/// is_one(async |context: Context<ConfigMap>| { anyhow::ensure!(context.object().is_some()); Ok(Action::done()) });
/// ```
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Looks at the object of the request, and does what is missing.
    fn reconcile(&self, context: Context<K>) -> impl Future<Output = Result<Action, BoxError>> + Send;
}

impl<K, F, Fut, E> Reconciler<K> for F
where
    K: 'static,
    F: Fn(Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: Into<BoxError>,
{
    async fn reconcile(&self, context: Context<K>) -> Result<Action, BoxError> {
        self(context).await.map_err(Into::into)
    }
}
