//! How an informer is set up: what is asked for, what is kept, and how often it is said again.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::Factory;
use crate::cache::{ParseSelectorError, Selector};
use crate::encoding::{Encoding, ManagedFields, Pointer, PointerError};
use crate::informer::Informer;
use crate::informer::spec::Spec;
use crate::object::{Packing, ViewBudget};
use crate::reflector::request::Form;

/// How an informer is to be; made by [`Factory::configure`].
///
/// ```no_run
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::factory::Factory;
/// # use kube_informer::informer::{Informer, Scope};
/// # fn example(factory: &Factory) -> Result<(), Box<dyn std::error::Error>> {
/// let pods: Informer<Pod> = factory
///     .configure(Scope::namespace("shop"))
///     .labels("app=web")?
///     .fields("spec.nodeName=node-1")
///     .drop("/status")?
///     .resync(Duration::from_secs(30))
///     .informer();
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is watched until `informer` is called"]
pub struct InformerBuilder<K = serde_json::Value> {
    factory: Factory,
    spec: Spec,
    views: Option<ViewBudget>,
    resync: Option<Duration>,
    view: PhantomData<fn() -> K>,
}

impl<K> InformerBuilder<K> {
    /// Only objects whose labels meet a selector: `app=web,tier in (front,back)`. The server selects them.
    ///
    /// # Errors
    ///
    /// Where the text is not a selector.
    pub fn labels(mut self, selector: &str) -> Result<Self, ParseSelectorError> {
        let parsed: Selector = selector.parse()?;
        // Whoever writes it in another way asks for the same.
        self.spec.labels = Some(parsed.to_string()).filter(|text| !text.is_empty());
        Ok(self)
    }

    /// Only objects whose fields meet a selector: `spec.nodeName=node-1`. The server selects them; which fields it can
    /// select by depends on the resource, and it says so where it cannot.
    pub fn fields(mut self, selector: &str) -> Self {
        self.spec.fields = Some(selector.trim().to_owned()).filter(|text| !text.is_empty());
        self
    }

    /// Only the metadata of objects is asked for, and kept.
    pub fn metadata_only(mut self) -> Self {
        self.spec.form = Form::Metadata;
        self
    }

    /// A field that is not kept, as a JSON pointer: `/status`, `/data`.
    ///
    /// # Errors
    ///
    /// Where the text is not a JSON pointer, or the field cannot be dropped.
    pub fn drop(mut self, pointer: &str) -> Result<Self, PointerError> {
        self.spec.rules = self.spec.rules.drop(Pointer::parse(pointer)?)?;
        Ok(self)
    }

    /// What becomes of `metadata.managedFields`. They are cut unless something else is said.
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.spec.rules = self.spec.rules.managed_fields(managed_fields);
        self
    }

    /// The encoding to ask for. Without it: protobuf where nothing can be lost by it, otherwise JSON.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.spec.encoding = Some(encoding);
        self
    }

    /// Whether objects are packed in memory.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.spec.packing = packing;
        self
    }

    /// Which decoded views are kept. Of those who share an informer, the first to ask for it decides.
    pub fn views(mut self, views: ViewBudget) -> Self {
        self.views = Some(views);
        self
    }

    /// How often everything is said again to those who are told, unless they say otherwise. Zero is never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Objects are seen as another type.
    pub fn cast<T>(self) -> InformerBuilder<T> {
        let Self { factory, spec, views, resync, .. } = self;
        InformerBuilder { factory, spec, views, resync, view: PhantomData }
    }

    /// The informer: the one that there is already, or a new one.
    #[must_use]
    pub fn informer(self) -> Informer<K> {
        self.factory.shared(self.spec, self.views, self.resync)
    }

    pub(super) fn new(factory: Factory, spec: Spec) -> Self {
        Self { factory, spec, views: None, resync: None, view: PhantomData }
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("spec", &self.spec)
            .field("views", &self.views)
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}
