//! `kube-informer wait`: ends when objects are as they should be.
//!
//! - Exit codes: 0 when they are; 1 when they were not in time, with what was last seen of each; 3 when one of them is as
//!   it must not be (`--fail-on`), with which and why.
//! - It hears of each change as it happens, and goes on after a lost connection, until its time is up; it says on stderr
//!   that it does.
//! - On a terminal it shows how far the first reading has come, until everything was seen.
//! - What kind of time it was: see [`tracker`](self::tracker).
//! - That an object is gone is believed where the server said so. Where objects were chosen by labels or fields, one that
//!   does not fit any more looks the same: then it is asked for by its name, and [watched](strays) by it.

mod follow;
mod strays;
mod tracker;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_informer::encoding::ManagedFields;
use kube_informer::informer::{Cause, Health, Informer, Scope, State};
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Cluster, ClusterArgs, SelectArgs};
use crate::condition::{self, Condition};
use crate::existence::Asker;
use crate::interrupt::{Ended, Interrupt};
use crate::output::{self, Lines, Output};
use crate::progress::Progress;
use crate::reading;
use crate::target::{Target, TargetArgs};
use crate::time::duration;
use crate::usage::Usage;

use follow::{Message, Messages, Source};
use strays::{Strays, TooMany};
use tracker::{Id, Rules, Sight, Step, Tracker};
use words::trouble;

pub(crate) const ABOUT: &str = "\
Wait until objects are as they should be.

Objects are named (pod/web), or chosen (pods -l app=web, pods --all). Named objects that are not there yet are waited for. \
Of chosen ones, those that come later count, too, and those that go do not; where their deletion is waited for, those count \
that were there at first.

What is waited for (--for, --fail-on):
  condition=NAME[=VALUE]  a condition in the object's status has that value; without one: True
  jsonpath=PATH[=VALUE]   a path has that value; without one: it finds something
  create                  the object is there
  delete                  the object is gone; one that was made again under its name is another one

Conditions that were found out about an older generation of an object do not count. Several --for are met one after the \
other, create first.

A lost connection is made again, and stderr tells of it. When the time is up, and at Ctrl-C, stderr says what was last seen of \
each object.

Exit codes: 0 met, 1 not met in time or an error, 2 wrong arguments, 3 --fail-on met, 130 Ctrl-C.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Until a pod is ready, and not longer than two minutes; it may not be there yet
  kube-informer wait pod/web --for condition=Ready --timeout 2m

  # Until a job is complete; 3 as soon as it has failed
  kube-informer wait job/migrate --for condition=Complete --fail-on condition=Failed --timeout 10m

  # Until all pods of an app are ready, those that come meanwhile included
  kube-informer wait pods -l app=web --for condition=Ready

  # Until one of the pods runs
  kube-informer wait pods --all --any --for 'jsonpath={.status.phase}=Running'

  # Until a rollout is over: its state is that of the newest spec, and every new pod is there
  kube-informer wait deploy/web --for condition=Progressing \\
    --for 'jsonpath={.status.conditions[?(@.type==\"Progressing\")].reason}=NewReplicaSetAvailable'

  # Until they are gone
  kube-informer wait pods -l app=old --for delete --timeout 5m";

/// How long it is waited where nothing else is said, as kubectl does.
const TIMEOUT: Duration = Duration::from_secs(30);
/// As long as kubectl waits for ever.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
/// What is longer is not different.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How often it is shown how far the first reading has come.
const TICK: Duration = Duration::from_millis(100);

/// How long an informer may take to end that nobody waits for.
const LET_GO: Duration = Duration::from_secs(10);

/// Wait until objects are as they should be.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// What is waited for: condition=NAME[=VALUE], jsonpath=PATH[=VALUE], create or delete; can be given several times
    #[arg(long = "for", value_name = "CONDITION", required = true, value_parser = |text: &str| text.parse::<Condition>())]
    conditions: Vec<Condition>,
    /// One of the objects is enough
    #[arg(long)]
    any: bool,
    /// One of several --for is enough
    #[arg(long)]
    any_condition: bool,
    /// End at once, with exit code 3, when an object meets this; where it meets --for in the same look, --for counts; can
    /// be given several times
    #[arg(long, value_name = "CONDITION", value_parser = |text: &str| text.parse::<Condition>())]
    fail_on: Vec<Condition>,
    /// How long to wait, such as 30s or 1m30s; 0 looks once, and below 0 it is a week
    #[arg(long, value_name = "TIME", default_value = "30s", allow_hyphen_values = true, value_parser = timeout)]
    timeout: Duration,
    /// All objects of a type; not beside names or selectors
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match text.strip_prefix('-') {
        Some(below) => duration(below).map(|below| if below.is_zero() { below } else { WEEK }),
        None => duration(text).map(|time| time.min(FOR_EVER)),
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let begin = Instant::now();
    let mut interrupt = Interrupt::install()?;
    let output = Output::start()?;
    let lines = output.lines();
    let waited = wait(args, begin, &lines, &mut interrupt).await;
    drop(lines);
    let (ended, words) = match waited {
        Ok(End { ended, words }) => (Ok(ended), words),
        Err(error) => (Err(error), String::new()),
    };
    output.conclude(interrupt.wait(), ended, output::last_words(words)).await
}

