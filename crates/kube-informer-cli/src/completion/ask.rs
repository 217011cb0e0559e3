//! What a cluster says could stand on a command line. Whoever presses Tab does not wait long for it.

use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};

use super::words::{TYPES, Wish};
use crate::cluster::{ClusterArgs, SelectArgs};
use crate::target::Target;

/// How long somebody waits after Tab.
const PATIENCE: Duration = Duration::from_secs(2);
/// Nobody reads more candidates.
const MOST: usize = 1000;

/// What fits a wish; without a cluster that answers in time, types that every cluster has.
pub(super) fn ask(wish: &Wish, flags: &[String]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime.ok().and_then(|runtime| {
        let answer =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, names(wish, flags)).await.ok() });
        // Nothing that is still under way is waited for.
        runtime.shutdown_background();
        answer.flatten()
    });
    let (before, begun) = match wish {
        Wish::Types { before, begun } | Wish::Names { before, begun, .. } => (before, begun),
    };
    let known = || TYPES.iter().map(|name| (*name).to_owned()).collect();
    let all: Vec<String> = match (answer, wish) {
        (Some(answer), _) => answer,
        (None, Wish::Types { .. }) => known(),
        (None, Wish::Names { .. }) => Vec::new(),
    };
    let fits = all.into_iter().filter(|name| name.starts_with(begun.as_str()));
    fits.take(MOST).map(|name| format!("{before}{name}")).collect()
}

async fn names(wish: &Wish, flags: &[String]) -> Option<Vec<String>> {
    let command =
        SelectArgs::augment_args(ClusterArgs::augment_args(Command::new("flags").no_binary_name(true)));
    let matches = command.try_get_matches_from(flags).ok()?;
    let select = SelectArgs::from_arg_matches(&matches).ok()?;
    let cluster = ClusterArgs::from_arg_matches(&matches).ok()?.connect(&select).await.ok()?;
    let of = match wish {
        Wish::Types { .. } => {
            let served = cluster.catalog.resources().into_iter();
            let mut names: Vec<String> = served.map(|resource| resource.plural).collect();
            names.sort();
            names.dedup();
            return Some(names);
        }
        Wish::Names { of, .. } => of,
    };
    let target = Target { resource: cluster.catalog.resolve(of).ok()?, names: Vec::new() };
    let mut names = Vec::new();
    for scope in cluster.scopes(&target).ok()? {
        let informer = cluster.informer(&target.resource, scope).ok()?.metadata_only().informer();
        cluster.factory.start();
        informer.synced(PATIENCE).await.ok()?;
        names.extend(informer.list().into_iter().map(|object| object.name().to_owned()));
    }
    names.sort();
    names.dedup();
    Some(names)
}
