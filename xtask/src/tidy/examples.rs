//! `examples`: who looks for an example finds all there are, and no others.
//!
//! - [`INDEX`] links to each example of each crate, by its name: `[name](…/name.rs)`. That such a file is there, `links` checks.
//! - A README with a heading `Examples` names those of its own crate in the first sentence below it: ``…: `one`, `two`.``

use std::collections::BTreeMap;

use super::modules::join;
use super::{Finding, Tree, links};

/// The list of all of them.
const INDEX: &str = "crates/kube-informer/examples/README.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let examples = examples(tree);
    let mut findings = index(tree, &examples);
    for (folder, names) in &examples {
        let readme = format!("{folder}/README.md");
        findings.extend(section(&readme, tree.get(&readme).unwrap_or_default(), names));
    }
    findings
}

/// The folders of crates that have examples, and what these are called.
fn examples(tree: &Tree) -> BTreeMap<&str, Vec<&str>> {
    let mut examples = BTreeMap::<&str, Vec<&str>>::new();
    for (path, _) in tree.with_extension("rs").filter(|(path, _)| path.starts_with("crates/")) {
        if let Some((folder, file)) = path.split_once("/examples/")
            && let Some(name) = file.strip_suffix(".rs").filter(|name| !name.contains('/'))
        {
            examples.entry(folder).or_default().push(name);
        }
    }
    examples
}

/// What the list of all of them lacks, or calls something else.
fn index(tree: &Tree, examples: &BTreeMap<&str, Vec<&str>>) -> Vec<Finding> {
    let Some(text) = tree.get(INDEX) else {
        let is_needed = !examples.is_empty();
        return is_needed
            .then(|| Finding::new("examples", INDEX, 0, "there is no such list"))
            .into_iter()
            .collect();
    };
    let folder = INDEX.trim_end_matches("/README.md");
    let is_linked = |name: &str, file: &str| {
        let begin = format!("[{name}](");
        text.lines()
            .filter_map(|line| line.find(&begin).map(|at| &line[at..]))
            .any(|link| links::targets(link).first().is_some_and(|target| join(folder, target) == file))
    };
    let mut findings = Vec::new();
    for (crate_folder, names) in examples {
        for name in names {
            let file = format!("{crate_folder}/examples/{name}.rs");
            if !is_linked(name, &file) {
                let message = format!("has no link [{name}] to {file}");
                findings.push(Finding::new("examples", INDEX, 0, message));
            }
        }
    }
    findings
}

/// What the section of a README lacks, or has and should not.
fn section(readme: &str, text: &str, names: &[&str]) -> Vec<Finding> {
    let is_heading = |line: &str| line.starts_with('#') && line.trim_matches(['#', ' ']) == "Examples";
    let Some(at) = text.lines().position(is_heading) else { return Vec::new() };
    let below = text.lines().skip(at + 1).skip_while(|line| line.is_empty());
    let paragraph: Vec<&str> = below.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let list = paragraph.split_once(": ").map_or("", |(_, rest)| rest.split(". ").next().unwrap_or_default());
    let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let finding = |message| Finding::new("examples", readme, at + 1, message);
    let missing = names.iter().filter(|name| !named.contains(name));
    let missing = missing.map(|name| finding(format!("does not name the example `{name}`")));
    let unknown = named.iter().filter(|name| !names.contains(name));
    missing.chain(unknown.map(|name| finding(format!("there is no example `{name}`")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
| [one](one.rs) | shows |
| [two](two.rs) | shows |
| [three](../../b/examples/three.rs), of `b` | shows |
";
    const README: &str = "# A\n\nIt has: `much`.\n\n## Examples\n\n[examples](x) are programs: `two`,\n`one`. They take `kubectl`'s.\n\n`no`\n";

    fn found(list: &str, readme: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (INDEX, list),
            ("crates/kube-informer/README.md", readme),
            ("crates/kube-informer/examples/one.rs", ""),
            ("crates/kube-informer/examples/two.rs", ""),
            ("crates/kube-informer/examples/two/part.rs", ""),
            ("crates/b/README.md", "# B\n"),
            ("crates/b/examples/three.rs", ""),
            ("bench/c/examples/four.rs", ""),
        ]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lists_that_have_all_there_are_are_fine() {
        assert_eq!(found(LIST, README), Vec::<String>::new());
        assert_eq!(found(LIST, "# A\n"), Vec::<String>::new(), "who lists none has no list");
    }

    #[test]
    fn an_example_that_is_not_in_the_list_of_all_is_found() {
        let of_b = "has no link [three] to crates/b/examples/three.rs";
        assert_eq!(found(&LIST.replace("three.rs", "one.rs"), README), [of_b]);
        assert_eq!(found(&LIST.replace("[three]", "[four]"), README), [of_b]);
        assert_eq!(found("", README).len(), 3);
        let tree = Tree::of(&[("crates/b/examples/three.rs", "")]);
        assert_eq!(check(&tree).len(), 1, "a list there has to be");
    }

    #[test]
    fn a_section_that_lacks_one_or_names_another_is_found() {
        assert_eq!(found(LIST, &README.replace("`two`,\n", "")), ["does not name the example `two`"]);
        assert_eq!(found(LIST, &README.replace("`one`", "`one`, `zero`")), ["there is no example `zero`"]);
        assert_eq!(found(LIST, "## Examples\n\nThere are some.\n").len(), 2);
    }
}
