//! From bytes that arrived to objects that are kept: checked, cut, interned, packed.

use std::fmt;
use std::sync::Arc;

use super::intern::Interners;
use super::pack::{Packed, Packer};
use super::views::Views;
use super::{Inner, KeyRef, Object, Packing, Rare, Shared, ViewBudget};
use crate::encoding::{Codec, DecodeError};

/// Makes the objects of one resource. There is one per resource, owned by the one who writes the cache.
///
/// ```
/// use kube_informer::encoding::{Codec, Encoding, Rules};
/// use kube_informer::object::{Intake, Object};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default())?;
/// let mut intake = Intake::new(codec);
/// let arrived = br#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"data":{"k":"v"}}"#;
/// let object: Object<ConfigMap> = intake.object(arrived)?.cast();
/// assert_eq!(object.key().to_string(), "b/a");
/// assert_eq!(object.view()?.data.as_ref().unwrap()["k"], "v");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Intake {
    shared: Arc<Shared>,
    packer: Packer,
    interners: Interners,
    /// What is kept of the object at hand, before it is packed.
    stored: Vec<u8>,
}

/// What an [`Intake`] has done so far, and what its objects share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IntakeStats {
    /// Objects that were made.
    pub objects: u64,
    /// How many of them are kept as they are, because packing would not make them smaller.
    pub kept_plain: u64,
    /// How many of them are kept as what tells them from another one.
    pub siblings: u64,
    /// The sum of the objects' sizes before they were packed.
    pub plain_bytes: u64,
    /// The sum of the objects' sizes after.
    pub packed_bytes: u64,
    /// Dictionaries that were trained.
    pub trainings: u64,
    /// The number of the dictionary in use; 0 before the first. Objects that were made with another one are worth to be
    /// [repacked](Intake::repack).
    pub dictionary: u32,
    /// Dictionaries that something is still packed with.
    pub live_dictionaries: usize,
    /// Different namespaces.
    pub namespaces: usize,
    /// Different sets of labels.
    pub label_sets: usize,
    /// Different lists of owners.
    pub owner_lists: usize,
    /// Views that were shared, and did not need to be decoded. Those that are lent are not counted.
    pub view_hits: u64,
    /// Views that were decoded.
    pub view_decodes: u64,
    /// Views that are kept.
    pub kept_views: usize,
    /// What they weigh, as far as it can be told.
    pub kept_view_bytes: usize,
}

/// One huge object must not pin its size for ever.
const MOST_SCRATCH: usize = 1 << 20;

