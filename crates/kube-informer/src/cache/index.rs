//! What objects are found by beside their keys.
//!
//! An index gives every object any number of values; asked for a value, it knows the objects that have it. Labels, owners
//! and JSON pointers are read without decoding the object. Any other value comes from a function of the object or of a
//! view of it. A function may fail, and may panic: then the object has no values in this index, and it is counted and
//! reported ([`Cache::index_faults`](super::Cache::index_faults)).
//!
//! Functions are called by the one who writes the cache, once for every new version. They may read the cache; they must
//! not add or remove indexes.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::encoding::{Pointer, PointerError};
use crate::object::Object;

/// What objects are found by, and the name under which it is asked for.
///
/// ```
/// use kube_informer::cache::Index;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let by_app = Index::label("app");
/// let by_node = Index::pointer("/spec/nodeName")?;
/// let by_image = Index::view("image", |pod: &Pod| {
///     let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
///     Ok::<_, std::convert::Infallible>(containers.filter_map(|each| each.image.clone()).collect())
/// });
/// assert_eq!([by_app.name(), by_node.name(), by_image.name()], ["label:app", "/spec/nodeName", "image"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Index {
    name: Arc<str>,
    by: By,
}

type Function = dyn Fn(&Object) -> Result<Vec<String>, String> + Send + Sync;

#[derive(Clone)]
pub(super) enum By {
    Label(Box<str>),
    Owner,
    Controller,
    Pointer(Pointer),
    Function(Arc<Function>),
}

impl Index {
    /// Whether both find the same. Of functions, that cannot be told.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.by, &other.by) {
            (By::Label(a), By::Label(b)) => a == b,
            (By::Owner, By::Owner) | (By::Controller, By::Controller) => true,
            (By::Pointer(a), By::Pointer(b)) => a == b,
            (By::Function(a), By::Function(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// By the value of a label. It is named `label:` and the key; selectors that ask for one value of the key use it.
    #[must_use]
    pub fn label(key: &str) -> Self {
        Self { name: format!("label:{key}").into(), by: By::Label(key.into()) }
    }

    /// By the UID of every owner. It is named `owner`; [`Query::owned_by`](super::Query::owned_by) uses it.
    #[must_use]
    pub fn owner() -> Self {
        Self { name: "owner".into(), by: By::Owner }
    }

    /// By the UID of the owner that is the controller. It is named `controller`;
    /// [`Query::controlled_by`](super::Query::controlled_by) uses it.
    #[must_use]
    pub fn controller() -> Self {
        Self { name: "controller".into(), by: By::Controller }
    }

    /// By what a JSON pointer names: a text, a number, `true` or `false`, or each of a list of these. It has the pointer's
    /// name. Objects where it names nothing, or `null`, have no value.
    ///
    /// # Errors
    ///
    /// Where the text is not a JSON pointer.
    pub fn pointer(pointer: &str) -> Result<Self, PointerError> {
        Ok(Self { name: pointer.into(), by: By::Pointer(Pointer::parse(pointer)?) })
    }

    /// By a function of a view. An object that does not fit the type counts as a failure of the function.
    #[must_use]
    pub fn view<K, E>(
        name: &str,
        function: impl Fn(&K) -> Result<Vec<String>, E> + Send + Sync + 'static,
    ) -> Self
    where
        K: DeserializeOwned + Send + Sync + 'static,
        E: fmt::Display,
    {
        let function = move |object: &Object| {
            let view = object.cast::<K>().view().map_err(|error| error.to_string())?;
            function(&view).map_err(|error| error.to_string())
        };
        Self { name: name.into(), by: By::Function(Arc::new(function)) }
    }

    /// By a function of the object.
    #[must_use]
    pub fn object<E: fmt::Display>(
        name: &str,
        function: impl Fn(&Object) -> Result<Vec<String>, E> + Send + Sync + 'static,
    ) -> Self {
        let function = move |object: &Object| function(object).map_err(|error| error.to_string());
        Self { name: name.into(), by: By::Function(Arc::new(function)) }
    }

    /// The same index under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn by(&self) -> &By {
        &self.by
    }

    /// The values of an object, sorted, each once.
    pub(super) fn values<'a>(&self, object: &'a Object) -> Result<Vec<Cow<'a, str>>, String> {
        let mut values: Vec<Cow<'a, str>> = match &self.by {
            By::Label(_) | By::Owner | By::Controller => {
                self.by.metadata(object).map(Cow::Borrowed).collect()
            }
            By::Pointer(pointer) => {
                let found = object.read(|stored| stored.pointer::<Value>(pointer));
                let found = found.flatten().map_err(|error| error.to_string())?;
                texts(found.unwrap_or_default())?.into_iter().map(Cow::Owned).collect()
            }
            By::Function(function) => {
                // The function is a stranger's, and sees only what cannot be changed: nothing is left half done.
                let called = catch_unwind(AssertUnwindSafe(|| function(object)));
                let values = called.map_err(|panic| format!("panicked: {}", words(&*panic)))??;
                values.into_iter().map(Cow::Owned).collect()
            }
        };
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

impl By {
    /// Whether the values of an object can be told again at any time, so that they need not be kept.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(self, Self::Label(_) | Self::Owner | Self::Controller)
    }

    /// The values that are in the metadata.
    pub(super) fn metadata<'a>(&self, object: &'a Object) -> impl Iterator<Item = &'a str> {
        let label = match self {
            Self::Label(key) => object.labels().get(key),
            _ => None,
        };
        let owners = match self {
            Self::Owner | Self::Controller => object.owners(),
            _ => &[],
        };
        let any = matches!(self, Self::Owner);
        let owners = owners.iter().filter(move |owner| any || owner.controller).map(|owner| &*owner.uid);
        // Of several controllers, which no server lets be, the first counts, as for the object.
        label.into_iter().chain(owners.take(if any { usize::MAX } else { 1 }))
    }

    /// Whether two versions surely have the same values; a cheap question.
    pub(super) fn is_unchanged(&self, old: &Object, new: &Object) -> bool {
        match self {
            // Equal sets are shared: mostly, no text is looked at.
            Self::Label(key) => {
                ptr::eq(old.labels(), new.labels()) || old.labels().get(key) == new.labels().get(key)
            }
            Self::Owner | Self::Controller => {
                ptr::eq(old.owners(), new.owners()) || self.metadata(old).eq(self.metadata(new))
            }
            Self::Pointer(_) | Self::Function(_) => false,
        }
    }
}

/// What a JSON value is found by.
fn texts(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                match item {
                    Value::Null => {}
                    Value::Array(_) | Value::Object(_) => {
                        return Err("it names a list with lists or objects in it".to_owned());
                    }
                    scalar => values.push(text(scalar)),
                }
            }
            Ok(values)
        }
        Value::Object(_) => Err("it names an object, not a text, a number or a list of these".to_owned()),
        scalar => Ok(vec![text(scalar)]),
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("name", &self.name).finish_non_exhaustive()
    }
}
