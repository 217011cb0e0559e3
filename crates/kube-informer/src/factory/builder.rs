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
    wishes: Wishes,
    view: PhantomData<fn() -> K>,
}

/// What informers are not shared by.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes {
    pub(super) views: Option<ViewBudget>,
    pub(super) resync: Option<Duration>,
    pub(super) gather: Duration,
}

impl<K> InformerBuilder<K> {
    /// Only objects whose labels meet a selector: `app=web,tier in (front,back)`. The server selects them. An object that
    /// meets it no longer is told as [deleted](crate::informer::Event::Deleted), and as `certain` where a watch said so,
    /// though it may still exist; one that meets it again is told as added.
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
    /// select by depends on the resource, and it says so where it cannot. An object that leaves it is told as
    /// [deleted](crate::informer::Event::Deleted), as with [`labels`](Self::labels), and may still exist.
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
        self.wishes.views = Some(views);
        self
    }

    /// How often everything is said again to those who are told, unless they say otherwise. Zero is never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.wishes.resync = Some(period);
        self
    }

    /// How long changes may wait for others that follow, to be read together: while they come often, they come up to this
    /// much later, and cost the processor much less. What comes after a silence comes at once. Without it, each one does.
    ///
    /// It suits those who follow a busy resource and need not know of each change within milliseconds; who waits until the
    /// cache has [caught up](Informer::caught_up) waits for it, too. It is [`LONGEST_GATHER`](super::LONGEST_GATHER) at
    /// most, give or take a millisecond, and less than a millisecond is nothing. Of those who have asked for the same
    /// informer, the one who wants to wait least decides, for good; who does not say anything does not want to wait.
    ///
    /// Connections that a factory has made can do so, on Unix, and those through a proxy cannot: there, and with somebody
    /// else's [client](Factory::new), it changes nothing. [`InformerStats::gathered`](crate::informer::InformerStats::gathered)
    /// says whether anything ever waited.
    pub fn gather(mut self, longest: Duration) -> Self {
        self.wishes.gather = longest;
        self
    }

    /// Objects are seen as another type.
    pub fn cast<T>(self) -> InformerBuilder<T> {
        let Self { factory, spec, wishes, .. } = self;
        InformerBuilder { factory, spec, wishes, view: PhantomData }
    }

    /// The informer: the one that there is already, or a new one.
    #[must_use]
    pub fn informer(self) -> Informer<K> {
        self.factory.shared(self.spec, self.wishes)
    }

    pub(super) fn new(factory: Factory, spec: Spec) -> Self {
        Self { factory, spec, wishes: Wishes::default(), view: PhantomData }
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("spec", &self.spec)
            .field("wishes", &self.wishes)
            .finish_non_exhaustive()
    }
}
