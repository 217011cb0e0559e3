use super::*;

fn mistakes(text: &str) -> Vec<usize> {
    blocks(text).unwrap_err().iter().map(|mistake| mistake.line).collect()
}

fn block(script: &str, action: Action, output: &[&str]) -> Block {
    Block { line: 1, script: script.into(), action, output: output.iter().map(|s| (*s).to_owned()).collect() }
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
    assert_eq!(found[0].action, Action::Run);
    assert_eq!(found[0].output, ["done", "…"]);
    assert_eq!(found[1].action, Action::Skip { why: "it would run itself".into() });
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

async fn outcome(block: Block) -> Option<String> {
    run(&block, Path::new("."), LONG).await.unwrap()
}

#[tokio::test]
async fn a_block_that_fails_anywhere_fails() {
    assert_eq!(outcome(block("true\ntrue", Action::Run, &[])).await, None);
    let why = outcome(block("false\ntrue", Action::Run, &[])).await.unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
}

#[tokio::test]
async fn a_block_whose_output_differs_fails() {
    assert_eq!(outcome(block("echo one; echo two", Action::Run, &["two"])).await, None);
    let why = outcome(block("echo one", Action::Run, &["two"])).await.unwrap();
    assert!(why.contains("lacks the line `two`"), "{why}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_stopped_at_its_output() {
    let until = |output| block("echo listening; sleep 600", Action::RunUntilOutput, output);
    assert_eq!(outcome(until(&["listening"])).await, None);
    let why = run(&until(&["never"]), Path::new("."), Duration::from_millis(300)).await.unwrap().unwrap();
    assert!(why.contains("`never`"), "{why}");
}
