use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::Identity;

use super::expect::{Expect, matches};
use super::*;

fn mistakes(text: &str) -> Vec<usize> {
    blocks(text).unwrap_err().iter().map(|mistake| mistake.line).collect()
}

fn block(script: &str, action: Action, output: &[&str]) -> Block {
    Block { line: 1, script: script.into(), action, output: output.iter().map(|s| (*s).to_owned()).collect() }
}

const fn run(place: Place) -> Action {
    Action::Run { place, until_output: false }
}

const fn until_output(place: Place) -> Action {
    Action::Run { place, until_output: true }
}

#[test]
fn blocks_are_found_with_what_is_to_be_done() {
    let text = "\
# Title
<!-- test: run -->
```sh
cargo build
cargo test
```
<!-- test: output -->
```text
done

…
```
<!-- test: skip: it would run itself -->

```sh
cargo xtask test
```
```rust
fn main() {}
```
";
    let found = blocks(text).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].line, 3);
    assert_eq!(found[0].script, "cargo build\ncargo test");
    assert_eq!(found[0].action, run(Place::Here));
    assert_eq!(found[0].output, ["done", "…"]);
    assert_eq!(found[1].action, Action::Skip { why: "it would run itself".into() });
}

#[test]
fn every_place_can_be_named_with_and_without_until_output() {
    for (words, place) in [
        ("run", Place::Here),
        ("run as installed", Place::Installed),
        ("run on the embedded server", Place::Embedded),
        ("run on the demo", Place::Demo),
        ("run in another terminal", Place::OtherTerminal),
        ("run with control plane", Place::ControlPlane),
    ] {
        assert_eq!(action(words), Some(run(place)));
        assert_eq!(action(&format!("{words} until output")), Some(until_output(place)));
    }
    for other in ["runs", "run on the moon", "until output", "run until output on the demo"] {
        assert_eq!(action(other), None, "{other}");
    }
}

#[test]
fn another_terminal_is_beside_a_block_that_goes_on() {
    let other = "<!-- test: run in another terminal -->\n```sh\nls\n```\n";
    let ends = "<!-- test: run -->\n```sh\nls\n```\n";
    let goes_on = "<!-- test: run until output -->\n```sh\nls\n```\n<!-- test: output -->\n```text\nx\n```\n";
    assert_eq!(mistakes(other), [2]);
    assert_eq!(mistakes(&format!("{ends}{other}")), [6]);
    let found = blocks(&format!("{ends}{goes_on}{other}{other}{ends}")).unwrap();
    assert_eq!(scenes(&found).map(<[Block]>::len).collect::<Vec<_>>(), [1, 3, 1]);
}

#[test]
fn a_shell_block_without_a_word_is_a_mistake() {
    assert_eq!(mistakes("```sh\nls\n```\n"), [1]);
}

#[test]
fn a_word_that_belongs_to_another_paragraph_does_not_count() {
    assert_eq!(mistakes("<!-- test: run -->\n\ntext\n\n```sh\nls\n```\n"), [5]);
}

#[test]
fn skipping_needs_a_reason() {
    assert_eq!(mistakes("<!-- test: skip: -->\n```sh\nls\n```\n"), [2]);
    assert_eq!(mistakes("<!-- test: skip -->\n```sh\nls\n```\n"), [2]);
}

#[test]
fn other_names_of_the_shell_are_mistakes() {
    assert_eq!(mistakes("<!-- test: run -->\n```bash\nls\n```\n"), [2]);
    assert_eq!(mistakes("```console\n$ ls\n```\n"), [1]);
}

#[test]
fn output_without_a_command_is_a_mistake() {
    assert_eq!(mistakes("<!-- test: output -->\n```text\nx\n```\n"), [2]);
    assert_eq!(mistakes("<!-- test: run until output -->\n```sh\nls\n```\n"), [2]);
    assert_eq!(mistakes("<!-- test: run -->\n```rust\n```\n"), [2]);
}

#[test]
fn rust_blocks_are_found_unless_excepted() {
    assert_eq!(rust_block("# A\n```rust,no_run\nfn main() {}\n```\n"), Some(2));
    let excepted = "<!-- test: skip: not valid on purpose -->\n```rust\n```\n";
    assert_eq!((rust_block(excepted), blocks(excepted)), (None, Ok(vec![])));
}

#[test]
fn a_fence_inside_a_longer_fence_is_text() {
    assert_eq!(blocks("````text\n```sh\nls\n```\n````\n"), Ok(vec![]));
}

#[test]
fn expected_lines_are_found_in_order() {
    let lines = ["a …".to_owned(), "…".to_owned(), "b".to_owned()];
    let mut expect = Expect::new(&lines);
    for line in ["b", "a 1", "noise"] {
        expect.line(line);
    }
    assert_eq!(expect.missing(), Some("b"));
    expect.line("b");
    assert_eq!(expect.missing(), None);
}

#[test]
fn an_ellipsis_stands_for_anything() {
    assert!(matches("+ …/web-… ready", "+ default/web-1 ready"));
    assert!(matches("…", ""));
    assert!(!matches("+ …/web", "+ default/web-1"));
    assert!(!matches("exact", "exactly"));
}

const LONG: Duration = Duration::from_secs(60);

/// Blocks run with the stand-in; why each one failed.
async fn played(limit: Duration, scene: &[Block]) -> Vec<Option<String>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stage = Stage::new(here, limit).with_binary(here.join("src/docs/stand-in.sh"));
    let why = |outcome| match outcome {
        Outcome::Passed => None,
        Outcome::Failed(why) => Some(why),
        Outcome::LeftOut(unavailable) => panic!("{unavailable}"),
    };
    stage.play(scene).await.into_iter().map(why).collect()
}

