//! From what people call a resource to what the server calls it, as `kubectl` does it.
//!
//! `deployments`, `deployment`, `deploy`, `Deployment`, each alone or with a group, or with a version and a group:
//! `deployments.apps`, `Deployment.v1.apps`. Plural and singular names come before short ones, those before kinds; where
//! several groups have a name, the one that the server puts first; a group may be written as its beginning.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::Connection;
use super::discovery::{Discovery, Group, Served};
use crate::resource::Resource;

/// A name that is no resource which could be kept up to date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The server does not say what it serves.
    #[error("{name:?} cannot be looked up: {reason}")]
    Discovery {
        /// What was asked for.
        name: String,
        /// What went wrong.
        reason: String,
    },
    /// The server has no such resource.
    #[error("{0}")]
    NotFound(Box<NotFound>),
    /// The server has the resource, but it cannot be listed and watched.
    #[error("{resource} cannot be listed and watched, only: {}", verbs.join(", "))]
    NotWatchable {
        /// As the server calls it.
        resource: String,
        /// What can be done with it.
        verbs: Vec<String>,
    },
}

/// The server does not say what it serves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what the server serves cannot be read: {reason}")]
#[non_exhaustive]
pub struct CatalogError {
    /// What went wrong.
    pub reason: String,
}

/// What was looked for in vain, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFound {
    /// What was asked for.
    pub name: String,
    /// The groups that were looked at; the core group has no name.
    pub groups: Vec<String>,
    /// What may have been meant.
    pub near: Vec<String>,
    /// What could not be read: it may be there.
    pub unreadable: Vec<String>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server has no resource {:?}", self.name)?;
        if !self.near.is_empty() {
            write!(f, "; did you mean {}?", self.near.join(", "))?;
        }
        let named: Vec<&str> =
            self.groups.iter().map(|group| if group.is_empty() { "core" } else { group.as_str() }).collect();
        write!(f, " Looked at: {}", if named.is_empty() { "nothing".to_owned() } else { named.join(", ") })?;
        if !self.unreadable.is_empty() {
            write!(f, ". Could not be read: {}", self.unreadable.join("; "))?;
        }
        Ok(())
    }
}

impl Connection {
    /// The resource that a name means.
    ///
    /// # Errors
    ///
    /// Where the server does not serve such a resource, or not in a way that it could be kept up to date.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Resource, ResolveError> {
        match self.discover().await {
            Ok(discovery) => find(&discovery, name),
            Err(fault) => Err(ResolveError::Discovery { name: name.to_owned(), reason: fault.to_string() }),
        }
    }

    /// What the server serves now.
    ///
    /// # Errors
    ///
    /// Where it does not say that.
    pub(crate) async fn catalog(&self) -> Result<Catalog, CatalogError> {
        let discovery = self.discover().await.map_err(|fault| CatalogError { reason: fault.to_string() })?;
        Ok(Catalog { discovery: Arc::new(discovery) })
    }
}

/// What the server serves, as it was at one moment: names can be looked up without asking again. A clone is the same.
#[derive(Debug, Clone)]
pub struct Catalog {
    discovery: Arc<Discovery>,
}

impl Catalog {
    /// The resource that is named as for `kubectl`.
    ///
    /// # Errors
    ///
    /// Where the server did not serve such a resource, or not in a way that it could be kept up to date.
    pub fn resolve(&self, name: &str) -> Result<Resource, ResolveError> {
        find(&self.discovery, name)
    }

    /// Everything that can be kept up to date, in the server's order; each in the version that the server prefers, or the
    /// first that has it.
    #[must_use]
    pub fn resources(&self) -> Vec<Resource> {
        let mut all = Vec::new();
        for group in &self.discovery.groups {
            let mut known = BTreeSet::new();
            for version in &group.versions {
                let watchable = version.resources.iter().filter(|served| served.is_watchable());
                let new = watchable.filter(|served| known.insert(&served.plural));
                all.extend(new.map(|served| resource(group, &version.name, served)));
            }
        }
        all
    }
}

/// One way to read a name.
#[derive(Debug, Clone, Copy)]
struct Reading<'n> {
    word: &'n str,
    version: Option<&'n str>,
    group: Option<&'n str>,
}

/// How a word may name a resource, the strongest first.
const NAMES: [fn(&Served, &str) -> bool; 3] = [
    |served, word| {
        let word = word.to_lowercase();
        served.plural == word || served.singular == word
    },
    |served, word| served.short_names.iter().any(|short| short.eq_ignore_ascii_case(word)),
    |served, word| served.kind.eq_ignore_ascii_case(word),
];

