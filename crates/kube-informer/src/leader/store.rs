//! The lease on the server.

use kube_client::api::PostParams;
use kube_client::core::DynamicObject;
use kube_client::{Api, Client, Error};
use tokio::time::{Instant, timeout_at};

use super::machine::Trouble;
use super::record::{self, Record};
use crate::connect::cause;

pub(super) struct Store {
    leases: Api<DynamicObject>,
    blank: Record,
    name: String,
}

impl Store {
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let leases = Api::namespaced_with(client, namespace, &record::resource());
        Self { leases, blank: Record::new(namespace, name), name: name.to_owned() }
    }

    /// The lease as it is created.
    pub(super) fn blank(&self) -> Record {
        self.blank.clone()
    }

    pub(super) async fn read(&self, before: Instant) -> Result<Option<Record>, Trouble> {
        match within(before, self.leases.get(&self.name)).await {
            Ok(record) => Ok(Some(record)),
            Err(Trouble::Missing) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    pub(super) async fn create(&self, record: &Record, before: Instant) -> Result<Record, Trouble> {
        match within(before, self.leases.create(&PostParams::default(), &record.0)).await {
            // The namespace: reading it again would not help.
            Err(Trouble::Missing) => Err(Trouble::Failed("the namespace is not there: create it".to_owned())),
            result => result,
        }
    }

    pub(super) async fn update(&self, record: &Record, before: Instant) -> Result<Record, Trouble> {
        within(before, self.leases.replace(&self.name, &PostParams::default(), &record.0)).await
    }
}

async fn within(
    before: Instant,
    request: impl Future<Output = Result<DynamicObject, Error>>,
) -> Result<Record, Trouble> {
    let begun = Instant::now();
    match timeout_at(before, request).await {
        Ok(Ok(object)) => Ok(Record(object)),
        Ok(Err(Error::Api(status))) if status.code == 404 => Err(Trouble::Missing),
        Ok(Err(Error::Api(status))) if status.code == 409 => Err(Trouble::Conflict),
        Ok(Err(error)) => Err(Trouble::Failed(cause::of_request(&error))),
        Err(_) => {
            let patience = before.saturating_duration_since(begun).as_secs_f64();
            Err(Trouble::Failed(format!("no answer within {patience:.1}s")))
        }
    }
}
