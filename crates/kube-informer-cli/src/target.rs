//! What somebody asks for: types and names, written as for `kubectl`.
//!
//! | written | means |
//! |---|---|
//! | `pods`, `po`, `Pod`, `deployments.apps`, `deploy.v1.apps` | all objects of a type |
//! | `pods,services` | all objects of several types |
//! | `pods web db` | two objects of a type |
//! | `pods,services web` | an object of each type |
//! | `pod/web deploy/web` | objects of any types |
//! | `all` | what `kubectl get all` shows |
//!
//! What a type is called, the server says. A name that it does not know is told with those that are near.

use kube_informer::connect::{Catalog, ResolveError};
use kube_informer::resource::Resource;

use crate::cluster::{Cluster, Place};
use crate::usage::Usage;

/// What to look at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TargetArgs {
    /// What to look at: TYPE, TYPE/NAME, TYPE NAME…, TYPE1,TYPE2. A type can have a version and a group:
    /// deployments.v1.apps
    #[arg(value_name = "TYPE[.VERSION][.GROUP][/NAME]", required = true, num_args = 1..)]
    words: Vec<String>,
}

/// All objects of a resource, or some by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) resource: Resource,
    /// Each once, in the order in which they were named; empty: all of them.
    pub(crate) names: Vec<String>,
}

/// More objects than these are not asked for by name: each of them has a watch of its own.
pub(crate) const MOST_NAMES: usize = 256;

/// What `kubectl get all` shows.
const ALL: [&str; 10] = [
    "pods",
    "replicationcontrollers",
    "services",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "horizontalpodautoscalers.autoscaling",
    "cronjobs.batch",
    "jobs.batch",
];

impl TargetArgs {
    /// What the words mean to a cluster.
    pub(crate) fn resolve(&self, cluster: &Cluster) -> anyhow::Result<Vec<Target>> {
        let mut targets: Vec<Target> = Vec::new();
        for (kind, names) in read(&self.words)? {
            let found = match kind {
                // Not every server serves everything of it.
                "all" => ALL.iter().filter_map(|name| cluster.catalog.resolve(name).ok()).collect(),
                kind => vec![look_up(&cluster.catalog, kind)?],
            };
            for resource in found {
                add(&mut targets, resource, &names)?;
            }
        }
        check_count(&targets, cluster.place())?;
        Ok(targets)
    }
}

/// Whether what is named is not too much: in several namespaces, a name is that of several objects.
fn check_count(targets: &[Target], place: &Place) -> Result<(), Usage> {
    let namespaces = match place {
        Place::All => 1,
        Place::Namespaces(namespaces) => namespaces.len(),
    };
    let objects =
        |target: &Target| target.names.len() * if target.resource.namespaced { namespaces } else { 1 };
    let count: usize = targets.iter().map(objects).sum();
    if count > MOST_NAMES {
        let why = format!(
            "names in {namespaces} namespaces are {count} objects, and {MOST_NAMES} are the most: take fewer of either, all of \
             a type, or -l"
        );
        return Err(Usage::new(why));
    }
    Ok(())
}

/// One resource that is named in several ways is one target.
fn add(targets: &mut Vec<Target>, resource: Resource, names: &[&str]) -> Result<(), Usage> {
    let known = targets.iter().position(|target| target.resource == resource);
    let at = known.unwrap_or(targets.len());
    if known.is_none() {
        targets.push(Target { resource, names: Vec::new() });
    }
    let Some(target) = targets.get_mut(at) else { return Ok(()) };
    if known.is_some() && target.names.is_empty() != names.is_empty() {
        let why = format!("{} are asked for by name and all of them: leave one out", target.resource);
        return Err(Usage::new(why));
    }
    for name in names {
        if !target.names.iter().any(|known| known == name) {
            target.names.push((*name).to_owned());
        }
    }
    Ok(())
}

/// Types, each with the names that were asked for.
fn read(words: &[String]) -> Result<Vec<(&str, Vec<&str>)>, Usage> {
    let named = |word: &String| word.contains('/');
    let targets = if words.iter().any(named) {
        let pairs = words.iter().map(|word| match word.split_once('/') {
            Some((kind, name)) => Ok((kind, vec![name])),
            None => Err(Usage::new(format!(
                "{word:?} has no name, and others have: write TYPE/NAME for each, or TYPE NAME… for one type"
            ))),
        });
        pairs.collect::<Result<Vec<_>, _>>()?
    } else {
        let (kinds, names) = words.split_first().ok_or_else(|| Usage::new("say what to look at: TYPE"))?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        kinds.split(',').map(|kind| (kind, names.clone())).collect()
    };
    let count: usize = targets.iter().map(|(_, names)| names.len()).sum();
    if count > MOST_NAMES {
        let why = format!("{count} names are too many, {MOST_NAMES} are the most: take all of a type, or -l");
        return Err(Usage::new(why));
    }
    for (kind, names) in &targets {
        if kind.is_empty() {
            return Err(Usage::new("a type is missing: write TYPE, TYPE/NAME or TYPE1,TYPE2"));
        }
        if *kind == "all" && !names.is_empty() {
            return Err(Usage::new("`all` is several types: names need one"));
        }
        if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
            let why = format!(
                "{wrong:?} is no name of an object: write TYPE/NAME or TYPE NAME, as pod/web; several with spaces between"
            );
            return Err(Usage::new(why));
        }
    }
    Ok(targets)
}