async fn outcome(block: Block) -> Option<String> {
    played(LONG, &[block]).await.swap_remove(0)
}

#[tokio::test]
async fn a_block_that_fails_anywhere_fails() {
    assert_eq!(outcome(block("true\ntrue", run(Place::Here), &[])).await, None);
    let why = outcome(block("false\ntrue", run(Place::Here), &[])).await.unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
}

#[tokio::test]
async fn a_block_whose_output_differs_fails() {
    assert_eq!(outcome(block("echo one; echo two", run(Place::Here), &["two"])).await, None);
    let why = outcome(block("echo one", run(Place::Here), &["two"])).await.unwrap();
    assert!(why.contains("lacks the line `two`"), "{why}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_stopped_at_its_output() {
    let until = |output| block("echo listening; sleep 600", until_output(Place::Here), output);
    assert_eq!(outcome(until(&["listening"])).await, None);
    let why = played(Duration::from_millis(300), &[until(&["never"])]).await.swap_remove(0).unwrap();
    assert!(why.contains("`never`") && why.contains("its limit"), "{why}");
}

/// A file for what a block has seen.
struct Seen(PathBuf);

impl Seen {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("xtask-docs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_home_is_empty_and_has_the_binary_and_goes_away() {
    let seen = Seen::new("home");
    let script = format!(
        "pwd > {0}; echo $HOME >> {0}; ls >> {0}; kube-informer a b; echo ${{KUBECONFIG-none}}",
        seen.0.display()
    );
    assert_eq!(outcome(block(&script, run(Place::Installed), &["called with a b", "none"])).await, None);
    let lines = seen.lines();
    let [folder, home] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(folder, home);
    assert!(!Path::new(home).exists());
    assert_ne!(Some(home.into()), std::env::var_os("HOME"));
}

#[tokio::test]
async fn a_server_is_there_for_its_block_and_ends_however_that_ends() {
    for place in [Place::Embedded, Place::Demo] {
        let seen = Seen::new(&format!("server-{place:?}"));
        let script = format!("kill -0 $(cat $KUBECONFIG); cat $KUBECONFIG > {}; echo up", seen.0.display());
        for (rest, action, failure) in [
            ("", run(place), None),
            ("sleep 600", until_output(place), None),
            ("exit 7", run(place), Some("exit status: 7")),
        ] {
            let why = outcome(block(&format!("{script}; {rest}"), action, &["up"])).await;
            assert_eq!(why.as_deref(), failure);
            let server: u32 = seen.lines()[0].parse().unwrap();
            assert_eq!(Identity::of(server).filter(Identity::is_alive), None, "{place:?}: {rest:?}");
        }
    }
}

#[tokio::test]
async fn output_that_does_not_come_ends_the_server_and_the_block() {
    let seen = Seen::new("deadline");
    let script = format!("echo $$ > {0}; cat $KUBECONFIG >> {0}; echo up; sleep 600", seen.0.display());
    let scene = [block(&script, until_output(Place::Embedded), &["never"])];
    let why = played(Duration::from_secs(5), &scene).await.swap_remove(0).unwrap();
    assert!(why.contains("lacks the line `never` (killed after 5 s"), "{why}");
    // On a machine that is too busy for the first line, there is nobody to look for.
    for process in std::fs::read_to_string(&seen.0).unwrap_or_default().lines() {
        let id = process.parse().unwrap();
        eventually("it is gone", LONG, async || {
            Identity::of(id).filter(Identity::is_alive).is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_ends_by_itself_fails_its_block() {
    let why = outcome(block("kill $(cat $KUBECONFIG); while kill -0 $(cat $KUBECONFIG) 2>/dev/null && ! grep -q ') Z ' /proc/$(cat $KUBECONFIG)/stat; do sleep 0.01; done", run(Place::Embedded), &[])).await;
    assert!(why.as_deref().is_some_and(|why| why.contains("has ended before its block")), "{why:?}");
}

#[tokio::test]
async fn a_block_in_another_terminal_runs_while_the_one_before_it_does() {
    let seen = Seen::new("terminals");
    let first = format!("echo $$ > {}; echo $HOME; echo ready; sleep 600", seen.0.display());
    let first = block(&first, until_output(Place::Installed), &["ready"]);
    let alive = format!("kill -0 $(cat {}); ls -d $HOME; kube-informer x", seen.0.display());
    let other = |script: &str, output| block(script, run(Place::OtherTerminal), output);
    let scene = [first, other(&alive, &["called with x"]), other("exit 5", &[]), other(&alive, &[])];
    let whys = played(LONG, &scene).await;
    assert_eq!(whys, [None, None, Some("exit status: 5".to_owned()), None]);
    let first = seen.lines()[0].parse().unwrap();
    assert_eq!(Identity::of(first).filter(Identity::is_alive), None);
}

#[tokio::test]
async fn what_is_beside_a_block_that_has_ended_fails() {
    let first = block("echo ready; exit 3", until_output(Place::Here), &["ready", "more"]);
    let other = block("true", run(Place::OtherTerminal), &[]);
    let whys = played(LONG, &[first, other]).await;
    assert!(whys[0].as_deref().is_some_and(|why| why.contains("`more`")), "{whys:?}");
    assert!(whys[1].as_deref().is_some_and(|why| why.contains("has ended")), "{whys:?}");
}

#[tokio::test]
async fn ports_are_exchanged_for_free_ones_in_all_terminals() {
    let first = "echo 127.0.0.1:8080 | grep -v ':8080$'; sleep 600";
    let scene = [
        block(first, until_output(Place::Here), &["127.0.0.1:8080"]),
        block("echo at 127.0.0.1:8080", run(Place::OtherTerminal), &["at 127.0.0.1:8080"]),
    ];
    assert_eq!(played(LONG, &scene).await, [None, None]);
}
