//! The part of a document that a benchmark writes: what stands between two comments.

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- written by: cargo xtask bench sync -->\n";
const END: &str = "<!-- end of what it writes -->\n";

/// The document with this between the comments.
pub(super) fn put(document: &str, section: &str) -> Result<String> {
    let (before, rest) =
        document.split_once(BEGIN).with_context(|| format!("bench/RESULTS.md has no {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("bench/RESULTS.md has no {END:?}"))?;
    Ok(format!("{before}{BEGIN}\n{section}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_comments_is_replaced() {
        let document = format!("# A\n\n{BEGIN}\nold\n\n{END}\nB\n");
        assert_eq!(put(&document, "new\n").unwrap(), format!("# A\n\n{BEGIN}\nnew\n\n{END}\nB\n"));
        assert!(put("# A\n", "new").is_err());
    }
}
