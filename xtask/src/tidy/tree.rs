//! The text files of the repository, in memory.
//!
//! Tracked files and new ones that git does not ignore; without git (an unpacked
//! archive), every file outside of hidden folders and `target`. Files that are not
//! UTF-8 text are known by name only.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// Relative paths with `/` between the parts, and the text of each.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let names = match git_files(root) {
            Some(names) => names,
            None => {
                let mut names = Vec::new();
                walk(root, "", &mut names)?;
                names
            }
        };
        let mut files = BTreeMap::new();
        for name in names {
            match std::fs::read(root.join(&name)) {
                Ok(bytes) => drop(files.insert(name, String::from_utf8(bytes).ok())),
                // Deleted and not yet committed, or a link to a folder.
                Err(_) if !root.join(&name).is_file() => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
            }
        }
        Ok(Tree { files })
    }

    /// A tree for a test of a rule.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Tree {
            files: files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether there is a file or a folder of this name.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(file, _)| file.starts_with(&folder))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, end)| end == extension))
    }
}

fn git_files(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).ok()?;
    Some(names.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path, folder: &str, names: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in
        std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot read folder {folder:?}"))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            let hidden = name.starts_with('.') && ![".ci", ".cargo", ".github"].contains(&name.as_str());
            if !hidden && path != "target" {
                walk(root, &path, names)?;
            }
        } else {
            names.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_known_by_their_files() {
        let tree = Tree::of(&[("a/b.md", ""), ("ab.md", "")]);
        assert!(tree.has("a") && tree.has("a/") && tree.has("a/b.md") && tree.has("ab.md"));
        assert!(!tree.has("b") && !tree.has("a/b"));
    }

    #[test]
    fn this_repository_is_read() {
        let root = crate::root();
        let tree = Tree::read(&root).unwrap();
        assert!(tree.get("Cargo.toml").is_some());
        assert!(!tree.has("target"));

        let mut names = Vec::new();
        walk(&root, "", &mut names).unwrap();
        assert!(names.contains(&".ci/run".to_owned()));
        assert!(!names.iter().any(|name| name.starts_with("target/") || name.starts_with(".git/")));
    }
}
