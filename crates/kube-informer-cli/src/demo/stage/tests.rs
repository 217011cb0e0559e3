use kube_informer::encoding::{Codec, Encoding, Rules};
use kube_informer::object::Intake;
use serde_json::{Value, json};

use super::*;
use crate::output::Said;
use crate::style::When;

/// A stage, and the lines that it says.
struct Watched {
    stage: Stage,
    said: Said,
}

impl Watched {
    fn new() -> Self {
        let (lines, said) = Lines::said();
        Self { stage: Stage::new(lines, Style::stdout(When::Never)), said }
    }

    /// What was said, without the time and the padding.
    fn lines(&mut self) -> Vec<String> {
        let words = |line: String| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        self.said.lines().into_iter().map(words).collect()
    }
}

fn object(kind: (&str, &str), object: &Value) -> Object {
    let codec = Codec::new(Encoding::Json, kind.0, kind.1, Rules::default()).unwrap();
    Intake::new(codec).object(object.to_string().as_bytes()).unwrap()
}

fn pod(name: &str, phase: &str) -> Object {
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5c9", "uid": "1", "controller": true }]);
    let metadata = json!({ "name": name, "namespace": "shop", "uid": name, "ownerReferences": owner });
    object(("v1", "Pod"), &json!({ "metadata": metadata, "status": { "phase": phase } }))
}

fn deployment(replicas: u32, ready: u32) -> Object {
    let metadata = json!({ "name": "web", "namespace": "shop", "uid": "1" });
    let (spec, status) = (json!({ "replicas": replicas }), json!({ "readyReplicas": ready }));
    object(("apps/v1", "Deployment"), &json!({ "metadata": metadata, "spec": spec, "status": status }))
}

#[test]
fn pods_that_do_the_same_are_one_line_and_the_way_there_is_left_out() {
    let mut watched = Watched::new();
    for name in ["web-5c9-a", "web-5c9-b", "web-5c9-c"] {
        watched.stage.tell(None, Some(pod(name, "Pending")));
        watched.stage.tell(Some(pod(name, "Pending")), Some(pod(name, "Running")));
    }
    assert_eq!(watched.lines(), Vec::<String>::new(), "it waits for what follows");
    watched.stage.settle_all();
    assert_eq!(watched.lines(), ["+ 3 Pods shop/web-… created; Starting"]);
    watched.stage.tell(Some(pod("web-5c9-a", "Running")), None);
    watched.stage.settle_all();
    assert_eq!(watched.lines(), ["- Pod shop/web-5c9-a deleted"]);
    assert_eq!(watched.stage.tally(), Tally { changes: 7, lines: 2 });
}

#[test]
fn what_came_and_went_meanwhile_is_not_said() {
    let mut watched = Watched::new();
    watched.stage.tell(None, Some(pod("web-5c9-a", "Pending")));
    watched.stage.tell(Some(pod("web-5c9-a", "Pending")), None);
    watched.stage.settle_all();
    assert_eq!(watched.lines(), Vec::<String>::new());
}

#[test]
fn one_that_takes_the_name_of_another_is_said_after_its_end() {
    let mut watched = Watched::new();
    watched.stage.tell(Some(pod("db-0", "Running")), None);
    watched.stage.tell(None, Some(pod("db-0", "Pending")));
    watched.stage.settle_all();
    assert_eq!(watched.lines(), ["- Pod shop/db-0 deleted", "+ Pod shop/db-0 created; Starting"]);
}

#[test]
fn lines_about_one_object_are_in_order() {
    let mut watched = Watched::new();
    watched.stage.tell(Some(deployment(3, 0)), Some(deployment(3, 1)));
    watched.stage.tell(Some(deployment(3, 1)), Some(deployment(3, 2)));
    watched.stage.tell(Some(deployment(3, 2)), Some(deployment(5, 2)));
    assert_eq!(
        watched.lines(),
        ["~ Deployment shop/web ready 0→2 of 3", "~ Deployment shop/web replicas 3→5"]
    );
    watched.stage.tell(Some(deployment(5, 2)), Some(deployment(5, 5)));
    watched.stage.narrate("somebody looks");
    assert_eq!(watched.lines(), ["~ Deployment shop/web ready 2→5 of 5", "▸ somebody looks"]);
}

#[test]
fn what_waits_is_bounded() {
    let mut watched = Watched::new();
    for number in 0..=MOST {
        let name = format!("web-5c9-{number}");
        watched.stage.tell(None, Some(pod(&name, "Pending")));
    }
    assert_eq!(watched.lines(), [format!("+ {} Pods shop/web-… created; Starting", MOST + 1)]);
}

#[test]
fn colours_are_for_terminals() {
    let line = Line { sign: '+', kind: "Pod", name: "shop/web", text: "created" };
    assert!(line.written(Style::stdout(When::Always)).contains("\x1b[32m+ Pod"));
    assert!(!line.written(Style::stdout(When::Never)).contains('\x1b'));
}

#[test]
fn names_that_are_too_long_are_cut() {
    assert_eq!(shortened("shop/web"), "shop/web");
    let long = "ä".repeat(WIDTH);
    assert_eq!(shortened(&long), long);
    let cut = shortened(&format!("{long}ä"));
    assert!(cut.chars().count() == WIDTH && cut.ends_with("ä…"), "{cut}");
}
