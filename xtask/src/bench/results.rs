//! The part of a document that a benchmark writes: what stands between two comments.

use std::path::Path;

use anyhow::{Context, Result};

const END: &str = "<!-- end of what it writes -->\n";

/// Puts what `cargo xtask bench NAME` found into `bench/RESULTS.md`.
pub(super) fn write(root: &Path, name: &str, section: &str) -> Result<()> {
    let path = root.join("bench/RESULTS.md");
    let text = std::fs::read_to_string(&path).context("cannot read bench/RESULTS.md")?;
    std::fs::write(&path, put(&text, name, section)?).context("cannot write bench/RESULTS.md")?;
    eprintln!("written to bench/RESULTS.md");
    Ok(())
}

/// The document with this between the comments.
fn put(document: &str, name: &str, section: &str) -> Result<String> {
    let begin = begin(name);
    let (before, rest) =
        document.split_once(&begin).with_context(|| format!("bench/RESULTS.md has no {begin:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("bench/RESULTS.md has no {END:?}"))?;
    Ok(format!("{before}{begin}\n{section}\n{END}{after}"))
}

fn begin(name: &str) -> String {
    format!("<!-- written by: cargo xtask bench {name} -->\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_comments_is_replaced() {
        let of = |one: &str, other: &str| {
            let (a, b) = (begin("a"), begin("b"));
            format!("# A\n\n{a}\n{one}\n\n{END}\nB\n\n{b}\n{other}\n\n{END}")
        };
        assert_eq!(put(&of("old", "old"), "a", "new\n").unwrap(), of("new", "old"));
        assert_eq!(put(&of("old", "old"), "b", "new\n").unwrap(), of("old", "new"));
        assert!(put(&of("old", "old"), "c", "new").is_err());
        assert!(put("# A\n", "a", "new").is_err());
    }
}
