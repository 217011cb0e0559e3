//! `links`: a Markdown link to a file of the repository finds it.
//!
//! Inline links `[text](target)` and definitions `[name]: target`, outside of code.
//! Links to the web are not followed; of `file.md#part` only the file is checked.

use super::modules::join;
use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, line) in prose(text) {
            for target in targets(&line) {
                if target.contains("://") || target.starts_with("mailto:") || target.starts_with('#') {
                    continue;
                }
                let file = target.split(['#', '?']).next().unwrap_or_default();
                let file = match file.strip_prefix('/') {
                    Some(from_root) => join("", from_root),
                    None => join(folder, file),
                };
                if !tree.has(&file) {
                    findings.push(Finding::new("links", path, number, format!("there is no {target}")));
                }
            }
        }
    }
    findings
}

/// The lines outside of fenced code, with inline code blanked.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<String> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let mark: String = trimmed.chars().take_while(|c| matches!(c, '`' | '~')).collect();
        match &fence {
            Some(open) if mark.starts_with(open.as_str()) => fence = None,
            Some(_) => {}
            None if mark.len() >= 3 => fence = Some(mark),
            None => lines.push((number, line.split('`').step_by(2).collect::<Vec<_>>().join("``"))),
        }
    }
    lines
}

pub(super) fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let rest = &line[at + 2..];
        if let Some(end) = rest.find(')') {
            // `(target "title")`
            found.extend(rest[..end].split_whitespace().next());
        }
    }
    if line.starts_with('[')
        && let Some((name, target)) = line.split_once("]: ")
        && !name.starts_with("[^")
    {
        found.extend(target.split_whitespace().next());
    }
    found.into_iter().map(|target| target.trim_start_matches('<').trim_end_matches('>')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("src/lib.rs", "")]);
        check(&tree).into_iter().map(|finding| (finding.message, finding.line)).collect()
    }

    #[test]
    fn links_that_resolve_are_fine() {
        let text = "\
[b](b.md), [part](b.md#x \"title\"), [up](../src/lib.rs), [folder](../src), [root](/docs/b.md)
[web](https://example.com/none), [here](#part), <mailto:a@b>
[name]: b.md
";
        assert_eq!(found(text), []);
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(found("fine\n[c](c.md)"), [("there is no c.md".to_owned(), 2)]);
        assert_eq!(found("[name]: ../c.md"), [("there is no ../c.md".to_owned(), 1)]);
        assert_eq!(found("[a](b.md) and [c](c.md#x)").len(), 1);
    }

    #[test]
    fn code_is_no_prose() {
        assert_eq!(found("`[c](c.md)`\n```text\n[c](c.md)\n```\n"), []);
    }
}
