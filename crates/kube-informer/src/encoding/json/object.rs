//! One object: its type and metadata are read, the rest is passed, and what the rules cut is noted.
//!
//! A `null` is what an absent field is, as the server's own decoder has it.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::cut::Drops;
use super::fault::{Fail, Scan, Why};
use super::reader::{Next, Reader};
use crate::encoding::metadata::{Metadata, Owner, Writer};
use crate::encoding::{ManagedFields, Rules};

/// What was read of an object.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    pub(super) metadata: Metadata<'a>,
    /// Whether there is an `apiVersion`.
    pub(super) has_api_version: bool,
    /// Whether there is a `kind`.
    pub(super) has_kind: bool,
    /// Where its metadata stands.
    metadata_at: Option<usize>,
}

/// Reads an object to its end.
pub(super) fn read<'a>(reader: &mut Reader<'a>, rules: &Rules) -> Scan<Object<'a>> {
    let start = reader.at();
    let mut object = Object::default();
    let drops = Drops::new(rules.dropped());
    if reader.peek() == b'{' {
        reader.members(|reader, key| object.member(reader, &key, drops.under(&key), rules.managed_fields))?;
        reader.end()?;
    } else {
        // Only what is JSON at all is of a wrong type.
        let wrong = reader.wrong("the document", "an object");
        reader.skip()?;
        reader.end()?;
        return Err(wrong);
    }
    object.check(start)?;
    Ok(object)
}

/// Reads an object that was checked before, no further than to the last of its type and metadata.
pub(super) fn read_again<'a>(reader: &mut Reader<'a>) -> Scan<Object<'a>> {
    let start = reader.at();
    let mut object = Object::default();
    if reader.peek() != b'{' {
        return Err(reader.wrong("the document", "an object"));
    }
    reader.members(|reader, key| {
        let next = object.member(reader, &key, Drops::new(&[]), ManagedFields::Keep)?;
        let complete = object.has_api_version && object.has_kind && object.metadata_at.is_some();
        Ok(if complete { Next::Done } else { next })
    })?;
    object.check(start)?;
    Ok(object)
}

impl<'a> Object<'a> {
    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        drops: Drops<'_>,
        managed_fields: ManagedFields,
    ) -> Scan<Next> {
        match key {
            "apiVersion" => {
                self.metadata.api_version = reader.string("apiVersion")?;
                self.has_api_version = true;
            }
            "kind" => {
                self.metadata.kind = reader.string("kind")?;
                self.has_kind = true;
            }
            "metadata" => match reader.peek() {
                b'{' => {
                    self.metadata_at = Some(reader.at());
                    let metadata = &mut self.metadata;
                    reader.members(|reader, key| {
                        field(metadata, reader, &key, drops.under(&key), managed_fields)
                    })?;
                }
                b'n' => reader.null()?,
                _ => return Err(reader.wrong("metadata", "an object")),
            },
            _ => return pass(reader, drops),
        }
        Ok(Next::Keep)
    }

    /// What the grammar cannot say. `start` is where the object begins.
    fn check(&self, start: usize) -> Scan<()> {
        let metadata = &self.metadata;
        if metadata.kind == "Status" && metadata.api_version == "v1" {
            return Err(Fail { at: start, why: Why::Status });
        }
        let at = self.metadata_at.ok_or(Fail { at: start, why: Why::NoMetadata })?;
        if metadata.name.is_empty() {
            return Err(Fail { at, why: Why::NoName });
        }
        Ok(())
    }
}

/// One field of the metadata.
fn field<'a>(
    metadata: &mut Metadata<'a>,
    reader: &mut Reader<'a>,
    key: &str,
    drops: Drops<'_>,
    managed_fields: ManagedFields,
) -> Scan<Next> {
    if key == "managedFields" && managed_fields != ManagedFields::Keep {
        if managed_fields == ManagedFields::Writers {
            metadata.writers = reader.aside(writers)?;
        } else {
            reader.aside(Reader::skip)?;
        }
        return Ok(Next::Cut);
    }
    if drops.here() {
        return pass(reader, drops);
    }
    match key {
        "name" => metadata.name = reader.string("metadata.name")?,
        "namespace" => metadata.namespace = reader.string("metadata.namespace")?,
        "uid" => metadata.uid = reader.string("metadata.uid")?,
        "resourceVersion" => metadata.resource_version = reader.string("metadata.resourceVersion")?,
        "generation" => metadata.generation = whole_number(reader, "metadata.generation")?,
        "creationTimestamp" => metadata.created = time(reader, "metadata.creationTimestamp")?,
        "deletionTimestamp" => metadata.deleted = time(reader, "metadata.deletionTimestamp")?,
        "labels" => metadata.labels = map(reader, "metadata.labels", drops)?,
        "annotations" => metadata.annotations = map(reader, "metadata.annotations", drops)?,
        "ownerReferences" => metadata.owners = list(reader, "metadata.ownerReferences", owner)?,
        "finalizers" => {
            let name = "metadata.finalizers";
            metadata.finalizers = list(reader, name, |reader| reader.string(name))?;
        }
        _ => return pass(reader, drops),
    }
    Ok(Next::Keep)
}

