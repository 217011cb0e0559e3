use super::expect::{Expect, matches};
use super::*;

fn mistakes(text: &str) -> Vec<usize> {
    blocks(text).unwrap_err().iter().map(|mistake| mistake.line).collect()
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

#[test]
fn what_is_run_must_not_say_some_things_and_what_is_left_out_may() {
    for script in ["server &", "a | b", "curl http://localhost:80", "cargo xtask control-plane up"] {
        assert_eq!(mistakes(&format!("<!-- test: run -->\n```sh\n{script}\n```\n")), [2], "{script}");
        assert!(blocks(&format!("<!-- test: skip: so -->\n```sh\n{script}\n```\n")).is_ok(), "{script}");
    }
}

#[test]
fn the_binary_is_wanted_by_those_who_call_it() {
    let wants = |words: &str, script: &str| {
        let output = "<!-- test: output -->\n```text\nx\n```\n";
        let text = format!("<!-- test: {words} -->\n```sh\n{script}\n```\n{output}");
        blocks(&text).unwrap()[0].wants_binary()
    };
    for words in ["run as installed", "run on the demo", "run on the embedded server until output"] {
        assert!(wants(words, "true"), "{words}");
    }
    assert!(wants("run", "cargo run --release -- demo") && !wants("run", "cargo build"));
    assert!(!wants("skip: so", "cargo run --release -- demo"));
}
