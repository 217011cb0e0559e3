//! An object's metadata, read from its bytes without decoding the rest.
//!
//! Everything is lent from the bytes where they hold it literally, and owned only where they do not
//! (an escape in a JSON string, invalid UTF-8 in protobuf).

use std::borrow::Cow;

use jiff::Timestamp;

/// What `metadata` says, and the object's type. Absent strings are empty, absent lists have no items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// `v1`, `apps/v1`. Empty where the bytes do not say (items of a typed list).
    pub api_version: Cow<'a, str>,
    /// `Pod`. Empty where the bytes do not say.
    pub kind: Cow<'a, str>,
    /// The object's name.
    pub name: Cow<'a, str>,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// Its UID.
    pub uid: Cow<'a, str>,
    /// Its resource version.
    pub resource_version: Cow<'a, str>,
    /// Its generation; 0 where there is none.
    pub generation: i64,
    /// When it was created. None also where that is beyond what a timestamp can hold.
    pub created: Option<Timestamp>,
    /// When its deletion was asked for.
    pub deleted: Option<Timestamp>,
    /// Its labels, in the order of the bytes.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Its annotations, in the order of the bytes.
    pub annotations: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Who owns it.
    pub owners: Vec<Owner<'a>>,
    /// What must happen before it goes.
    pub finalizers: Vec<Cow<'a, str>>,
    /// Who wrote it; filled only where [`ManagedFields`](super::ManagedFields) asks for them.
    pub writers: Vec<Writer<'a>>,
}

/// One owner reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Owner<'a> {
    /// The owner's API version.
    pub api_version: Cow<'a, str>,
    /// The owner's kind.
    pub kind: Cow<'a, str>,
    /// The owner's name.
    pub name: Cow<'a, str>,
    /// The owner's UID.
    pub uid: Cow<'a, str>,
    /// Whether it is the managing controller.
    pub controller: bool,
    /// Whether the owner cannot go before this object does.
    pub block_owner_deletion: bool,
}

/// Who wrote to the object last, in one way: an entry of `managedFields` without the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: Cow<'a, str>,
    /// `Apply` or `Update`.
    pub operation: Cow<'a, str>,
    /// The subresource that was written through; empty for the object itself.
    pub subresource: Cow<'a, str>,
    /// When.
    pub time: Option<Timestamp>,
}

fn owned<'b>(text: Cow<'_, str>) -> Cow<'b, str> {
    Cow::Owned(text.into_owned())
}

fn owned_pairs<'b>(pairs: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Vec<(Cow<'b, str>, Cow<'b, str>)> {
    pairs.into_iter().map(|(key, value)| (owned(key), owned(value))).collect()
}

impl Metadata<'_> {
    /// The same, independent of the bytes that it was read from.
    #[must_use]
    pub fn into_owned<'b>(self) -> Metadata<'b> {
        Metadata {
            api_version: owned(self.api_version),
            kind: owned(self.kind),
            name: owned(self.name),
            namespace: owned(self.namespace),
            uid: owned(self.uid),
            resource_version: owned(self.resource_version),
            generation: self.generation,
            created: self.created,
            deleted: self.deleted,
            labels: owned_pairs(self.labels),
            annotations: owned_pairs(self.annotations),
            owners: self.owners.into_iter().map(Owner::into_owned).collect(),
            finalizers: self.finalizers.into_iter().map(owned).collect(),
            writers: self.writers.into_iter().map(Writer::into_owned).collect(),
        }
    }
}

impl Owner<'_> {
    fn into_owned<'b>(self) -> Owner<'b> {
        let Self { controller, block_owner_deletion, .. } = self;
        let (api_version, kind) = (owned(self.api_version), owned(self.kind));
        Owner {
            api_version,
            kind,
            name: owned(self.name),
            uid: owned(self.uid),
            controller,
            block_owner_deletion,
        }
    }
}

impl Writer<'_> {
    fn into_owned<'b>(self) -> Writer<'b> {
        Writer {
            manager: owned(self.manager),
            operation: owned(self.operation),
            subresource: owned(self.subresource),
            time: self.time,
        }
    }
}
