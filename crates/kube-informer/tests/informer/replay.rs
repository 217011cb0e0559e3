//! A handler that knows what there is only by what it is told, and whether that makes sense.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kube_informer::informer::{Delivery, Event, Informer, Registration};
use serde_json::Value;

/// What one registration was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// UID and version by key.
    pub(crate) known: BTreeMap<String, (String, String)>,
    pub(crate) added: u64,
    pub(crate) initial: u64,
    pub(crate) updated: u64,
    pub(crate) resyncs: u64,
    pub(crate) deleted: u64,
    /// Of those deleted, the ones that were only found missing.
    pub(crate) found_missing: Vec<String>,
    pub(crate) gaps: u64,
    /// What does not follow from what was told before.
    wrong: Vec<String>,
}

/// See the module.
pub(crate) struct Replay {
    told: Arc<Mutex<Told>>,
    pub(crate) registration: Registration,
}

impl Replay {
    pub(crate) fn of<K: Send + 'static>(informer: &Informer<K>, delivery: Delivery) -> Self {
        let told = Arc::<Mutex<Told>>::default();
        let tell = Arc::clone(&told);
        let registration = informer
            .subscribe()
            .delivery(delivery)
            .name("replay")
            .on(move |event| tell.lock().unwrap().hear(event));
        Self { told, registration }
    }

    /// One of each kind of delivery.
    pub(crate) fn both<K: Send + 'static>(informer: &Informer<K>) -> [Self; 2] {
        [Self::of(informer, Delivery::Latest), Self::of(informer, Delivery::Every(1_000))]
    }

    pub(crate) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }

    /// Whether it knows what the cache has.
    pub(crate) fn knows<K>(&self, informer: &Informer<K>) -> bool {
        let now = informer.list().iter();
        let now = now.map(|object| {
            (object.key().to_string(), (object.uid().to_string(), object.version().to_string()))
        });
        self.told().known == now.collect()
    }

    pub(crate) fn assert_sound(&self) {
        let told = self.told();
        assert!(told.wrong.is_empty(), "{:#?}", told.wrong);
    }
}

impl Told {
    fn hear<K>(&mut self, event: Event<K>) {
        let identity = |object: &kube_informer::object::Object<K>| {
            (object.uid().to_string(), object.version().to_string())
        };
        let key = event.object().map(|object| object.key().to_string()).unwrap_or_default();
        let known = self.known.get(&key).cloned();
        match event {
            Event::Added { new, initial } => {
                self.added += 1;
                self.initial += u64::from(initial);
                if known.is_some() {
                    self.wrong.push(format!("{key} was added, and had been"));
                }
                self.known.insert(key, identity(&new));
            }
            Event::Updated { old, new, resync } => {
                *(if resync { &mut self.resyncs } else { &mut self.updated }) += 1;
                if known.as_ref() != Some(&identity(&old)) {
                    self.wrong.push(format!("{key} was changed from {:?}, not {known:?}", identity(&old)));
                }
                if resync != old.is_same(&new) {
                    self.wrong.push(format!("{key} was said again as changed, or the other way round"));
                }
                self.known.insert(key, identity(&new));
            }
            Event::Deleted { last, certain } => {
                self.deleted += 1;
                if known.is_none_or(|(uid, _)| uid != identity(&last).0) {
                    self.wrong.push(format!("{key} was deleted, and was not there"));
                }
                if !certain {
                    self.found_missing.push(key.clone());
                }
                self.known.remove(&key);
            }
            Event::Gap { .. } => {
                self.gaps += 1;
                self.known.clear();
            }
            other => self.wrong.push(format!("{:?} is not known here", std::mem::discriminant(&other))),
        }
    }
}

/// What a cache has, by key, as JSON.
pub(crate) fn cached<K>(informer: &Informer<K>) -> BTreeMap<String, Value> {
    let object = |object: kube_informer::object::Object<K>| {
        (object.key().to_string(), serde_json::from_str(&object.json().unwrap()).unwrap())
    };
    informer.list().iter().map(object).collect()
}
