//! One version of one object: its bytes, its metadata, its views.
//!
//! An [`Object`] is immutable and cheap to clone. What it is found by is kept beside its bytes: key, UID, version,
//! generation, times, labels, owners. All else is read from the bytes when someone asks: a view as any type, what a JSON
//! pointer names, the whole as JSON.
//!
//! - Nothing that is read changes the object; nobody can change what others see.
//! - Objects of one resource share what is equal: namespaces, sets of labels, lists of owners, decoded views.
//! - An object that does not fit a type is an object all the same; only its view of that type is an error.

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use serde::de::{Deserialize, DeserializeOwned};

use crate::encoding::metadata::Writer;
use crate::encoding::{Codec, Encoding, Metadata, Pointer, ViewError};

// From bytes that arrived to objects.
mod intake;

// What an object is told apart by.
mod by_key;
mod identity;
mod moment;

// What many objects have in common is stored once.
mod intern;

// How it is kept small.
mod pack;

// What was decoded of it, while that is worth its memory.
mod lent;
mod views;

pub use crate::encoding::ObjectKey;
pub(crate) use by_key::ByKey;
pub use identity::{KeyRef, Uid, Version};
pub use intake::{Intake, IntakeStats};
pub use intern::{Labels, OwnerRef};
pub use lent::{Borrowed, View};
pub use pack::{Packing, UnpackError};
pub use views::ViewBudget;

use moment::Moment;
use pack::Packed;
use views::{Slot, Views};

/// One version of one object, seen as a `K`: any type that can be deserialized from the object's JSON.
///
/// A clone is the same object. [`cast`](Self::cast) sees it as another type.
pub struct Object<K = serde_json::Value> {
    inner: Arc<Inner>,
    view: PhantomData<fn() -> K>,
}

/// An object, for who does not keep it.
pub(crate) struct WeakObject(Weak<Inner>);

impl WeakObject {
    /// The object, if somebody has it.
    pub(crate) fn upgrade(&self) -> Option<Object> {
        Some(Object { inner: self.0.upgrade()?, view: PhantomData })
    }
}

/// What all objects of one resource share.
#[derive(Debug)]
struct Shared {
    codec: Codec,
    views: Views,
}

/// What an object is found and looked at by stands together, first.
#[repr(C)]
struct Inner {
    name: Box<str>,
    namespace: Arc<str>,
    slot: Slot,
    shared: Arc<Shared>,
    uid: Uid,
    version: Version,
    generation: i64,
    created: Moment,
    labels: Arc<Labels>,
    owners: Arc<[OwnerRef]>,
    /// What few objects have.
    rare: Option<Box<Rare>>,
    packed: Packed,
}

/// Who wrote an object, in one way, and when: an entry of `managedFields` without the fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WriterRef {
    /// The field manager.
    pub manager: Box<str>,
    /// `Apply` or `Update`.
    pub operation: Box<str>,
    /// The subresource that was written through; empty for the object itself.
    pub subresource: Box<str>,
    /// When.
    pub time: Option<Timestamp>,
}

/// Behind one pointer, which is none for most, unless writers are wanted.
#[derive(Clone)]
struct Rare {
    /// When its deletion was asked for.
    deleted: Moment,
    /// Who wrote it, where that was asked for.
    writers: Box<[WriterRef]>,
}

impl Rare {
    fn of(metadata: &Metadata<'_>) -> Option<Box<Self>> {
        let is_rare = metadata.deleted.is_some() || !metadata.writers.is_empty();
        is_rare.then(|| {
            let writers = metadata.writers.iter().map(Into::into).collect();
            Box::new(Self { deleted: metadata.deleted.into(), writers })
        })
    }
}

impl From<&Writer<'_>> for WriterRef {
    fn from(writer: &Writer<'_>) -> Self {
        Self {
            manager: writer.manager.as_ref().into(),
            operation: writer.operation.as_ref().into(),
            subresource: writer.subresource.as_ref().into(),
            time: writer.time,
        }
    }
}

