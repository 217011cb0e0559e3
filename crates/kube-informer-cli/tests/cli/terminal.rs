//! What only happens on a terminal: progress, colours, and a terminal that stands still.

use std::process::{Command, Stdio};

use anyhow::Result;
use kube_informer_apiserver::faults::{Match, Request};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::harness::{Place, blocking};
use crate::heard::Heard;
use crate::running::Running;

/// A command on a terminal of its own.
fn start(mut command: Command) -> Running {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let open = || {
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        Stdio::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap())
    };
    command.stdin(open()).stdout(open()).stderr(open());
    // The command has the only other handles then: when it ends, there is nothing more to read.
    Running::on(Heard::of(screen), command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_have_colours_on_a_terminal_unless_somebody_wants_none() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for (no_color, color, coloured) in [
        (None, "auto", true),
        (Some("1"), "auto", false),
        (Some(""), "auto", true),
        (None, "never", false),
        (Some("1"), "always", true),
    ] {
        let mut command = place.command(&format!("watch cm -l app=test -o name --color {color}"));
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut terminal = start(command);
        blocking(|| terminal.shows("configmap/one"));
        place.merge(&place.path("configmaps/one"), &json!({ "data": { "t": color, "n": no_color } })).await?;
        place
            .merge(&place.path("configmaps/one"), &json!({ "data": { "x": format!("{no_color:?}{color}") } }))
            .await?;
        let seen = blocking(|| terminal.shows("~ configmap/one"));
        assert_eq!(
            seen.contains("\x1b[33m~ configmap/one\x1b[0m"),
            coloured,
            "{no_color:?} {color}: {seen:?}"
        );
        terminal.signal("-INT");
        assert_eq!(blocking(|| terminal.code()), Some(130));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reading_shows_how_far_it_is_and_leaves_nothing_behind() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for command in ["get cm one -o name", "watch cm -l app=test -o name"] {
        let stalled = place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).stall();
        let mut terminal = start(place.command(command));
        let seen = blocking(|| terminal.shows("reading configmaps: 0 objects"));
        assert!(seen.starts_with("\r\x1b[K"), "{seen:?}");
        stalled.release();
        let seen = blocking(|| terminal.shows("configmap/one"));
        let (_, after) = seen.rsplit_once("objects").unwrap();
        let (_, after) = after.split_once(')').unwrap();
        assert!(after.trim_start_matches("\r\x1b[K").trim_start().starts_with("configmap/one"), "{seen:?}");
        assert!(after.starts_with("\r\x1b[K"), "the line is gone: {seen:?}");
        place.server().unwrap().faults().heal();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_what_a_terminal_that_stands_still_holds_up_and_a_second_one_at_once() -> Result<()> {
    for signals in [1, 2] {
        let place = Place::embedded().await?;
        for number in 0..40 {
            place.config_map(&format!("map-{number}"), json!({ "filler": "x".repeat(5000) })).await?;
        }
        // Nobody reads the screen: it is full after some kilobytes.
        let mut terminal = start(place.command("watch cm -o yaml"));
        let requests = place.server().unwrap().faults().requests();
        requests.wait_for(Request::is_watch).await?;
        for _ in 0..signals {
            terminal.signal("-INT");
        }
        assert_eq!(blocking(|| terminal.code()), Some(130));
    }
    Ok(())
}
