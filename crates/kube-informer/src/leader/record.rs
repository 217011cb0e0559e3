//! A lease as it is on the server: JSON, of which a few fields are read and changed, and all others stay.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube_client::core::{ApiResource, DynamicObject};
use serde_json::{Map, Value};

/// A version of the lease.
#[derive(Debug, Clone)]
pub(super) struct Record(pub(super) DynamicObject);

impl Record {
    /// A lease that nobody has.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self(DynamicObject::new(name, &resource()).within(namespace))
    }

    /// Who has it; `None` if nobody does.
    pub(super) fn holder(&self) -> Option<&str> {
        self.field("holderIdentity")?.as_str().filter(|holder| !holder.is_empty())
    }

    /// How long it is theirs after each renewal, where it says so.
    pub(super) fn duration(&self) -> Option<Duration> {
        let seconds = self.field("leaseDurationSeconds")?.as_u64().filter(|seconds| *seconds > 0)?;
        // More does not fit the field, and would not fit the clock.
        Some(Duration::from_secs(seconds.min(u64::from(i32::MAX.unsigned_abs()))))
    }

    /// When its holder got it, by the holder's clock. Here it only tells one time from another.
    pub(super) fn acquired(&self) -> Option<Timestamp> {
        self.field("acquireTime")?.as_str()?.parse().ok()
    }

    /// Whether nobody wrote to it in between. What is beside the spec does not count.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.0.data.get("spec") == other.0.data.get("spec")
    }

    /// Taken by somebody.
    pub(super) fn taken(mut self, by: &str, seconds: i32, wall: Timestamp) -> Self {
        let exists = self.0.metadata.resource_version.is_some();
        let before = self.field("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let transitions = i32::try_from(before).unwrap_or_default().saturating_add(i32::from(exists));
        let spec = self.spec();
        spec.insert("holderIdentity".to_owned(), by.into());
        spec.insert("leaseDurationSeconds".to_owned(), seconds.into());
        spec.insert("acquireTime".to_owned(), time(wall));
        spec.insert("renewTime".to_owned(), time(wall));
        spec.insert("leaseTransitions".to_owned(), transitions.into());
        self
    }

    /// Renewed by its holder.
    pub(super) fn renewed(mut self, seconds: i32, wall: Timestamp) -> Self {
        let spec = self.spec();
        spec.insert("leaseDurationSeconds".to_owned(), seconds.into());
        spec.insert("renewTime".to_owned(), time(wall));
        self
    }

    /// Given back by its holder, as client-go does it.
    pub(super) fn released(mut self, wall: Timestamp) -> Self {
        let spec = self.spec();
        spec.insert("holderIdentity".to_owned(), "".into());
        spec.insert("leaseDurationSeconds".to_owned(), 1.into());
        spec.insert("acquireTime".to_owned(), time(wall));
        spec.insert("renewTime".to_owned(), time(wall));
        self
    }

    /// The same as something that is to be created: without what the server gave it.
    pub(super) fn anew(mut self) -> Self {
        let meta = &mut self.0.metadata;
        (meta.resource_version, meta.uid, meta.creation_timestamp) = (None, None, None);
        (meta.deletion_timestamp, meta.managed_fields, meta.generation) = (None, None, None);
        self
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.0.data.get("spec")?.get(name)
    }

    /// The spec, to be changed.
    fn spec(&mut self) -> &mut Map<String, Value> {
        object(object(&mut self.0.data).entry("spec").or_insert(Value::Null))
    }
}

/// Something as a JSON object; what is none becomes one.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made one above")
}

pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// The time as leases have it: with microseconds.
fn time(wall: Timestamp) -> Value {
    serde_json::to_value(MicroTime(wall)).unwrap_or_default()
}

/// The time to the microsecond, as it comes back.
pub(super) fn to_microsecond(wall: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall)
}