impl<K> Object<K> {
    fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), view: PhantomData }
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef { namespace: &self.inner.namespace, name: &self.inner.name }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// The UID.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.inner.uid
    }

    /// The resource version.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.inner.version
    }

    /// The generation; 0 where the kind has none.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.inner.generation
    }

    /// When it was created.
    #[must_use]
    pub fn created(&self) -> Option<Timestamp> {
        self.inner.created.get()
    }

    /// When its deletion was asked for; `None` while it is to stay.
    #[must_use]
    pub fn deletion(&self) -> Option<Timestamp> {
        self.inner.rare.as_ref()?.deleted.get()
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.inner.labels
    }

    /// Who owns it.
    #[must_use]
    pub fn owners(&self) -> &[OwnerRef] {
        &self.inner.owners
    }

    /// The owner that manages it: of several owners, the controller.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.inner.owners.iter().find(|owner| owner.controller)
    }

    /// Who wrote it and when. Only where that was [asked for](crate::encoding::ManagedFields::Writers).
    #[must_use]
    pub fn writers(&self) -> &[WriterRef] {
        self.inner.rare.as_ref().map_or(&[], |rare| &rare.writers)
    }

    /// The API version: `v1`, `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.inner.shared.codec.api_version()
    }

    /// The kind: `Pod`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.inner.shared.codec.kind()
    }

    /// The encoding that it came in, and is kept in.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.inner.shared.codec.encoding()
    }

    /// The annotations, read from the bytes. They are not kept beside them: they are large, and seldom looked at.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn annotations(&self) -> Result<BTreeMap<String, String>, ViewError> {
        let owned = |metadata: Metadata<'_>| {
            let pairs = metadata.annotations.into_iter();
            pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
        };
        self.read(|stored| stored.metadata().map(owned))?
    }

    /// One annotation, read from the bytes.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn annotation(&self, key: &str) -> Result<Option<String>, ViewError> {
        let value = |metadata: Metadata<'_>| {
            let mut pairs = metadata.annotations.into_iter();
            pairs.find(|(each, _)| each == key).map(|(_, value)| value.into_owned())
        };
        self.read(|stored| stored.metadata().map(value))?
    }

    /// What must happen before it goes, read from the bytes.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn finalizers(&self) -> Result<Vec<String>, ViewError> {
        let owned = |metadata: Metadata<'_>| metadata.finalizers.into_iter().map(Into::into).collect();
        self.read(|stored| stored.metadata().map(owned))?
    }

    /// Lends the object's bytes, to be read by types that borrow from them.
    ///
    /// ```
    /// # use kube_informer::encoding::{Codec, Encoding, Rules};
    /// # use kube_informer::object::{Intake, Object};
    /// # let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default())?;
    /// # let pod = Intake::new(codec).object(br#"{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}"#)?;
    /// #[derive(serde::Deserialize)]
    /// struct Narrow<'a> {
    ///     #[serde(borrow)]
    ///     spec: Spec<'a>,
    /// }
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Spec<'a> {
    ///     node_name: &'a str,
    /// }
    /// let length = pod.read(|stored| stored.view::<Narrow>().map(|pod| pod.spec.node_name.len()))??;
    /// assert_eq!(length, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn read<R>(&self, read: impl FnOnce(Stored<'_>) -> R) -> Result<R, ViewError> {
        let codec = &self.inner.shared.codec;
        let read = |bytes: &[u8]| read(Stored { codec, bytes });
        self.inner.packed.unpack(read).map_err(ViewError::from)
    }

    /// What a JSON pointer names, such as `/spec/nodeName`; `None` where it names nothing. Nothing else is decoded.
    ///
    /// # Errors
    ///
    /// Where the text is not a JSON pointer, or what it names does not fit the type.
    pub fn pointer<T: DeserializeOwned>(&self, pointer: &str) -> Result<Option<T>, ViewError> {
        let pointer = Pointer::parse(pointer)?;
        self.read(|stored| stored.pointer(&pointer))?
    }

    /// The object as JSON, in one line, keys sorted: the same for equal objects, whatever encoding they came in.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn json(&self) -> Result<String, ViewError> {
        self.read(|stored| stored.json())?
    }

    /// The same object, seen as another type.
    #[must_use]
    pub fn cast<T>(&self) -> Object<T> {
        Object { inner: Arc::clone(&self.inner), view: PhantomData }
    }

    /// Has the processor fetch what is mostly read of an object, if it is not in its caches: where its view is, if it has one, and
    /// its metadata if not. Both would be too much: the fewer of them are read, the more of them are on their way at once.
    pub(crate) fn touch(&self) {
        let Inner { generation, labels, slot, .. } = &*self.inner;
        if black_box(slot.touch()).is_none() {
            black_box((generation, labels.len()));
        }
    }

    /// The same object, seen as another type; without another handle to it.
    pub(crate) fn into_cast<T>(self) -> Object<T> {
        Object { inner: self.inner, view: PhantomData }
    }

    /// Whether both are the same version of the same object, in the same place in memory.
    #[must_use]
    pub fn is_same<T>(&self, other: &Object<T>) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// How many have it.
    pub(crate) fn references(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// Does not keep it.
    pub(crate) fn downgrade(&self) -> WeakObject {
        WeakObject(Arc::downgrade(&self.inner))
    }

    /// The same for all that are best packed one after the other; 0 where nothing is known of that.
    pub(crate) fn kinship(&self) -> usize {
        self.inner.packed.kinship()
    }

    /// How many bytes are kept of it, and how many they are unpacked.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.inner.packed.packed_len(), self.inner.packed.plain_len())
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Object<K> {
    /// The object as a `K`: decoded now, or the same that others hold already.
    ///
    /// # Errors
    ///
    /// Where the object does not fit the type.
    pub fn view(&self) -> Result<Arc<K>, ViewError> {
        self.view_as()
    }
}

impl<K> Object<K> {
    fn view_as<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, ViewError> {
        let Shared { codec, views } = &*self.inner.shared;
        let weight = |_: &T| weight::<T>(codec.encoding(), self.inner.packed.plain_len());
        views.get_or_decode(&self.inner.slot, weight, || self.read(|stored| stored.view())?)
    }
}

/// What a decoded view takes, as far as it can be told without asking the allocator.
///
/// Typed pods of `k8s_openapi` were measured at five to six times their JSON, and at eleven times their protobuf. Narrow
/// types take less, and are thought heavier than they are: fewer of them are kept than could be, never more.
fn weight<K>(encoding: Encoding, plain: usize) -> usize {
    let times = match encoding {
        Encoding::Json => 6,
        Encoding::Protobuf => 11,
    };
    plain.saturating_mul(times).saturating_add(size_of::<K>())
}

/// The bytes of an object, lent by [`Object::read`].
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    codec: &'a Codec,
    bytes: &'a [u8],
}