/// How it ended, and what is to be said about it on stderr.
struct End {
    ended: Ended,
    words: String,
}

async fn wait(args: Args, begin: Instant, lines: &Lines, interrupt: &mut Interrupt) -> anyhow::Result<End> {
    let Args { target, conditions, any, any_condition, fail_on, timeout, all, select, cluster } = args;
    let selects = select.selects();
    let connect = async {
        let cluster = cluster.connect(&select).await?;
        let targets = target.resolve(&cluster)?;
        anyhow::Ok((cluster, targets))
    };
    // A server that does not answer has its own patience, and the time that there is.
    let limit = if timeout.is_zero() { TIMEOUT } else { timeout };
    let connected = tokio::select! {
        connected = tokio::time::timeout_at(begin + limit, connect) => connected,
        () = interrupt.wait() => return Ok(End { ended: Ended::Interrupted, words: String::new() }),
    };
    let Ok(connected) = connected else {
        anyhow::bail!("timed out after {limit:?}: the server has not said what it serves");
    };
    let (cluster, targets) = connected?;
    let unnamed = targets.iter().any(|target| target.names.is_empty());
    if unnamed && !selects && !all {
        let why = "say which objects: TYPE/NAME, TYPE -l LABELS, or TYPE --all";
        return Err(Usage::new(why).into());
    }
    if all && (selects || targets.iter().any(|target| !target.names.is_empty())) {
        let why = "--all is all objects of a type: leave it out where names or selectors say which";
        return Err(Usage::new(why).into());
    }
    let rules = Rules { any_condition, any_object: any, ..Rules::new(conditions, fail_on) };
    let mut wait = Wait {
        tracker: Tracker::new(rules),
        messages: Messages::new(Asker::new(&cluster)),
        informers: Vec::new(),
        strays: Strays::default(),
        early: Some(Vec::new()),
        complete: BTreeSet::new(),
        troubles: BTreeMap::new(),
        progress: Progress::new(lines.clone(), &cluster),
        cluster,
        targets,
        selects,
        lines,
    };
    wait.begin()?;
    let ended = tokio::select! {
        ended = wait.run(begin, timeout) => Some(ended),
        () = interrupt.wait() => None,
    };
    match ended {
        Some(ended) => ended,
        None => Ok(wait.interrupted()),
    }
}

struct Wait<'l> {
    cluster: Cluster,
    targets: Vec<Target>,
    /// Whether objects are chosen by labels or fields.
    selects: bool,
    tracker: Tracker,
    messages: Messages,
    /// One for each of the first sources, which are what was asked for.
    informers: Vec<Informer>,
    /// Those of later sources.
    strays: Strays,
    /// Who met something before everything was seen: to be told in the order in which they were asked for.
    early: Option<Vec<Id>>,
    /// The sources of which everything was seen.
    complete: BTreeSet<usize>,
    /// What is wrong with sources, as it was said.
    troubles: BTreeMap<usize, Cause>,
    /// How far the first reading has come.
    progress: Progress,
    lines: &'l Lines,
}

