//! `get` shows one state, while others write all the time.
//!
//! Somebody writes the number of a round into one object after the other, again and again. So whenever one looks, the numbers
//! do not rise from one object to the next, and the last one is behind by one round at most. Parts of two states do not fit so.

use std::sync::Arc;

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::{Place, on_both, output};
use crate::running::text;

on_both! {
    what_it_shows_was_so_at_one_moment_while_others_write,
}

/// How many objects there are.
const OBJECTS: usize = 24;

/// How often it is read, in each way.
const READS: usize = 12;

/// Long enough that reading takes a while.
const FILLER: usize = 2000;

fn name(number: usize) -> String {
    format!("map-{number:02}")
}

/// Whether these numbers, of the objects in their order, were so at one moment.
fn is_one_state(rounds: &[u64]) -> bool {
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else { return false };
    rounds.is_sorted_by(|a, b| a >= b) && first - last <= 1
}

#[test]
fn parts_of_two_states_are_told_apart_from_one() {
    for rounds in [&[3, 3, 3, 3][..], &[4, 3, 3, 3], &[4, 4, 4, 3], &[1]] {
        assert!(is_one_state(rounds), "{rounds:?}");
    }
    for rounds in [&[3, 4, 3, 3][..], &[3, 3, 3, 4], &[5, 4, 3, 3], &[5, 5, 3, 3], &[]] {
        assert!(!is_one_state(rounds), "{rounds:?}");
    }
}

async fn what_it_shows_was_so_at_one_moment_while_others_write(place: Place) -> Result<()> {
    for number in 0..OBJECTS {
        place.config_map(&name(number), json!({ "round": "0", "filler": "x".repeat(FILLER) })).await?;
    }
    let place = Arc::new(place);
    let (tell, writes) = watch::channel(0);
    let writer = tokio::spawn(write(Arc::clone(&place), tell));
    let read = read(&place, writes).await;
    // It goes on until nobody hears of it.
    writer.await??;
    let seen = read?;
    assert!(seen.len() > READS, "{} states were seen", seen.len());
    Ok(())
}

/// Writes, and tells how often, as long as somebody hears it.
async fn write(place: Arc<Place>, tell: watch::Sender<u64>) -> Result<()> {
    for round in 1_u64.. {
        for number in 0..OBJECTS {
            let path = place.path(&format!("configmaps/{}", name(number)));
            place.merge(&path, &json!({ "data": { "round": round.to_string() } })).await?;
            tell.send_modify(|writes| *writes += 1);
            if tell.is_closed() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads again and again: each state that was seen, once.
async fn read(place: &Place, mut writes: watch::Receiver<u64>) -> Result<Vec<Vec<u64>>> {
    let mut seen = Vec::new();
    // As a stream, and as a list, both so slow that there are writes meanwhile.
    for is_streamed in [true, false] {
        let (proxy, file) = place.proxy().await?;
        if !is_streamed {
            proxy.on(Match::watch().send_initial_events(true)).answer(Answer::no_streaming_lists());
        }
        proxy.on(Match::any().path_contains("/configmaps")).throttle(400_000);
        for _ in 0..READS {
            // What follows is another state.
            writes.changed().await?;
            let args = ["get", "cm", "-l", "app=test", "-o", "json"];
            let printed = output(place.command_through(&file, &args)).await;
            assert_eq!((printed.status.code(), text(&printed.stderr)), (Some(0), String::new()));
            let list: Value = serde_json::from_slice(&printed.stdout)?;
            let items = list["items"].as_array().unwrap();
            let names: Vec<&str> =
                items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
            assert_eq!(names, (0..OBJECTS).map(name).collect::<Vec<_>>());
            let round = |item: &Value| item["data"]["round"].as_str().unwrap().parse().unwrap();
            let rounds: Vec<u64> = items.iter().map(round).collect();
            assert!(is_one_state(&rounds), "streamed: {is_streamed}: {rounds:?}");
            if !seen.contains(&rounds) {
                seen.push(rounds);
            }
        }
    }
    Ok(seen)
}