impl<'a> Stored<'a> {
    /// The bytes themselves, in the object's encoding: a JSON document, or a protobuf message without an envelope.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The object as any type, which may borrow from the bytes.
    ///
    /// # Errors
    ///
    /// Where the object does not fit the type.
    pub fn view<T: Deserialize<'a>>(&self) -> Result<T, ViewError> {
        self.codec.view(self.bytes)
    }

    /// The metadata.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn metadata(&self) -> Result<Metadata<'a>, ViewError> {
        Ok(self.codec.metadata(self.bytes)?)
    }

    /// What a JSON pointer names.
    ///
    /// # Errors
    ///
    /// Where what it names does not fit the type.
    pub fn pointer<T: DeserializeOwned>(&self, pointer: &Pointer) -> Result<Option<T>, ViewError> {
        self.codec.pointer(self.bytes, pointer)
    }

    /// The object as JSON, in one line, keys sorted.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn json(&self) -> Result<String, ViewError> {
        self.codec.json(self.bytes)
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), view: PhantomData }
    }
}

/// Objects are equal if their content is, whatever encoding they came in, however they are packed, and in whatever order
/// their fields stand. Nothing is decoded where another name, UID or version tells them apart, or where their bytes are the
/// same. Only what is left is compared as JSON: as of one object that came in a list and, in other order, from a watch.
impl<K, T> PartialEq<Object<T>> for Object<K> {
    fn eq(&self, other: &Object<T>) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        if self.is_same(other) {
            return true;
        }
        if a.name != b.name || a.namespace != b.namespace || a.uid != b.uid || a.version != b.version {
            return false;
        }
        let (one, two) = (&a.shared.codec, &b.shared.codec);
        if one.kind() != two.kind() || one.api_version() != two.api_version() || one.rules() != two.rules() {
            return false;
        }
        if one.encoding() == two.encoding() {
            let equal = self.read(|x| other.read(|y| x.bytes == y.bytes));
            if matches!(equal, Ok(Ok(true))) {
                return true;
            }
        } else if !a.uid.is_empty() && !a.version.is_empty() {
            // A version is given once per object: what has the same UID and version is the same.
            return true;
        }
        matches!((self.json(), other.json()), (Ok(x), Ok(y)) if x == y)
    }
}

impl<K> Eq for Object<K> {}

impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("kind", &self.kind())
            .field("key", &format_args!("{}", self.key()))
            .field("version", self.version())
            .field("view", &type_name::<K>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
