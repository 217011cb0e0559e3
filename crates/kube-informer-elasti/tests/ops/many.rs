//! Many owners in one namespace share what is watched, and are told apart.

use std::collections::BTreeSet;

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt};
use kube_informer::controller::Request;
use kube_informer_elasti::api::Mode;

use crate::harness::{Place, Told, deployment};

const OWNERS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_share_what_is_watched_and_are_told_apart() -> Result<()> {
    let place = Place::embedded().await?;
    let name = |number: usize| format!("web-{number}");
    let made = futures_util::stream::iter(0..OWNERS).map(Ok::<_, anyhow::Error>);
    made.try_for_each_concurrent(8, async |number| {
        place.workload("deployments", &name(number), 1, 1).await?;
        place.pod(&name(number), &name(number), number % 2 == 0).await
    })
    .await?;
    let proxy = place.proxy().await?;
    let ops = place.ops_through(&proxy).await?;
    let owner = |number: usize| Request::new(&place.namespace, &name(number));
    let followed = futures_util::stream::iter(0..OWNERS).map(Ok::<_, anyhow::Error>);
    followed
        .try_for_each_concurrent(16, async |number| {
            ops.follow(&owner(number), &deployment(&name(number))).await?;
            Ok(())
        })
        .await?;
    for number in 0..OWNERS {
        let mode = if number % 2 == 0 { Mode::Serve } else { Mode::Proxy };
        assert_eq!(ops.state(&owner(number)).unwrap().decision, mode, "{number}");
    }
    let informers: Vec<String> = ops
        .factory
        .stats()
        .into_iter()
        .map(|informer| format!("{} {}", informer.resource, informer.scope))
        .collect();
    let of = |resource: &str| informers.iter().filter(|informer| informer.starts_with(resource)).count();
    assert_eq!(of("pods"), 1, "{informers:?}");
    assert!(of("deployments") < 10, "{informers:?}");
    // All that there is was told; from now on, what changes.
    let mut told = Told::of(&ops);
    let mut all = BTreeSet::new();
    while all.len() < OWNERS {
        all.insert(told.next().await);
    }
    let changed: BTreeSet<usize> = (0..OWNERS).step_by(37).collect();
    for number in &changed {
        place.ready(&name(*number), number % 2 != 0).await?;
    }
    for number in &changed {
        let mode = if number % 2 == 0 { Mode::Proxy } else { Mode::Serve };
        ops.decides(&owner(*number), mode, "").await;
    }
    let mut heard = BTreeSet::new();
    while heard.len() < changed.len() {
        heard.insert(told.next().await);
    }
    assert_eq!(heard, changed.iter().map(|number| owner(*number)).collect());
    assert!(told.is_silent(), "nobody else");
    ops.end().await;
    Ok(())
}
