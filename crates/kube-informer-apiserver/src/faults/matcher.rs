//! Which requests, and which events, a fault is meant for.
//!
//! A matcher starts from a kind of request and is narrowed by each further
//! call: all conditions must hold.

use std::fmt;
use std::sync::Arc;

use http::Method;

use super::event::WatchEvent;
use super::transcript::{Request, Verb};

/// Which requests a fault is meant for.
#[derive(Clone)]
pub struct Match {
    conditions: Vec<Condition<Request>>,
}

/// Which events of a watch a fault is meant for.
#[derive(Clone)]
pub struct Events {
    conditions: Vec<Condition<WatchEvent>>,
    pub(crate) skip: u64,
    pub(crate) at_most: Option<u64>,
}

type Condition<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

impl Match {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self { conditions: Vec::new() }
    }

    /// Every watch.
    #[must_use]
    pub fn watch() -> Self {
        Self::any().verb(Verb::Watch)
    }

    /// Every watch: the same as [`Match::watch`], where nothing narrows it.
    #[must_use]
    pub fn any_watch() -> Self {
        Self::watch()
    }

    /// Every list of a collection.
    #[must_use]
    pub fn list() -> Self {
        Self::any().verb(Verb::List)
    }

    /// Everything that is read but neither listed nor watched.
    #[must_use]
    pub fn get() -> Self {
        Self::any().verb(Verb::Get)
    }

    /// Everything that changes something.
    #[must_use]
    pub fn write() -> Self {
        Self::any().when(|request| {
            matches!(request.verb(), Verb::Create | Verb::Update | Verb::Patch | Verb::Delete)
        })
    }

    /// Only this verb.
    #[must_use]
    pub fn verb(self, verb: Verb) -> Self {
        self.when(move |request| request.verb() == verb)
    }

    /// Only this method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        self.when(move |request| request.method == method)
    }

    /// Only this path.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.when(move |request| request.path == path)
    }

    /// Only paths that start so.
    #[must_use]
    pub fn path_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.when(move |request| request.path.starts_with(&prefix))
    }

    /// Only paths that contain this.
    #[must_use]
    pub fn path_contains(self, part: impl Into<String>) -> Self {
        let part = part.into();
        self.when(move |request| request.path.contains(&part))
    }

    /// Only where the query has this parameter with this value.
    #[must_use]
    pub fn param(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.when(move |request| request.param(&name).as_deref() == Some(&value))
    }

    /// Only where the query does not have this parameter.
    #[must_use]
    pub fn without_param(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.when(move |request| request.param(&name).is_none())
    }

    /// Only from this version.
    #[must_use]
    pub fn resource_version(self, version: impl Into<String>) -> Self {
        self.param("resourceVersion", version)
    }

    /// Only streaming lists, or only what is none.
    #[must_use]
    pub fn send_initial_events(self, wanted: bool) -> Self {
        self.when(move |request| {
            matches!(request.param("sendInitialEvents").as_deref(), Some("true" | "1")) == wanted
        })
    }

    /// Only with this label selector.
    #[must_use]
    pub fn label_selector(self, selector: impl Into<String>) -> Self {
        self.param("labelSelector", selector)
    }

    /// Only with this field selector.
    #[must_use]
    pub fn field_selector(self, selector: impl Into<String>) -> Self {
        self.param("fieldSelector", selector)
    }

    /// Only where this holds.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// True if the request is meant.
    #[must_use]
    pub fn matches(&self, request: &Request) -> bool {
        self.conditions.iter().all(|condition| condition(request))
    }
}

impl Events {
    /// Every event.
    #[must_use]
    pub fn all() -> Self {
        Self { conditions: Vec::new(), skip: 0, at_most: None }
    }

    /// The next so many events.
    #[must_use]
    pub fn next(count: u64) -> Self {
        Self::all().at_most(count)
    }

    /// `ADDED` events.
    #[must_use]
    pub fn added() -> Self {
        Self::of_kind("ADDED")
    }

    /// `MODIFIED` events.
    #[must_use]
    pub fn modified() -> Self {
        Self::of_kind("MODIFIED")
    }

    /// `DELETED` events.
    #[must_use]
    pub fn deleted() -> Self {
        Self::of_kind("DELETED")
    }

    /// Bookmarks, the one that ends the initial events included.
    #[must_use]
    pub fn bookmarks() -> Self {
        Self::of_kind("BOOKMARK")
    }

    /// The bookmark that ends the initial events.
    #[must_use]
    pub fn initial_events_end() -> Self {
        Self::all().when(WatchEvent::is_initial_events_end)
    }

    /// Events of one type.
    #[must_use]
    pub fn of_kind(kind: impl Into<String>) -> Self {
        let kind = kind.into();
        Self::all().when(move |event| event.kind() == kind)
    }

    /// Only of objects with this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.when(move |event| event.name() == name)
    }

    /// Only where this holds.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&WatchEvent) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// Leaves the first so many of them alone, counted over all requests.
    #[must_use]
    pub fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Takes so many of them and no more, counted over all requests.
    #[must_use]
    pub fn at_most(mut self, count: u64) -> Self {
        self.at_most = Some(count);
        self
    }

    pub(crate) fn matches(&self, event: &WatchEvent) -> bool {
        self.conditions.iter().all(|condition| condition(event))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Match({} conditions)", self.conditions.len())
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Events({} conditions, skip {}, at most {:?})",
            self.conditions.len(),
            self.skip,
            self.at_most
        )
    }
}
