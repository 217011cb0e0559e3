//! What happens by chance, on several threads: at the end, every key was reconciled with what there is.

use std::collections::BTreeMap;

use kube_informer_testbed::eventually::eventually;

use super::*;

/// Long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const KEYS: usize = 8;
const CHILDREN: usize = 24;

/// The children of each key, by name, with their versions.
type Families = BTreeMap<String, Vec<String>>;

fn families(children: &Informer) -> Families {
    let mut families = Families::new();
    for child in children.list() {
        let family = families.entry(child.labels().get("of").unwrap_or_default().to_owned()).or_default();
        family.push(format!("{}@{}", child.name(), child.version()));
    }
    families
}

/// Plays with changes that come faster than they are handled, where `capacity` of them may wait.
async fn play(seed: u64, capacity: usize) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut pods, mut children) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (informer, metrics) = (children.informer(), Metrics::default());
    let seen = Arc::new(Mutex::new(Families::new()));
    let (sees, looks) = (Arc::clone(&seen), informer.clone());
    let reconciler = move |context: Context<Value>| {
        let (sees, looks) = (Arc::clone(&sees), looks.clone());
        async move {
            let key = context.request().name().to_owned();
            let family = families(&looks).remove(&key).unwrap_or_default();
            // What is read now may be old when it is used.
            tokio::task::yield_now().await;
            sees.lock().unwrap().insert(key, family);
            Ok::<_, BoxError>(Action::done())
        }
    };
    let map = |child: &Object<Value>| {
        // Slow enough to fall behind now and then.
        (0..20).for_each(|_| std::thread::yield_now());
        child.labels().get("of").map(|key| Request::new("d", key)).into_iter().collect()
    };
    let controller = controller(&pods).watches_informer(&informer, map).capacity(capacity);
    let running = run(controller.workers(2).metrics(&metrics), reconciler);
    pods.list(&[], 1);
    children.list(&[], 1);
    let mut version = 2;
    for _ in 0..3000 {
        version += 1;
        let name = format!("c{}", random.usize(..CHILDREN));
        let labels = |key: &str| format!(r#""labels":{{"of":"{key}"}}"#);
        match informer.get("d", &name) {
            Some(last) if random.u8(..10) < 3 => {
                // What is told of the end is the last state, with a version of its own.
                let key = last.labels().get("of").unwrap().to_owned();
                let last = children.pod(&name, version, &labels(&key));
                children.apply(Delta::Remove(last));
            }
            _ => {
                let object = children.pod(&name, version, &labels(&format!("k{}", random.usize(..KEYS))));
                children.apply(Delta::Put(object));
            }
        }
        if random.u8(..20) == 0 {
            tokio::task::yield_now().await;
        }
    }
    let what = "every key was reconciled with what there is";
    let mut last = String::new();
    let known = eventually(what, 2 * PATIENCE, async || {
        let now = families(&informer);
        let seen = seen.lock().unwrap().clone();
        let known: Families = seen.into_iter().filter(|(_, family)| !family.is_empty()).collect();
        let waiting: Vec<_> = informer.stats().handlers.iter().map(|(_, stats)| stats.backlog).collect();
        last = format!("there is {now:?}, known is {known:?}, {waiting:?} wait");
        (known == now).then_some(())
    });
    if timeout(PATIENCE, known).await.is_err() {
        panic!("{what}: not so with seed {seed}: {last}");
    }
    let page = page(&metrics);
    let gaps = page.lines().find_map(|line| {
        line.strip_prefix("kube_informer_controller_source_gaps_total{controller=\"pod\"} ")
    });
    let gaps = gaps.unwrap().parse().unwrap();
    running.stop().await.unwrap();
    gaps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_is_reconciled_with_what_there_is_in_the_end() {
    for seed in 0..4 {
        assert_eq!(play(seed, 100_000).await, 0, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_is_reconciled_with_what_there_is_in_the_end_also_where_changes_are_missed() {
    let mut gaps = 0;
    for seed in 0..12 {
        gaps += play(seed, 4).await;
    }
    assert!(gaps > 0, "nothing was missed");
}
