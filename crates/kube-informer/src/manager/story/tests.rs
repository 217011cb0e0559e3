use proptest::prelude::*;

use super::*;
use crate::encoding::{Codec, Encoding, Rules};
use crate::object::Intake;

fn object(uid: &str, version: u64) -> Object {
    let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
    let text = format!(
        r#"{{"metadata":{{"name":"x","namespace":"d","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    );
    Intake::new(codec).object(text.as_bytes()).unwrap()
}

fn short(event: &WatchEvent) -> String {
    let of = |object: &Object| format!("{}@{}", object.uid(), object.version());
    match event {
        WatchEvent::Added { new, initial } => format!("+{}{}", of(new), if *initial { "!" } else { "" }),
        WatchEvent::Updated { new, resync: true, .. } => format!("={}", of(new)),
        WatchEvent::Updated { old, new, .. } => format!("~{}→{}", old.version(), of(new)),
        WatchEvent::Deleted { last, certain } => format!("-{}{}", of(last), if *certain { "" } else { "?" }),
    }
}

/// All that is to be told, handled at once.
fn tell(story: &mut Story) -> Vec<String> {
    std::iter::from_fn(|| {
        let event = story.next()?;
        story.told(event.clone());
        Some(short(&event))
    })
    .collect()
}

#[test]
fn what_was_there_at_the_beginning_is_initial_and_what_comes_later_is_not() {
    let mut story = Story::default();
    assert!(story.observe(Some(object("a", 1)), None));
    assert_eq!(tell(&mut story), ["+a@1!"]);
    let mut story = Story::default();
    assert!(!story.observe(None, None), "that nothing is there is no news");
    assert!(story.observe(Some(object("a", 1)), None));
    assert_eq!(tell(&mut story), ["+a@1"]);
}

#[test]
fn of_several_changes_the_last_is_told_with_what_was_told_before() {
    let mut story = Story::default();
    story.observe(Some(object("a", 1)), None);
    tell(&mut story);
    assert!(story.observe(Some(object("a", 2)), None) && story.observe(Some(object("a", 5)), None));
    assert!(!story.observe(Some(object("a", 5)), None), "the same again, out of another cache, is no news");
    assert_eq!(tell(&mut story), ["~1→a@5"]);
}

#[test]
fn a_deletion_is_told_with_the_last_state_even_if_that_was_not_told() {
    let mut story = Story::default();
    story.observe(Some(object("a", 1)), None);
    tell(&mut story);
    story.observe(Some(object("a", 2)), None);
    story.observe(None, Some((&object("a", 3), true)));
    assert_eq!(tell(&mut story), ["-a@3"]);
    story.observe(Some(object("b", 4)), None);
    tell(&mut story);
    story.observe(None, None);
    assert_eq!(tell(&mut story), ["-b@4?"], "found missing");
}

#[test]
fn another_uid_is_a_deletion_and_an_addition() {
    let mut story = Story::default();
    story.observe(Some(object("a", 1)), None);
    tell(&mut story);
    story.observe(Some(object("b", 9)), None);
    assert_eq!(tell(&mut story), ["-a@1?", "+b@9"]);
}

#[test]
fn what_came_and_went_untold_is_not_told() {
    let mut story = Story::default();
    story.observe(None, None);
    story.observe(Some(object("a", 1)), None);
    story.observe(None, None);
    assert_eq!(tell(&mut story), [""; 0]);
    story.observe(Some(object("b", 2)), None);
    tell(&mut story);
    for next in [None, Some(object("c", 3)), None, Some(object("d", 5))] {
        story.observe(next, None);
    }
    assert_eq!(tell(&mut story), ["-b@2?", "+d@5"]);
}

#[test]
fn what_goes_while_it_is_being_told_is_told_to_be_gone() {
    let mut story = Story::default();
    story.observe(Some(object("a", 1)), None);
    let event = story.next().unwrap();
    story.observe(None, Some((&object("a", 2), true)));
    story.told(event);
    assert_eq!(tell(&mut story), ["-a@2"]);
}

#[test]
fn what_fails_is_told_again_as_it_is_then() {
    let mut story = Story::default();
    story.observe(Some(object("a", 1)), None);
    assert_eq!(short(&story.next().unwrap()), "+a@1!");
    story.observe(Some(object("a", 2)), None);
    assert_eq!(tell(&mut story), ["+a@2!"]);
}

#[test]
fn it_is_said_again_once_and_not_on_top_of_a_change() {
    let mut story = Story::default();
    assert!(!story.again(), "there is nothing to say");
    story.observe(Some(object("a", 1)), None);
    tell(&mut story);
    assert!(story.again());
    assert_eq!(tell(&mut story), ["=a@1"]);
    assert!(story.again());
    story.observe(Some(object("a", 2)), None);
    assert_eq!(tell(&mut story), ["~1→a@2"]);
}

proptest! {
    /// Whatever is seen, and whenever it is told: what was told, put together, is what there is.
    #[test]
    fn what_was_told_adds_up_to_what_there_is(
        steps in proptest::collection::vec((0..4_u8, proptest::bool::ANY), 0..40)
    ) {
        let (mut story, mut version, mut uid, mut now) = (Story::default(), 0, 0, None::<(u32, u64)>);
        let mut told: Option<(String, String)> = None;
        let mut in_flight = None;
        for (step, tells) in steps {
            version += 1;
            now = match step {
                0 => None,
                1 => { uid += 1; Some((uid, version)) }
                _ => now.map(|(uid, _)| (uid, version)),
            };
            // In the middle of a call or not.
            if tells {
                in_flight = story.next();
            }
            story.observe(now.map(|(uid, version)| object(&uid.to_string(), version)), None);
            if let Some(event) = in_flight.take() {
                replay(&mut told, &event)?;
                story.told(event);
            }
        }
        while let Some(event) = story.next() {
            replay(&mut told, &event)?;
            story.told(event);
        }
        prop_assert_eq!(told, now.map(|(uid, version)| (uid.to_string(), version.to_string())));
    }
}

fn replay(told: &mut Option<(String, String)>, event: &WatchEvent) -> Result<(), TestCaseError> {
    let of = |object: &Object| (object.uid().to_string(), object.version().to_string());
    match event {
        WatchEvent::Added { new, .. } => {
            prop_assert!(told.is_none(), "added twice: {:?}", told);
            *told = Some(of(new));
        }
        WatchEvent::Updated { old, new, .. } => {
            prop_assert_eq!(told.clone(), Some(of(old)));
            *told = Some(of(new));
        }
        WatchEvent::Deleted { last, .. } => {
            prop_assert_eq!(told.take().map(|(uid, _)| uid), Some(of(last).0));
        }
    }
    Ok(())
}