/// Passes a value, without what is dropped of it. Dropped fields lead through objects only.
fn pass(reader: &mut Reader<'_>, drops: Drops<'_>) -> Scan<Next> {
    if drops.here() {
        reader.aside(Reader::skip)?;
        return Ok(Next::Cut);
    }
    if drops.is_empty() || reader.peek() != b'{' {
        reader.skip()?;
    } else {
        reader.members(|reader, key| pass(reader, drops.under(&key)))?;
    }
    Ok(Next::Keep)
}

fn owner<'a>(reader: &mut Reader<'a>) -> Scan<Owner<'a>> {
    let mut owner = Owner::default();
    fields(reader, "metadata.ownerReferences", |reader, key| {
        match key {
            "apiVersion" => owner.api_version = reader.string("metadata.ownerReferences.apiVersion")?,
            "kind" => owner.kind = reader.string("metadata.ownerReferences.kind")?,
            "name" => owner.name = reader.string("metadata.ownerReferences.name")?,
            "uid" => owner.uid = reader.string("metadata.ownerReferences.uid")?,
            "controller" => owner.controller = flag(reader, "metadata.ownerReferences.controller")?,
            "blockOwnerDeletion" => {
                owner.block_owner_deletion = flag(reader, "metadata.ownerReferences.blockOwnerDeletion")?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(owner)
}

fn writers<'a>(reader: &mut Reader<'a>) -> Scan<Vec<Writer<'a>>> {
    list(reader, "metadata.managedFields", |reader| {
        let mut writer = Writer::default();
        fields(reader, "metadata.managedFields", |reader, key| {
            match key {
                "manager" => writer.manager = reader.string("metadata.managedFields.manager")?,
                "operation" => writer.operation = reader.string("metadata.managedFields.operation")?,
                "subresource" => writer.subresource = reader.string("metadata.managedFields.subresource")?,
                "time" => writer.time = time(reader, "metadata.managedFields.time")?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Ok(writer)
    })
}

/// An object of which nothing is cut.
fn fields<'a>(
    reader: &mut Reader<'a>,
    name: &'static str,
    mut each: impl FnMut(&mut Reader<'a>, &str) -> Scan<()>,
) -> Scan<()> {
    match reader.peek() {
        b'{' => reader.members(|reader, key| each(reader, &key).map(|()| Next::Keep)),
        b'n' => reader.null(),
        _ => Err(reader.wrong(name, "an object")),
    }
}

/// An array of which nothing is cut.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    name: &'static str,
    mut item: impl FnMut(&mut Reader<'a>) -> Scan<T>,
) -> Scan<Vec<T>> {
    let mut list = Vec::new();
    match reader.peek() {
        b'[' => reader.items(|reader| {
            list.push(item(reader)?);
            Ok(Next::Keep)
        })?,
        b'n' => reader.null()?,
        _ => return Err(reader.wrong(name, "an array")),
    }
    Ok(list)
}

/// An object of strings, without those that are dropped.
fn map<'a>(
    reader: &mut Reader<'a>,
    name: &'static str,
    drops: Drops<'_>,
) -> Scan<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
    let mut map = Vec::new();
    match reader.peek() {
        b'{' => reader.members(|reader, key| {
            if drops.under(&key).here() {
                return pass(reader, drops.under(&key));
            }
            map.push((key, reader.string(name)?));
            Ok(Next::Keep)
        })?,
        b'n' => reader.null()?,
        _ => return Err(reader.wrong(name, "an object")),
    }
    Ok(map)
}

fn flag(reader: &mut Reader<'_>, name: &'static str) -> Scan<bool> {
    let flag = reader.peek() == b't';
    match reader.peek() {
        b't' | b'f' | b'n' => reader.skip().map(|()| flag),
        _ => Err(reader.wrong(name, "true or false")),
    }
}

fn whole_number(reader: &mut Reader<'_>, name: &'static str) -> Scan<i64> {
    let wrong = reader.wrong(name, "a whole number");
    match reader.peek() {
        b'-' | b'0'..=b'9' => {
            reader.skip()?;
            let text = std::str::from_utf8(reader.since(wrong.at)).unwrap_or_default();
            if text.contains(['.', 'e', 'E']) {
                return Err(wrong);
            }
            text.parse().map_err(|_| Fail { at: wrong.at, why: Why::Range(name) })
        }
        b'n' => reader.null().map(|()| 0),
        _ => Err(wrong),
    }
}

/// A time; none where it is beyond what a `Timestamp` can hold, which ends a day before the year 9999 does.
fn time(reader: &mut Reader<'_>, name: &'static str) -> Scan<Option<Timestamp>> {
    if reader.peek() == b'n' {
        return reader.null().map(|()| None);
    }
    let at = reader.at();
    let text = reader.string(name)?;
    let beyond = |text: &str| text.strip_suffix('Z').is_some_and(|text| text.parse::<DateTime>().is_ok());
    match text.parse() {
        Ok(time) => Ok(Some(time)),
        Err(_) if beyond(&text) => Ok(None),
        Err(_) => Err(Fail { at, why: Why::Time(name) }),
    }
}
