//! An object's metadata from its message: `ObjectMeta` is field 1 of every kind that is an object.

use std::borrow::Cow;

use jiff::Timestamp;

use super::plan::Node;
use super::reader::{Reader, Value as Wire};
use super::text;
use crate::encoding::metadata::{Metadata, Owner, Writer};
use crate::encoding::{DecodeError, Fault, ObjectKey};

/// Reads the metadata of an object's message, without what the plan drops of it; the rest is jumped over.
pub(crate) fn metadata<'a>(
    object: &'a [u8],
    plan: &Node,
    writers: bool,
) -> Result<Metadata<'a>, DecodeError> {
    let (offset, out) = read(object, plan.below(1), writers)?;
    if out.name.is_empty() {
        return Err(DecodeError::new(Fault::NoName, offset, "a name in field 1 of the metadata"));
    }
    Ok(out)
}

/// Reads the metadata of what needs no name: a bookmark.
pub(crate) fn without_name(object: &[u8]) -> Result<Metadata<'_>, DecodeError> {
    read(object, None, false).map(|(_, metadata)| metadata)
}

/// The metadata, and where it begins.
fn read<'a>(
    object: &'a [u8],
    plan: Option<&Node>,
    writers: bool,
) -> Result<(usize, Metadata<'a>), DecodeError> {
    let Some((offset, bytes)) = find(object)? else {
        return Err(DecodeError::new(Fault::NoMetadata, 0, "metadata in field 1"));
    };
    let mut out = Metadata::default();
    object_meta(bytes, plan, writers, &mut out).map_err(|mut error| {
        error.offset += offset;
        error
    })?;
    Ok((offset, out))
}

/// The key of an object whose bytes are broken or cut off somewhere, in whatever order they stand.
///
/// It must not be wrong: there is none where the metadata breaks off before the namespace, which may then
/// be missing.
pub(crate) fn key(object: &[u8]) -> Option<ObjectKey> {
    let (mut name, mut namespace) = (Cow::Borrowed(""), None);
    // Metadata that is cut off is entered; what stands in it is read only where it is whole.
    let mut entries = Reader::lenient(object);
    while let Ok(Some(entry)) = entries.next() {
        let (1, Wire::Bytes(metadata)) = (entry.number, entry.value) else { continue };
        let mut fields = Reader::new(metadata);
        loop {
            match fields.next() {
                Ok(Some(field)) => match (field.number, field.value) {
                    (1, Wire::Bytes(bytes)) => name = text::string(bytes),
                    (3, Wire::Bytes(bytes)) => namespace = Some(text::string(bytes)),
                    _ => {}
                },
                Ok(None) => break,
                Err(_) if namespace.is_some() => break,
                Err(_) => return None,
            }
        }
    }
    let namespace = namespace.unwrap_or_default().into_owned();
    (!name.is_empty()).then(|| ObjectKey { namespace, name: name.into_owned() })
}

fn find(object: &[u8]) -> Result<Option<(usize, &[u8])>, DecodeError> {
    let mut reader = Reader::new(object);
    match reader.next()? {
        Some(entry) => match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => Ok(Some((entry.end - bytes.len(), bytes))),
            _ => Ok(None),
        },
        None => Ok(None),
    }
}

fn object_meta<'a>(
    bytes: &'a [u8],
    plan: Option<&Node>,
    writers: bool,
    out: &mut Metadata<'a>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        if let (17, true, Wire::Bytes(bytes)) = (entry.number, writers, entry.value) {
            // Kept beside the bytes that they are cut from.
            out.writers.push(writer(bytes)?);
            continue;
        }
        if let Some(plan) = plan {
            if plan.drops(entry.number) {
                continue;
            }
            if let Wire::Bytes(pair) = entry.value
                && plan.drops_entry(entry.number, pair)?
            {
                continue;
            }
        }
        match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => out.name = text::string(bytes),
            (3, Wire::Bytes(bytes)) => out.namespace = text::string(bytes),
            (5, Wire::Bytes(bytes)) => out.uid = text::string(bytes),
            (6, Wire::Bytes(bytes)) => out.resource_version = text::string(bytes),
            (7, Wire::Varint(value)) => out.generation = value as i64,
            (8, Wire::Bytes(bytes)) => out.created = time(bytes)?,
            (9, Wire::Bytes(bytes)) => out.deleted = time(bytes)?,
            (11, Wire::Bytes(bytes)) => out.labels.push(pair(bytes)?),
            (12, Wire::Bytes(bytes)) => out.annotations.push(pair(bytes)?),
            (13, Wire::Bytes(bytes)) => out.owners.push(owner(bytes)?),
            (14, Wire::Bytes(bytes)) => out.finalizers.push(text::string(bytes)),
            _ => {}
        }
    }
    Ok(())
}

/// A time, where it is one that a `Timestamp` can hold.
fn time(bytes: &[u8]) -> Result<Option<Timestamp>, DecodeError> {
    Ok(text::seconds(bytes)?.and_then(|seconds| Timestamp::from_second(seconds).ok()))
}

fn pair(bytes: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), DecodeError> {
    let (mut key, mut value) = Default::default();
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => key = text::string(bytes),
            (2, Wire::Bytes(bytes)) => value = text::string(bytes),
            _ => {}
        }
    }
    Ok((key, value))
}

fn owner(bytes: &[u8]) -> Result<Owner<'_>, DecodeError> {
    let mut out = Owner::default();
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => out.kind = text::string(bytes),
            (3, Wire::Bytes(bytes)) => out.name = text::string(bytes),
            (4, Wire::Bytes(bytes)) => out.uid = text::string(bytes),
            (5, Wire::Bytes(bytes)) => out.api_version = text::string(bytes),
            (6, Wire::Varint(value)) => out.controller = value != 0,
            (7, Wire::Varint(value)) => out.block_owner_deletion = value != 0,
            _ => {}
        }
    }
    Ok(out)
}

fn writer(bytes: &[u8]) -> Result<Writer<'_>, DecodeError> {
    let mut out = Writer::default();
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => out.manager = text::string(bytes),
            (2, Wire::Bytes(bytes)) => out.operation = text::string(bytes),
            (4, Wire::Bytes(bytes)) => out.time = time(bytes)?,
            (8, Wire::Bytes(bytes)) => out.subresource = text::string(bytes),
            _ => {}
        }
    }
    Ok(out)
}
