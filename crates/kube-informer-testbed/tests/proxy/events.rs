//! Events that are lost, doubled, edited and moved, in both formats.

use kube_informer_testbed::proxy::{End, Events, Format, Match, WatchEvent};

use crate::upstream::{FORMATS, Upstream, WATCH, event};
use crate::watching::{get, soon, watch};

#[tokio::test]
async fn events_are_dropped_and_the_others_keep_their_bytes() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        let fault = proxy.on(Match::watch()).drop_events(Events::modified().named("b").skip(1).at_most(1));
        let mut events = watch(&client, WATCH, format).await;
        for (kind, name) in
            [("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("MODIFIED", "b"), ("MODIFIED", "b")]
        {
            upstream.send(kind, name);
        }
        upstream.send("DELETED", "last");
        for (kind, name) in
            [("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("MODIFIED", "b"), ("DELETED", "last")]
        {
            let got = events.event().await;
            assert_eq!(got.encode(), event(format, kind, name).encode());
        }
        assert_eq!((fault.applied(), fault.events()), (1, 1));
        assert!(proxy.requests().all()[0].had("drop events"));
        let asked = &upstream.seen()[0].headers["accept-encoding"];
        assert_eq!(asked, "identity", "frames can only be seen uncompressed");
    }
}

#[tokio::test]
async fn a_fault_can_leave_the_first_events_alone_and_stop_after_some() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        proxy.on(Match::watch()).drop_events(Events::added().skip(1).at_most(2));
        let mut events = watch(&client, WATCH, format).await;
        for name in ["a", "b", "c", "d"] {
            upstream.send("ADDED", name);
            upstream.send("MODIFIED", name);
        }
        assert_eq!(events.names(6).await, ["a", "a", "b", "c", "d", "d"]);
    }
}

#[tokio::test]
async fn events_are_duplicated() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        proxy.on(Match::watch()).duplicate_events(Events::added().named("b"));
        let mut events = watch(&client, WATCH, format).await;
        for name in ["a", "b", "c"] {
            upstream.send("ADDED", name);
        }
        assert_eq!(events.names(4).await, ["a", "b", "b", "c"]);
    }
}

#[tokio::test]
async fn events_are_edited_in_type_and_object() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        proxy.on(Match::watch()).edit_events(Events::added().named("old"), |event| {
            event.overwrite("old", "new");
            event.set_kind("DELETED");
        });
        proxy.on(Match::watch()).edit_events(Events::all().named("replaced"), |event| {
            event.set_object(crate::upstream::event(event.format(), "ADDED", "another").object().clone());
        });
        let mut events = watch(&client, WATCH, format).await;
        upstream.send("ADDED", "old");
        upstream.send("ADDED", "replaced");
        upstream.send("ADDED", "untouched");
        let edited = events.event().await;
        assert_eq!(
            (edited.kind(), edited.name(), edited.namespace()),
            ("DELETED", "new".into(), "default".into())
        );
        assert_eq!(events.names(2).await, ["another", "untouched"]);
    }
}

#[tokio::test]
async fn json_objects_are_edited_as_values() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::watch()).edit_events(Events::all(), |event| {
        assert!(event.edit_json(|pod| pod["metadata"]["resourceVersion"] = "1000".into()));
    });
    let mut events = watch(&client, WATCH, Format::Json).await;
    upstream.send("ADDED", "a");
    assert_eq!(events.event().await.resource_version(), "1000");
}

#[tokio::test]
async fn events_are_moved_behind_the_next_and_none_is_lost_at_the_end() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        proxy
            .on(Match::watch())
            .reorder_events(Events::all().when(|event| ["a", "d"].contains(&&*event.name())));
        let mut events = watch(&client, WATCH, format).await;
        for name in ["a", "b", "c", "d"] {
            upstream.send("ADDED", name);
        }
        assert_eq!(events.names(3).await, ["b", "a", "c"]);
        upstream.end_watches();
        assert_eq!(events.names(1).await, ["d"]);
        assert!(events.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn bookmarks_are_swallowed_all_or_only_the_one_that_ends_the_initial_events() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        let feed = || {
            upstream.send("ADDED", "a");
            upstream.send("BOOKMARK", "end");
            upstream.send("BOOKMARK", "later");
            upstream.send("ADDED", "b");
        };
        let only_the_end = proxy.on(Match::watch()).swallow_initial_events_end();
        let mut events = watch(&client, WATCH, format).await;
        feed();
        assert_eq!(events.names(3).await, ["a", "later", "b"]);
        only_the_end.remove();
        feed();
        assert_eq!(events.names(4).await, ["a", "end", "later", "b"], "a removed fault does nothing");

        proxy.on_open(Match::watch()).swallow_bookmarks();
        feed();
        assert_eq!(events.names(2).await, ["a", "b"]);
    }
}

