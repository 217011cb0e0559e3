use futures_util::FutureExt;

use super::*;
use crate::kinds;
use crate::negotiate::MetaVersion;

const MINUTE: Duration = Duration::from_secs(60);

fn resource() -> Arc<Resource> {
    Arc::clone(kinds::builtin().iter().find(|r| r.is("", "configmaps")).unwrap())
}

fn bucket() -> BucketId {
    (String::new(), "configmaps".into())
}

struct World {
    store: Arc<Store>,
    stop: channel::Sender<bool>,
}

impl World {
    fn new(window: usize) -> Self {
        Self { store: Arc::new(Store::new(window)), stop: channel::channel(false).0 }
    }

    fn stored(&self, name: &str, label: &str, revision: u64) -> Stored {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": "a", "uid": name, "labels": { "l": label },
                "resourceVersion": revision.to_string(),
            },
        });
        Stored::new(&resource(), &object, revision, self.store.serialised())
    }

    /// Inserts, or replaces.
    fn put(&self, name: &str, label: &str) -> u64 {
        let make = |revision| self.stored(name, label, revision);
        let key = format!("a/{name}");
        let stored = match self.store.get(&bucket(), &key) {
            None => self.store.insert(&bucket(), &key, make),
            Some(seen) => self.store.replace(&bucket(), &seen, make),
        };
        stored.map(|stored| stored.revision).unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    fn remove(&self, name: &str) -> u64 {
        let seen = self.store.get(&bucket(), &format!("a/{name}")).unwrap();
        let gone = self.store.remove(&bucket(), &seen, |revision| self.stored(name, "gone", revision));
        gone.map(|gone| gone.revision).unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    /// A change of another resource.
    fn elsewhere(&self) {
        let id = ("elsewhere".to_owned(), "things".to_owned());
        let name = format!("n{}", self.store.revision());
        let made = self.store.insert(&id, &format!("a/{name}"), |revision| self.stored(&name, "", revision));
        assert!(made.is_ok());
    }

    fn watch(&self, start: Start) -> Watch {
        self.watch_with(start, |_| {})
    }

    fn watch_with(&self, start: Start, change: impl FnOnce(&mut WatchRequest)) -> Watch {
        let mut request = WatchRequest {
            resource: resource(),
            bucket: bucket(),
            selection: Selection::default(),
            start,
            form: WatchForm::Shared(Form::Object),
            bookmarks: false,
            timeout: 30 * MINUTE,
            bookmark_interval: MINUTE,
        };
        change(&mut request);
        Watch::start(&self.store, request, self.stop.subscribe())
    }
}

fn labelled(request: &mut WatchRequest, selector: &str) {
    request.selection.labels = Some(LabelSelector::parse(selector).unwrap());
}

/// Type, name (of an error its code), version, label.
fn read(frame: &Bytes) -> (String, String, String, String) {
    assert_eq!(frame.iter().filter(|b| **b == b'\n').count(), 1, "one line per event");
    let event: Value = serde_json::from_slice(frame).unwrap();
    let object = &event["object"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let name = if event["type"] == "ERROR" { &object["code"] } else { &object["metadata"]["name"] };
    let meta = &object["metadata"];
    (text(&event["type"]), text(name), text(&meta["resourceVersion"]), text(&meta["labels"]["l"]))
}

/// All that comes without waiting: `TYPE name@version`.
fn now(watch: &mut Watch) -> Vec<String> {
    let mut frames = Vec::new();
    while let Some(Some(frame)) = watch.next().now_or_never() {
        let (kind, name, version, _) = read(&frame);
        frames.push(format!("{kind} {name}@{version}"));
    }
    frames
}

fn has_ended(watch: &mut Watch) -> bool {
    matches!(watch.next().now_or_never(), Some(None))
}

#[tokio::test]
async fn changes_come_in_order_after_the_asked_version() {
    let world = World::new(100);
    let first = world.put("x", "1");
    let mut watch = world.watch(Start::After(first));
    assert_eq!(now(&mut watch), [""; 0]);
    world.put("y", "1");
    world.put("x", "2");
    world.remove("y");
    assert_eq!(now(&mut watch), ["ADDED y@3", "MODIFIED x@4", "DELETED y@5"]);
    assert!(!has_ended(&mut watch));
    let mut late = world.watch(Start::After(3));
    assert_eq!(now(&mut late), ["MODIFIED x@4", "DELETED y@5"]);
}

#[tokio::test]
async fn the_current_state_comes_first_where_it_is_asked_for() {
    let world = World::new(100);
    world.put("y", "1");
    world.put("x", "1");
    let mut plain = world.watch(Start::CurrentState);
    assert_eq!(now(&mut plain), ["ADDED x@3", "ADDED y@2"]);
    let mut initial = world.watch_with(Start::InitialEvents, |request| request.bookmarks = true);
    world.remove("y");
    let frames = now(&mut initial);
    assert_eq!(frames, ["ADDED x@3", "ADDED y@2", "BOOKMARK null@3", "DELETED y@4"]);
}

#[tokio::test]
async fn the_end_of_the_initial_events_is_marked() {
    let world = World::new(100);
    let mut watch = world.watch_with(Start::InitialEvents, |request| request.bookmarks = true);
    let frame = watch.next().now_or_never().flatten().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    let wanted = json!({ "type": "BOOKMARK", "object": {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": { "resourceVersion": "1", "annotations": { "k8s.io/initial-events-end": "true" } },
    } });
    assert_eq!(event, wanted);
}

#[tokio::test]
async fn an_object_that_enters_the_selection_is_added_and_one_that_leaves_is_deleted_as_it_was() {
    let world = World::new(100);
    world.put("x", "out");
    let mut watch = world.watch_with(Start::After(2), |request| labelled(request, "l in (in, inside)"));
    world.put("x", "in");
    world.put("x", "inside");
    world.put("x", "out");
    world.put("x", "outside");
    world.put("x", "in");
    world.remove("x");
    let mut frames = Vec::new();
    while let Some(Some(frame)) = watch.next().now_or_never() {
        frames.push(read(&frame));
    }
    let wanted = [
        ("ADDED", "3", "in"),
        ("MODIFIED", "4", "inside"),
        // The previous object at the new version.
        ("DELETED", "5", "inside"),
        ("ADDED", "7", "in"),
        ("DELETED", "8", "gone"),
    ];
    let wanted = wanted.map(|(kind, version, label)| (kind.into(), "x".into(), version.into(), label.into()));
    assert_eq!(frames, wanted);
}

#[tokio::test]
async fn a_watch_of_one_namespace_or_one_name_sees_nothing_else() {
    let world = World::new(100);
    let mut other = world.watch_with(Start::After(1), |request| request.selection.prefix = "b/".into());
    let mut named = world.watch_with(Start::After(1), |request| request.selection.name = Some("y".into()));
    world.put("x", "1");
    world.put("y", "1");
    assert_eq!(now(&mut other), [""; 0]);
    assert_eq!(now(&mut named), ["ADDED y@3"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_at_their_interval_and_say_how_far_the_server_is() {
    let world = World::new(100);
    let mut watch = world.watch_with(Start::After(1), |request| request.bookmarks = true);
    let start = Instant::now();
    world.elsewhere();
    let (kind, _, version, _) = read(&watch.next().await.unwrap());
    assert_eq!((kind.as_str(), version.as_str()), ("BOOKMARK", "2"), "another resource has changed");
    assert_eq!(start.elapsed(), MINUTE);
    world.put("x", "1");
    assert_eq!(now(&mut watch), ["ADDED x@3"]);
    let (kind, _, version, _) = read(&watch.next().await.unwrap());
    assert_eq!((kind.as_str(), version.as_str()), ("BOOKMARK", "3"));
    assert_eq!(start.elapsed(), 2 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn without_bookmarks_nothing_comes_until_the_timeout() {
    let world = World::new(100);
    let mut watch = world.watch_with(Start::After(1), |request| request.timeout = 3 * MINUTE);
    let start = Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(start.elapsed(), 3 * MINUTE);
    assert!(has_ended(&mut watch), "and it stays so");
}

#[tokio::test]
async fn who_falls_out_of_the_window_is_told_so_once() {
    let world = World::new(3);
    let mut slow = world.watch(Start::After(1));
    for at in 0..4 {
        world.put(&format!("n{at}"), "1");
    }
    let frame = slow.next().now_or_never().flatten().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(event["object"]["message"], "too old resource version: 1 (2)");
    assert!(has_ended(&mut slow));
    let mut start_again = world.watch(Start::After(2));
    assert_eq!(now(&mut start_again).len(), 3);
}

#[tokio::test]
async fn a_compaction_refuses_newcomers_and_leaves_who_is_up_to_date() {
    let world = World::new(100);
    let at = world.put("x", "1");
    let mut open = world.watch(Start::After(at));
    world.elsewhere();
    world.store.compact();
    let mut newcomer = world.watch(Start::After(at));
    assert_eq!(now(&mut newcomer), ["ERROR 410@null"]);
    world.put("y", "1");
    assert_eq!(now(&mut open), ["ADDED y@4"]);
}

#[tokio::test]
async fn a_version_in_the_future_is_silent_until_the_server_gets_there() {
    let world = World::new(100);
    let mut watch = world.watch(Start::After(4));
    world.put("x", "1");
    world.put("x", "2");
    world.put("x", "3");
    assert_eq!(now(&mut watch), [""; 0], "revisions 2, 3 and 4 are not after 4");
    world.put("x", "4");
    assert_eq!(now(&mut watch), ["MODIFIED x@5"]);
}

#[tokio::test]
async fn a_watch_ends_with_its_resource_after_the_last_events() {
    let world = World::new(100);
    world.put("x", "1");
    let mut watch = world.watch(Start::After(2));
    assert_eq!(now(&mut watch), [""; 0]);
    world.remove("x");
    world.store.drop_bucket(&bucket());
    assert_eq!(now(&mut watch), ["DELETED x@3"]);
    assert!(has_ended(&mut watch));
}

#[tokio::test]
async fn a_watch_ends_when_the_server_stops() {
    let world = World::new(100);
    let mut watch = world.watch(Start::After(1));
    let mut waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    assert!((&mut waiting).now_or_never().is_none());
    world.stop.send_replace(true);
    assert_eq!(waiting.await.unwrap(), None);
}

#[tokio::test]
async fn a_frame_is_made_once_for_all_watchers_of_the_same_form() {
    let world = World::new(100);
    let mut watches: Vec<Watch> = (0..10).map(|_| world.watch(Start::After(1))).collect();
    world.put("x", "1");
    let before = world.store.serialised().bytes();
    let frames: Vec<Bytes> = watches.iter_mut().map(|w| w.next().now_or_never().flatten().unwrap()).collect();
    assert!(frames.iter().all(|frame| frame.as_ptr() == frames[0].as_ptr()), "the same memory");
    assert_eq!(world.store.serialised().bytes(), before);
    let metadata =
        |request: &mut WatchRequest| request.form = WatchForm::Shared(Form::Metadata(MetaVersion::V1));
    let mut others: Vec<Watch> = (0..10).map(|_| world.watch_with(Start::After(1), metadata)).collect();
    let frames: Vec<Bytes> = others.iter_mut().map(|w| w.next().now_or_never().flatten().unwrap()).collect();
    assert!(frames.iter().all(|frame| frame.as_ptr() == frames[0].as_ptr()));
    let event: Value = serde_json::from_slice(&frames[0]).unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(world.store.serialised().objects(), 2, "the object, and its metadata");
}

/// Here no change stands behind the events, with frames to share: it is the object that keeps its forms.
#[tokio::test]
async fn metadata_is_serialised_once_for_all_watchers_that_begin_with_what_is_there() {
    let world = World::new(100);
    world.put("x", "1");
    let before = world.store.serialised().objects();
    let metadata =
        |request: &mut WatchRequest| request.form = WatchForm::Shared(Form::Metadata(MetaVersion::V1));
    let starts = [Start::CurrentState, Start::InitialEvents].into_iter().cycle().take(10);
    let watches: Vec<Watch> = starts.map(|start| world.watch_with(start, metadata)).collect();
    for mut watch in watches {
        let frame = watch.next().now_or_never().flatten().unwrap();
        let event: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("x")));
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    }
    assert_eq!(world.store.serialised().objects(), before + 1);
}

#[tokio::test]
async fn the_columns_of_a_table_come_with_the_first_event_only() {
    let world = World::new(100);
    let form =
        TableForm { include: crate::table::IncludeObject::Metadata, headers: true, version: MetaVersion::V1 };
    let mut watch = world.watch_with(Start::After(1), |request| request.form = WatchForm::Table(form));
    world.put("x", "1");
    world.put("x", "2");
    let mut columns = Vec::new();
    while let Some(Some(frame)) = watch.next().now_or_never() {
        let event: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(event["object"]["kind"], "Table");
        columns.push(event["object"]["columnDefinitions"].as_array().map_or(0, Vec::len));
    }
    assert_eq!(columns.len(), 2);
    assert!(columns[0] > 0 && columns[1] == 0, "{columns:?}");
}

#[tokio::test(start_paused = true)]
async fn the_longest_timeout_that_a_client_can_name_is_no_overflow() {
    let world = World::new(10);
    let mut watch = world.watch_with(Start::After(1), |request| {
        request.timeout = Duration::from_secs(i64::MAX as u64);
        request.bookmark_interval = Duration::MAX;
        request.bookmarks = true;
    });
    world.put("a", "x");
    assert!(watch.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_has_more_to_say_ends_at_its_timeout_too() {
    let world = World::new(10_000);
    let mut watch = world.watch_with(Start::After(1), |request| request.timeout = MINUTE);
    let mut told = 0;
    loop {
        world.put("a", "x");
        tokio::time::advance(Duration::from_secs(1)).await;
        match watch.next().await {
            Some(_) => told += 1,
            None => break,
        }
        assert!(told < 1000, "it goes on and on");
    }
    assert!(told >= 59, "{told}");
}
