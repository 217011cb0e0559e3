//! The same seed gives the same story; speed only changes the time it takes.

use super::*;

/// What happened, in order, without what differs from clock to clock.
fn log(world: &World) -> Vec<String> {
    let (changes, _) = world.api.store.all_changes(0).unwrap();
    let line = |(bucket, change): &(crate::store::BucketId, Arc<Change>)| {
        let value = change.new.value();
        format!(
            "{} {:?} {} {} {} {}",
            bucket.1,
            change.kind,
            change.new.key,
            text(&value, "/status/phase"),
            text(&value, "/spec/nodeName"),
            value.pointer("/spec/replicas").unwrap_or(&Value::Null),
        )
    };
    changes.iter().map(line).collect()
}

fn play(simulation: Simulation, seconds: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::start(simulation.with_story(true));
        // tidy: allow-sleep the clock is paused: simulated time passes, no real time
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        log(&world)
    })
}

#[test]
fn the_same_seed_gives_the_same_story() {
    let simulation = Simulation::default().with_seed(11).with_crash_rate(0.2);
    let (first, second) = (play(simulation.clone(), 150), play(simulation, 150));
    for (at, (a, b)) in first.iter().zip(&second).enumerate() {
        assert_eq!(a, b, "change {at}");
    }
    assert_eq!(first.len(), second.len());
    assert!(first.len() > 500, "only {} changes", first.len());
}

#[test]
fn another_seed_gives_another_story() {
    let story = |seed| play(Simulation::default().with_seed(seed), 30);
    assert_ne!(story(1), story(2));
}

#[test]
fn the_story_goes_on_and_on() {
    let log = play(Simulation::default().with_seed(5), 250);
    for what in
        ["jobs Deleted shop/report", "deployments Modified shop/web", "configmaps Modified shop/settings"]
    {
        assert!(log.iter().any(|line| line.starts_with(what)), "{what}");
    }
}

async fn time_to_deploy(speed: f64) -> Duration {
    let world = World::start(Simulation::default().with_speed(speed));
    let before = tokio::time::Instant::now();
    world.create(Kind::Deployment, deployment("web", 10));
    world.deployed("web").await;
    before.elapsed()
}

#[tokio::test(start_paused = true)]
async fn at_ten_times_the_speed_everything_takes_a_tenth() {
    let (slow, fast) = (time_to_deploy(1.0).await, time_to_deploy(10.0).await);
    let ratio = slow.as_secs_f64() / fast.as_secs_f64();
    // tokio's clock has whole milliseconds.
    assert!((9.5..=10.5).contains(&ratio), "{slow:?} and {fast:?}");
}

#[tokio::test(start_paused = true)]
async fn a_speed_that_is_no_speed_counts_as_one() {
    assert_eq!(time_to_deploy(f64::NAN).await, time_to_deploy(1.0).await);
    assert_eq!(time_to_deploy(-3.0).await, time_to_deploy(1.0).await);
}

#[tokio::test(start_paused = true)]
async fn falling_behind_the_window_loses_nothing() {
    let world = World::with_window(Simulation::default(), 1);
    world.create(Kind::Deployment, deployment("web", 5));
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.deployed("web").await;
    world.quiet().await;
    assert_eq!(world.list(Kind::Pod).len(), 5);
}