fn find(discovery: &Discovery, name: &str) -> Result<Resource, ResolveError> {
    for reading in readings(name) {
        for beginning in [false, true] {
            let groups: Vec<&Group> =
                discovery.groups.iter().filter(|group| reading.is_of(group, beginning)).collect();
            for names in NAMES {
                if let Some(found) = groups
                    .iter()
                    .find_map(|group| in_group(group, &reading, |served| names(served, reading.word)))
                {
                    return found;
                }
            }
        }
    }
    Err(ResolveError::NotFound(Box::new(NotFound {
        name: name.to_owned(),
        groups: discovery.groups.iter().map(|group| group.name.clone()).collect(),
        near: near(discovery, name),
        unreadable: discovery.unreadable.clone(),
    })))
}

/// A name with two dots has a version, or a group of two words.
fn readings(name: &str) -> impl Iterator<Item = Reading<'_>> {
    let (word, rest) = match name.split_once('.') {
        Some((word, rest)) => (word, Some(rest)),
        None => (name, None),
    };
    let versioned = rest.and_then(|rest| rest.split_once('.')).map(|(version, group)| Reading {
        word,
        version: Some(version),
        group: Some(group),
    });
    versioned.into_iter().chain([Reading { word, version: None, group: rest }])
}

impl Reading<'_> {
    fn is_of(&self, group: &Group, beginning: bool) -> bool {
        match self.group {
            None => !beginning,
            Some(name) if !beginning => group.name == name,
            // What has no name has no beginning.
            Some(name) => !name.is_empty() && group.name != name && group.name.starts_with(name),
        }
    }
}

/// What a group has by a name, in the version that the server prefers, or that was asked for. Other versions may do what
/// that one cannot.
fn in_group(
    group: &Group,
    reading: &Reading<'_>,
    is_named: impl Fn(&Served) -> bool,
) -> Option<Result<Resource, ResolveError>> {
    let versions =
        group.versions.iter().filter(|version| reading.version.is_none_or(|wanted| wanted == version.name));
    let mut found = versions.flat_map(|version| {
        version
            .resources
            .iter()
            .filter(|served| is_named(served))
            .map(|served| (version.name.as_str(), served))
    });
    let first = found.next()?;
    let watchable = std::iter::once(first).chain(found).find(|(_, served)| served.is_watchable());
    Some(match watchable {
        Some((version, served)) => Ok(resource(group, version, served)),
        None => Err(ResolveError::NotWatchable {
            resource: resource(group, first.0, first.1).to_string(),
            verbs: first.1.verbs.clone(),
        }),
    })
}

fn resource(group: &Group, version: &str, served: &Served) -> Resource {
    Resource {
        group: group.name.clone(),
        version: version.to_owned(),
        plural: served.plural.clone(),
        kind: served.kind.clone(),
        namespaced: served.namespaced,
    }
}

/// What may have been meant: the same word of another group, or a word that differs in few letters.
fn near(discovery: &Discovery, name: &str) -> Vec<String> {
    let word = name.split('.').next().unwrap_or(name).to_lowercase();
    let mut near: Vec<(usize, String)> = Vec::new();
    for group in &discovery.groups {
        for served in group.versions.iter().flat_map(|version| &version.resources) {
            let names = [&served.plural, &served.singular].into_iter().chain(&served.short_names);
            let Some(distance) = names.filter_map(|name| distance(&word, name)).min() else { continue };
            let whole = match group.name.as_str() {
                "" => served.plural.clone(),
                group => format!("{}.{group}", served.plural),
            };
            if served.is_watchable() && !near.iter().any(|(_, known)| *known == whole) {
                near.push((distance, whole));
            }
        }
    }
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(3);
    near.into_iter().map(|(_, whole)| whole).collect()
}

/// In how many letters two words differ, or pairs of them that have changed places, where that is few for their length.
fn distance(a: &str, b: &str) -> Option<usize> {
    let most = a.len().min(b.len()) / 3;
    // Names have at most some dozens of letters; what is longer is near to nothing.
    if a.len().abs_diff(b.len()) > most || a.len() > 64 {
        return None;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // The two rows above of the usual table.
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
    for (i, left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in b.iter().enumerate() {
            let changed = cell(&above, j) + usize::from(left != right);
            let mut least = changed.min(cell(&above, j + 1) + 1).min(cell(&row, j) + 1);
            // Two letters that have changed places are one mistake.
            if let (Some(last), Some(i)) = (j.checked_sub(1), i.checked_sub(1))
                && a.get(i) == Some(right)
                && b.get(last) == Some(left)
            {
                least = least.min(cell(&before, last) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests;