#[tokio::test]
async fn the_next_events_of_an_open_watch_are_dropped_even_from_the_middle_of_one() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        let mut events = watch(&client, WATCH, format).await;
        let begun = event(format, "ADDED", "begun").encode();
        upstream.send_raw(&begun[..100]);
        proxy.requests().wait_for(|request| request.bytes == 100).await.unwrap();
        let fault = proxy.on_open(Match::watch()).drop_events(Events::next(2));
        upstream.send_raw(&begun[100..]);
        for name in ["b", "c", "d"] {
            upstream.send("ADDED", name);
        }
        assert_eq!(events.names(2).await, ["begun", "d"]);
        soon(fault.wait_events(2)).await;
        let record = proxy.requests().wait_for(|request| request.events == 2).await.unwrap();
        assert!(record.had("drop events"), "{record}");
    }
}

#[tokio::test]
async fn a_fault_on_all_reaches_open_watches_and_those_that_come() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut open = watch(&client, WATCH, Format::Json).await;
    let fault = proxy.on_all(Match::watch()).drop_events(Events::deleted());
    let mut coming = watch(&client, WATCH, Format::Protobuf).await;
    upstream.send("DELETED", "a");
    upstream.send("ADDED", "b");
    assert_eq!((open.names(1).await, coming.names(1).await), (vec!["b".to_owned()], vec!["b".to_owned()]));
    assert_eq!((fault.applied(), fault.events()), (2, 2));
}

#[tokio::test]
async fn faults_on_events_act_one_after_the_other() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::watch()).duplicate_events(Events::added());
    proxy.on(Match::watch()).drop_events(Events::added().at_most(1));
    let mut events = watch(&client, WATCH, Format::Json).await;
    upstream.send("ADDED", "a");
    upstream.send("MODIFIED", "b");
    assert_eq!(events.names(2).await, ["a", "b"], "of the two only one was dropped");
}

#[tokio::test]
async fn what_is_no_event_passes_unchanged() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::watch()).drop_events(Events::all());
    let mut stream = get(&client, WATCH, "application/json").await.unwrap();
    upstream.send_raw(b"\nno event\n");
    upstream.send("ADDED", "dropped");
    upstream.send_raw(b"unfinished");
    upstream.end_watches();
    let mut body = Vec::new();
    while let Some(chunk) = soon(stream.chunk()).await.unwrap() {
        body.extend_from_slice(&chunk);
    }
    assert_eq!(body, b"\nno event\nunfinished");
}

#[tokio::test]
async fn an_event_above_the_limit_cuts_the_connection_and_is_told() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied_with(|config| config.frame_limit(3000)).await;
        proxy.on(Match::watch()).drop_events(Events::deleted());
        let mut events = watch(&client, WATCH, format).await;
        upstream.send("ADDED", "a");
        assert_eq!(events.names(1).await, ["a"]);
        upstream.send("ADDED", &"long".repeat(500));
        assert!(events.next().await.is_err());
        let record = proxy.requests().wait_for(|request| request.end.is_some()).await.unwrap();
        assert_eq!(record.end, Some(End::FrameTooLarge { limit: 3000 }));
    }
}

#[tokio::test]
async fn a_fault_that_cannot_see_events_passes_them_and_says_so() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let fault = proxy.on(Match::watch()).drop_events(Events::all());
    let mut stream = get(&client, "/api/v1/pods?watch=1&gzip", "application/json").await.unwrap();
    let bytes = event(Format::Json, "ADDED", "a").encode();
    upstream.send_raw(&bytes);
    assert_eq!(soon(stream.chunk()).await.unwrap().unwrap(), bytes);
    assert!(proxy.requests().all()[0].had("cannot drop events"));
    assert_eq!(fault.applied(), 0);
    assert!(WatchEvent::parse(Format::Json, bytes).is_some());
}