impl Wait<'_> {
    fn begin(&mut self) -> anyhow::Result<()> {
        for (index, target) in self.targets.clone().iter().enumerate() {
            for scope in self.cluster.scopes(target)? {
                let only = match &scope {
                    Scope::Object { namespace, name } => {
                        Some(Id { target: index, namespace: namespace.clone(), name: name.clone() })
                    }
                    _ => None,
                };
                if let Some(id) = &only {
                    self.tracker.expect(id.clone());
                }
                let informer =
                    self.cluster.informer(&target.resource, scope)?.managed_fields(self.fields()).informer();
                self.messages.follow(&informer, Source { index: self.informers.len(), target: index, only });
                self.informers.push(informer);
            }
        }
        self.cluster.factory.start();
        Ok(())
    }

    fn fields(&self) -> ManagedFields {
        let rules = self.tracker.rules();
        condition::fields(rules.conditions.iter().chain(&rules.fail_on))
    }

    async fn run(&mut self, begin: Instant, timeout: Duration) -> anyhow::Result<End> {
        let limit = if timeout.is_zero() { self.cluster.patience } else { timeout };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                message = self.messages.next() => Some(message),
                () = tokio::time::sleep_until(begin + limit) => None,
                _ = tick.tick(), if !self.is_complete() => {
                    self.progress.show(self.informers.iter()).await;
                    continue;
                }
            };
            // However much there is to hear, the time is up when it is.
            let Some(message) = message.filter(|_| Instant::now() < begin + limit) else {
                self.tell_early().await;
                return Ok(self.late(limit));
            };
            let steps = self.hear(message).await?;
            for step in steps {
                if let Some(end) = self.take(step).await? {
                    self.tell_early().await;
                    return Ok(end);
                }
            }
            if self.is_complete() {
                self.tell_early().await;
            }
            if self.tracker.is_done() {
                return Ok(End { ended: Ended::Done, words: String::new() });
            }
            if timeout.is_zero() && self.is_complete() {
                return Ok(self.late(timeout));
            }
        }
    }

    /// Whether everything that was asked for was seen: later sources do not count.
    fn is_complete(&self) -> bool {
        self.complete.range(..self.informers.len()).count() >= self.informers.len()
    }

    async fn hear(&mut self, message: Message) -> anyhow::Result<Vec<Step>> {
        let is_first = |source: &Source| source.index < self.informers.len();
        let is_over = |source: &Source| !is_first(source) && self.strays.watcher(source).is_none();
        if message.source().is_some_and(is_over) {
            return Ok(Vec::new());
        }
        Ok(match message {
            Message::Seen(source, object) => {
                let json: Value = serde_json::from_str(&object.json()?)?;
                let sight = Sight { uid: &object.uid().to_string(), json: &json };
                self.tracker.see(&id(&source, &object), Some(sight))
            }
            Message::Gone(source, object) => {
                let id = id(&source, &object);
                self.lose(&source, &id)
            }
            Message::Confirmed { id, uid, is_there } if self.tracker.uid(&id) == Some(&*uid) => {
                if !is_there {
                    return Ok(self.tracker.see(&id, None));
                }
                self.tracker.note(&id, "is there, though it is not chosen any more");
                self.watch_by_name(id)?;
                Vec::new()
            }
            Message::Confirmed { .. } => Vec::new(),
            Message::Gap(source, now) => {
                let known = match &source.only {
                    Some(only) => vec![only.clone()],
                    None => self.tracker.waiting(source.target),
                };
                let gone = known.iter().filter(|id| now.get(&id.namespace, &id.name).is_none());
                gone.flat_map(|id| self.lose(&source, id)).collect()
            }
            Message::Complete(source) => {
                self.complete.insert(source.index);
                if let Some(informer) = self.strays.watcher(&source) {
                    // It was looked for by its name later, and may have gone before it was seen.
                    let gone = source.only.filter(|id| informer.get(&id.namespace, &id.name).is_none());
                    return Ok(gone.map(|id| self.tracker.see(&id, None)).unwrap_or_default());
                }
                if !self.is_complete() {
                    return Ok(Vec::new());
                }
                tracing::info!("what there is was seen: waiting for what comes");
                self.tracker.complete()
            }
            Message::Health(source, health) => {
                self.refuse(&source, &health)?;
                self.health(&source, &health.state).await;
                Vec::new()
            }
        })
    }

    /// An object is gone, or only not chosen any more: that may have to be found out.
    fn lose(&mut self, source: &Source, id: &Id) -> Vec<Step> {
        let is_sure = source.only.is_some() || !self.selects;
        if is_sure || !self.tracker.rules().look_at_deletions() {
            return self.tracker.see(id, None);
        }
        let is_there = |informer: &Informer| informer.get(&id.namespace, &id.name).is_some();
        if self.strays.of(id).is_some_and(|informer| !informer.is_synced() || is_there(informer)) {
            // Who watches it by its name will say whether it is gone.
            return Vec::new();
        }
        if let Some(uid) = self.tracker.uid(id).map(str::to_owned)
            && let Some(resource) = self.resource(id)
        {
            self.messages.confirm(resource, id.clone(), uid);
        }
        Vec::new()
    }

    /// Hears of an object by its name from now on, unless it does already.
    fn watch_by_name(&mut self, id: Id) -> anyhow::Result<()> {
        let Some(resource) = self.resource(&id).filter(|_| self.strays.of(&id).is_none()).cloned() else {
            return Ok(());
        };
        for (source, informer) in self.strays.let_go(|id| self.tracker.uid(id).is_some()) {
            self.complete.remove(&source);
            self.troubles.remove(&source);
            let factory = self.cluster.factory.clone();
            tokio::spawn(async move { factory.stop(&informer, LET_GO).await });
        }
        let scope = Scope::object(&id.namespace, &id.name);
        let builder = self.cluster.factory.configure_resource(resource.clone(), scope);
        let informer = builder.managed_fields(self.fields()).informer();
        match self.strays.add(self.informers.len(), id, informer.clone()) {
            Ok(source) => self.messages.follow(&informer, source),
            Err(TooMany) => anyhow::bail!(
                "more than {} {resource} that are waited for are not chosen any more, and are there still: each of them \
                 would have a watch of its own; choose them by what stays as it is, or all of them with --all",
                strays::MOST
            ),
        }
        Ok(())
    }

    /// Says what came of a look; or that it is over.
    async fn take(&mut self, step: Step) -> anyhow::Result<Option<End>> {
        match step {
            Step::Met(id) => match &mut self.early {
                Some(early) => early.push(id),
                None => self.tell(&id).await,
            },
            Step::Failed { id, condition, seen } => {
                let words =
                    format!("error: {}: {seen}; that is --fail-on {condition}\n", self.full_name(&id));
                return Ok(Some(End { ended: Ended::Failed, words }));
            }
            Step::Never { id, condition, seen } => {
                anyhow::bail!("{}: {condition} can never be met: {seen}", self.full_name(&id));
            }
            Step::Dropped(id) => {
                tracing::info!("{} is gone, and is not waited for any more", self.full_name(&id));
            }
        }
        Ok(None)
    }

    async fn tell(&self, id: &Id) {
        // Whether it is read or not, it is so.
        let _ = self.lines.print(format!("{} condition met\n", self.name(id))).await;
    }

    async fn tell_early(&mut self) {
        self.progress.clear().await;
        let mut early = self.early.take().unwrap_or_default();
        let place = |id: &Id| {
            let names = self.targets.get(id.target).map(|target| &target.names[..]).unwrap_or_default();
            (id.target, names.iter().position(|name| *name == id.name))
        };
        // What was not asked for by name is in the order of namespaces and names.
        early.sort_by(|one, two| place(one).cmp(&place(two)).then_with(|| one.cmp(two)));
        for id in &early {
            self.tell(id).await;
        }
    }

    /// Where nothing was heard yet, some troubles are the end, in whichever namespace. Later, they pass or the time does.
    fn refuse(&self, source: &Source, health: &Health) -> anyhow::Result<()> {
        if self.complete.contains(&source.index) {
            return Ok(());
        }
        for (_, state) in &health.scopes {
            if let State::Stale { why, .. } = state
                && reading::is_hopeless(why.cause)
            {
                anyhow::bail!("{}: {}", self.what(source), trouble(why));
            }
        }
        Ok(())
    }

    /// Says what is wrong, each time that it is something else, and that it is over.
    async fn health(&mut self, source: &Source, state: &State) {
        let State::Stale { why, .. } = state else {
            if *state == State::Live && self.troubles.remove(&source.index).is_some() {
                self.progress.clear().await;
                let _ = self.lines.note(format!("{}: connected again\n", self.what(source))).await;
            }
            return;
        };
        // To read what was missed is no trouble, but the way out of it.
        if why.cause != Cause::Relisting && self.troubles.insert(source.index, why.cause) != Some(why.cause) {
            let text = format!(
                "{}: still waiting, but what is seen may be old: {}\n",
                self.what(source),
                trouble(why)
            );
            self.progress.clear().await;
            let _ = self.lines.note(text).await;
        }
    }

    fn resource(&self, id: &Id) -> Option<&Resource> {
        self.targets.get(id.target).map(|target| &target.resource)
    }
}

fn id(source: &Source, object: &Object) -> Id {
    let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
    Id { target: source.target, namespace, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_below_nothing_is_a_week_as_for_kubectl() {
        assert_eq!(timeout("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(timeout("0"), Ok(Duration::ZERO));
        assert_eq!(timeout("0s"), Ok(Duration::ZERO));
        assert_eq!(timeout("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(timeout("-0s"), Ok(Duration::ZERO));
        assert_eq!(timeout("-1s"), Ok(WEEK));
        assert!(timeout("-soon").is_err() && timeout("soon").is_err());
    }
}