impl Intake {
    /// An intake with the default packing and views.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self {
            shared: Arc::new(Shared { codec, views: Views::new(ViewBudget::default()) }),
            packer: Packer::new(Packing::default()),
            interners: Interners::default(),
            stored: Vec::new(),
        }
    }

    /// Sets whether objects are packed. To be called before the first object is made.
    #[must_use]
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packer = Packer::new(packing);
        self
    }

    /// Sets which decoded views are kept. To be called before the first object is made.
    #[must_use]
    pub fn views(mut self, budget: ViewBudget) -> Self {
        let codec = self.shared.codec.clone();
        self.shared = Arc::new(Shared { codec, views: Views::new(budget) });
        self
    }

    /// The codec of the objects.
    #[must_use]
    pub fn codec(&self) -> &Codec {
        &self.shared.codec
    }

    /// Makes an object out of a whole document, or out of an item of a list.
    ///
    /// # Errors
    ///
    /// Where the bytes are not such an object; see [`Codec::ingest`].
    pub fn object(&mut self, bytes: &[u8]) -> Result<Object, DecodeError> {
        self.update(bytes, |_| None::<Object>)
    }

    /// Makes an object of which a previous version may be known. Versions resemble each other: the new one is kept as
    /// small as the previous one.
    ///
    /// # Errors
    ///
    /// Where the bytes are not such an object; see [`Codec::ingest`].
    pub fn update<K>(
        &mut self,
        bytes: &[u8],
        previous: impl FnOnce(KeyRef<'_>) -> Option<Object<K>>,
    ) -> Result<Object, DecodeError> {
        self.make(bytes, |packer, key, plain| match previous(key) {
            Some(previous) => packer.pack_update(&previous.inner.packed, plain),
            None => packer.pack(plain),
        })
    }

    /// Makes an object of which a previous version may be known, and which may soon be followed by the next one: its bytes
    /// are kept as they are. What lasts is to be [packed](Self::pack).
    ///
    /// # Errors
    ///
    /// Where the bytes are not such an object; see [`Codec::ingest`].
    pub fn fresh<K>(
        &mut self,
        bytes: &[u8],
        previous: impl FnOnce(KeyRef<'_>) -> Option<Object<K>>,
    ) -> Result<Object, DecodeError> {
        self.make(bytes, |packer, key, plain| {
            packer.keep(previous(key).as_ref().map(|previous| &previous.inner.packed), plain)
        })
    }

    /// The same object, packed; `None` if it is packed, or best left as it is.
    pub fn pack<K>(&mut self, object: &Object<K>) -> Option<Object<K>> {
        let packed = self.packer.pack_later(&object.inner.packed)?;
        Some(object.packed_as(packed))
    }

    fn make(
        &mut self,
        bytes: &[u8],
        pack: impl FnOnce(&mut Packer, KeyRef<'_>, &[u8]) -> Packed,
    ) -> Result<Object, DecodeError> {
        let metadata = match self.shared.codec.ingest(bytes, &mut self.stored) {
            Ok(metadata) => metadata,
            Err(error) => {
                trim(&mut self.stored);
                return Err(error);
            }
        };
        let key = KeyRef { namespace: &metadata.namespace, name: &metadata.name };
        let packed = pack(&mut self.packer, key, &self.stored);
        let inner = Inner {
            namespace: self.interners.namespace(&metadata.namespace),
            name: metadata.name.as_ref().into(),
            uid: metadata.uid.as_ref().into(),
            version: metadata.resource_version.as_ref().into(),
            generation: metadata.generation,
            created: metadata.created.into(),
            labels: self.interners.labels(&metadata.labels),
            owners: self.interners.owners(&metadata.owners),
            rare: Rare::of(&metadata),
            packed,
            shared: Arc::clone(&self.shared),
            slot: Default::default(),
        };
        trim(&mut self.stored);
        Ok(Object::of(inner))
    }

    /// Says that no more objects are to be expected soon, as after the first list: a dictionary is trained with the
    /// objects so far, if they are enough for one.
    pub fn settle(&mut self) {
        self.packer.settle();
    }

    /// The same object, kept smaller; `None` if it is best left as it is. Worth to be tried with every kept object after
    /// [`IntakeStats::dictionary`] has changed.
    pub fn repack<K>(&mut self, object: &Object<K>) -> Option<Object<K>> {
        let packed = self.packer.repack(&object.inner.packed)?;
        Some(object.packed_as(packed))
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> IntakeStats {
        let (pack, intern, views) = (self.packer.stats(), self.interners.stats(), self.shared.views.stats());
        IntakeStats {
            objects: pack.objects,
            kept_plain: pack.kept_plain,
            siblings: pack.kin,
            plain_bytes: pack.plain_bytes,
            packed_bytes: pack.packed_bytes,
            trainings: pack.trainings,
            dictionary: pack.generation,
            live_dictionaries: pack.live_dictionaries,
            namespaces: intern.namespaces,
            label_sets: intern.labels,
            owner_lists: intern.owners,
            view_hits: views.hits,
            view_decodes: views.decodes,
            kept_views: views.kept_views,
            kept_view_bytes: views.kept_bytes,
        }
    }
}

impl<K> Object<K> {
    /// The same object, its bytes kept in another way.
    fn packed_as(&self, packed: Packed) -> Self {
        let inner = &self.inner;
        Self::of(Inner {
            namespace: Arc::clone(&inner.namespace),
            name: inner.name.clone(),
            uid: inner.uid.clone(),
            version: inner.version.clone(),
            labels: Arc::clone(&inner.labels),
            owners: Arc::clone(&inner.owners),
            rare: inner.rare.clone(),
            shared: Arc::clone(&inner.shared),
            packed,
            slot: Default::default(),
            ..**inner
        })
    }
}

fn trim(scratch: &mut Vec<u8>) {
    if scratch.capacity() > MOST_SCRATCH {
        *scratch = Vec::new();
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("codec", &self.shared.codec).field("stats", &self.stats()).finish()
    }
}
