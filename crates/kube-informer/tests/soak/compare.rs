//! Whether a cache is what the server has.

use std::collections::BTreeMap;

use anyhow::Result;
use kube_informer::informer::Informer;
use serde_json::Value;

use crate::faults::Target;
use crate::world::{Kind, World};

/// An informer, and what it asks for.
pub(crate) struct Watched {
    pub(crate) informer: Informer,
    pub(crate) kind: Kind,
    /// All, where there are none.
    pub(crate) namespaces: Vec<String>,
    pub(crate) selector: Option<String>,
}

type Objects = BTreeMap<(String, String), Value>;

impl Watched {
    /// The paths that it asks for.
    fn collections(&self) -> Vec<String> {
        if self.namespaces.is_empty() {
            return vec![self.kind.collection(None)];
        }
        self.namespaces.iter().map(|namespace| self.kind.collection(Some(namespace))).collect()
    }

    pub(crate) fn targets(&self) -> Vec<Target> {
        let is_colored = self.selector.as_ref().is_some_and(|selector| selector.contains("color"));
        self.collections().into_iter().map(|collection| Target { collection, is_colored }).collect()
    }

    /// What the cache has and the server has not, or otherwise. Nobody may write any more, but for controllers, which
    /// end soon.
    pub(crate) async fn differences(&self, world: &World) -> Result<Vec<String>> {
        loop {
            let before = self.on_the_server(world).await?;
            let cached = self.in_the_cache()?;
            if before == self.on_the_server(world).await? {
                return Ok(self.compare(&before, &cached));
            }
        }
    }

    fn compare(&self, server: &Objects, cached: &Objects) -> Vec<String> {
        let keys = server.keys().chain(cached.keys().filter(|key| !server.contains_key(*key)));
        let differ = keys.filter(|key| server.get(*key) != cached.get(*key));
        let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let told = differ.map(|key| {
            let (server, cached) = (show(server.get(key)), show(cached.get(key)));
            format!("{:?} {key:?}: the server has {server}, the cache {cached}", self.informer)
        });
        told.collect()
    }

    async fn on_the_server(&self, world: &World) -> Result<Objects> {
        let mut objects = Objects::new();
        for collection in self.collections() {
            for mut item in world.list(&collection, self.selector.as_deref()).await? {
                // Lists do not say it of each item; informers do not keep it.
                item["apiVersion"] = self.kind.api_version().into();
                item["kind"] = self.kind.name().into();
                if let Some(metadata) = item["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                let text = |name: &str| item["metadata"][name].as_str().unwrap_or_default().to_owned();
                objects.insert((text("namespace"), text("name")), item);
            }
        }
        Ok(objects)
    }

    /// Uid and version are in the JSON; that the metadata says the same is looked at, too.
    fn in_the_cache(&self) -> Result<Objects> {
        let mut objects = Objects::new();
        for object in self.informer.list() {
            let mut json: Value = serde_json::from_str(&object.json()?)?;
            let metadata = &mut json["metadata"];
            let said = (object.uid().to_string(), object.version().to_string());
            if metadata["uid"] != said.0.as_str() || metadata["resourceVersion"] != said.1.as_str() {
                metadata["said"] = format!("{said:?}").into();
            }
            objects.insert((object.namespace().to_owned(), object.name().to_owned()), json);
        }
        Ok(objects)
    }
}