/// Whether an object may be called so: what a path can hold, and what means nothing in a selector.
fn is_name(name: &str) -> bool {
    let fits =
        |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '/' | '%' | ',' | '=' | '!' | '\\');
    !name.is_empty() && name != "." && name != ".." && name.len() <= 253 && name.chars().all(fits)
}

/// The resource that a type names.
pub(crate) fn look_up(catalog: &Catalog, kind: &str) -> anyhow::Result<Resource> {
    catalog.resolve(kind).map_err(|error| match error {
        ResolveError::NotFound(missing) => {
            let near = match &missing.near[..] {
                [] => String::new(),
                near => format!("; did you mean {}?", near.join(" or ")),
            };
            let unreadable = match &missing.unreadable[..] {
                [] => String::new(),
                unreadable => format!(" Could not be read: {}.", unreadable.join("; ")),
            };
            let end = if near.is_empty() { ";" } else { "" };
            anyhow::anyhow!(
                "the server has no resource {kind:?}{near}{end}{unreadable} `kubectl api-resources` lists all"
            )
        }
        error @ ResolveError::NotWatchable { .. } => anyhow::anyhow!(
            "{error}; it lists, and then hears of changes: ask `kubectl get` for what can only be read once"
        ),
        other => anyhow::anyhow!("{other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn wrong(text: &str) -> String {
        read(&words(text)).unwrap_err().to_string()
    }

    #[test]
    fn types_and_names_are_written_as_for_kubectl() {
        for (text, expected) in [
            ("pods", vec![("pods", vec![])]),
            ("pods,svc", vec![("pods", vec![]), ("svc", vec![])]),
            ("deploy.v1.apps", vec![("deploy.v1.apps", vec![])]),
            ("pods web db", vec![("pods", vec!["web", "db"])]),
            ("pods,svc web", vec![("pods", vec!["web"]), ("svc", vec!["web"])]),
            ("pod/web svc/web", vec![("pod", vec!["web"]), ("svc", vec!["web"])]),
            ("clusterrole/system:basic-user", vec![("clusterrole", vec!["system:basic-user"])]),
        ] {
            assert_eq!(read(&words(text)).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
        for (text, expected) in [
            ("pods/web svc", "TYPE/NAME for each"),
            ("pods,,svc", "a type is missing"),
            ("/web", "a type is missing"),
            ("pods/", "no name of an object"),
            ("pods/a/b", "no name of an object"),
            ("pods ..", "no name of an object"),
            ("pods a,metadata.namespace=x", "no name of an object"),
            ("all web", "several types"),
        ] {
            assert!(wrong(text).contains(expected), "{text}: {}", wrong(text));
        }
        let many: Vec<String> = (0..300).map(|number| format!("pod/p{number}")).collect();
        assert!(read(&many).unwrap_err().to_string().contains("300 names"));
    }

    #[test]
    fn a_name_in_several_namespaces_is_several_objects() {
        let names: Vec<String> = (0..MOST_NAMES).map(|number| format!("p{number}")).collect();
        let of = |resource, count: usize| Target { resource, names: names[..count].to_vec() };
        let pods = |count| of(Resource::of::<k8s_openapi::api::core::v1::Pod>(), count);
        let nodes = |count| of(Resource::of::<k8s_openapi::api::core::v1::Node>(), count);
        let check = |targets: &[Target], namespaces: usize| {
            let named = (0..namespaces).map(|number| format!("n{number}")).collect();
            check_count(targets, &Place::Namespaces(named))
        };
        assert!(check(&[pods(MOST_NAMES)], 1).is_ok());
        assert!(check(&[nodes(MOST_NAMES)], 50).is_ok(), "they are in no namespace");
        assert!(check(&[pods(MOST_NAMES / 2)], 2).is_ok());
        assert!(check(&[pods(0)], 1000).is_ok(), "one watch in each");
        let many = check(&[pods(100), nodes(57)], 2).unwrap_err().to_string();
        assert!(many.contains("2 namespaces are 257 objects, and 256 are the most"), "{many}");
        assert!(check_count(&[pods(MOST_NAMES)], &Place::All).is_ok());
    }

    #[test]
    fn one_resource_is_one_target_however_it_is_called() {
        let pods = Resource::of::<k8s_openapi::api::core::v1::Pod>();
        let mut targets = Vec::new();
        add(&mut targets, pods.clone(), &["a", "a"]).unwrap();
        add(&mut targets, pods.clone(), &["b", "a"]).unwrap();
        assert_eq!(targets, [Target { resource: pods.clone(), names: vec!["a".to_owned(), "b".to_owned()] }]);
        assert!(add(&mut targets, pods, &[]).is_err());
    }
}
