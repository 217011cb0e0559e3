//! What could follow on a command line: commands, flags and their values; and what only a cluster can tell.

use clap::{Arg, Command, ValueHint};

/// What the last word may become.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// Each with what it is.
    pub(super) candidates: Vec<(String, String)>,
    /// Whether a file may stand there.
    pub(super) files: bool,
    /// What else may stand there, and only a cluster knows.
    pub(super) wish: Option<Wish>,
    /// The flags that say which cluster, as they were given.
    pub(super) cluster: Vec<String>,
}

/// What a cluster is to be asked for: all that begins like this. What stands before it stays.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Names of types.
    Types { before: String, begun: String },
    /// Names of objects of a type.
    Names { of: String, before: String, begun: String },
}

/// Flags that say which cluster, and which part of it.
const CLUSTER: [&str; 6] = ["kubeconfig", "context", "as", "as-group", "namespace", "all-namespaces"];

/// Types that people ask for, where no cluster says which ones there are.
pub(super) const TYPES: [&str; 24] = [
    "configmaps",
    "cronjobs",
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "endpointslices",
    "events",
    "horizontalpodautoscalers",
    "ingresses",
    "jobs",
    "leases",
    "namespaces",
    "networkpolicies",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "replicasets",
    "secrets",
    "serviceaccounts",
    "services",
    "statefulsets",
    "storageclasses",
];

/// Completes the last of the words that follow the binary's name; it may be empty.
pub(super) fn complete(root: &Command, words: &[String]) -> Completion {
    let mut root = root.clone();
    root.build();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let mut place = Place {
        command: &root,
        positional: Vec::new(),
        value_of: None,
        only_values: false,
        cluster: Vec::new(),
    };
    for word in before {
        place.step(word);
    }
    place.complete(last)
}

/// Where on the line it is.
struct Place<'c> {
    command: &'c Command,
    /// Arguments without a flag.
    positional: Vec<String>,
    /// The flag whose value comes next.
    value_of: Option<&'c Arg>,
    /// Whether `--` was seen.
    only_values: bool,
    /// The flags that say which cluster.
    cluster: Vec<String>,
}

impl<'c> Place<'c> {
    fn step(&mut self, word: &str) {
        if let Some(flag) = self.value_of.take() {
            if says_cluster(flag) {
                self.cluster.push(word.to_owned());
            }
            return;
        }
        if !self.only_values && word == "--" {
            self.only_values = true;
        } else if let Some(flag) = self.flag(word) {
            self.value_of = Some(flag).filter(|flag| takes_value(flag) && is_bare(flag, word));
            if says_cluster(flag) {
                self.cluster.push(word.to_owned());
            }
        } else if let Some(command) = self.subcommand(word) {
            self.command = command;
        } else if self.only_values || !word.starts_with('-') {
            self.positional.push(word.to_owned());
        }
    }

    fn subcommand(&self, word: &str) -> Option<&'c Command> {
        let command = self.command.find_subcommand(word);
        command.filter(|_| self.positional.is_empty() && !self.only_values)
    }

    /// The flag that a word names, with or without a value.
    fn flag(&self, word: &str) -> Option<&'c Arg> {
        if self.only_values {
            return None;
        }
        let mut flags = self.command.get_arguments().filter(|arg| !arg.is_positional());
        if let Some(long) = word.strip_prefix("--") {
            let long = long.split_once('=').map_or(long, |(long, _)| long);
            return flags.find(|flag| flag.get_long() == Some(long));
        }
        // Of several short ones, only the last can wait for its value.
        let short = word.strip_prefix('-')?;
        let takes = |c: char| {
            let flags = self.command.get_arguments();
            flags.filter(|flag| flag.get_short() == Some(c)).find(|flag| takes_value(flag))
        };
        short.chars().find_map(takes).or_else(|| flags.find(|flag| flag.get_short() == short.chars().next()))
    }

    fn complete(mut self, last: &str) -> Completion {
        let mut completion = self.candidates(last);
        if self.value_of.is_some_and(says_cluster) {
            // It has no value yet.
            self.cluster.pop();
        }
        completion.cluster = self.cluster;
        completion
    }

    fn candidates(&self, last: &str) -> Completion {
        if let Some(flag) = self.value_of {
            return values(flag, last, "");
        }
        if !self.only_values
            && let Some((name, value)) = last.split_once('=')
            && let Some(flag) = self.flag(name).filter(|_| name.starts_with("--"))
        {
            return values(flag, value, &format!("{name}="));
        }
        if last.starts_with('-') && !self.only_values {
            return Completion { candidates: self.flags(last), ..Completion::default() };
        }
        let mut completion = Completion::default();
        if self.positional.is_empty() && !self.only_values {
            let commands = self.command.get_subcommands().filter(|command| !command.is_hide_set());
            let named = commands.filter(|command| command.get_name().starts_with(last));
            completion.candidates.extend(named.map(|command| {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                (command.get_name().to_owned(), about)
            }));
        }
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        if let Some(arg) = positionals.get(self.positional.len()).or(positionals.last()) {
            let values = values(arg, last, "");
            completion.candidates.extend(values.candidates);
            completion.files = values.files;
            let names = arg.get_value_names().unwrap_or_default();
            if names.first().is_some_and(|name| name.starts_with("TYPE")) {
                completion.wish = self.wish(last);
            }
        }
        completion
    }

    /// `TYPE`, `TYPE1,TYPE2`, `TYPE/NAME`, `TYPE NAME`.
    fn wish(&self, last: &str) -> Option<Wish> {
        if let Some((of, begun)) = last.split_once('/') {
            return Some(Wish::Names {
                of: of.to_owned(),
                before: format!("{of}/"),
                begun: begun.to_owned(),
            });
        }
        match self.positional.first() {
            Some(first) if !first.contains(['/', ',']) => {
                let (of, begun) = (first.clone(), last.to_owned());
                return Some(Wish::Names { of, before: String::new(), begun });
            }
            _ => {}
        }
        let begun = last.rsplit(',').next().unwrap_or(last);
        let before = last.strip_suffix(begun).unwrap_or_default();
        Some(Wish::Types { before: before.to_owned(), begun: begun.to_owned() })
    }

    fn flags(&self, begun: &str) -> Vec<(String, String)> {
        let visible = self.command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set());
        let named = visible.filter_map(|flag| {
            let name = match (flag.get_long(), flag.get_short()) {
                (Some(long), _) => format!("--{long}"),
                (None, short) => format!("-{}", short?),
            };
            let about = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let about = about.lines().next().unwrap_or_default().to_owned();
            name.starts_with(begun).then_some((name, about))
        });
        named.collect()
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values() && !flag.is_require_equals_set()
}

/// Whether a word names a flag without a value.
fn is_bare(flag: &Arg, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => !long.contains('='),
        None => flag.get_short().is_some_and(|short| word.ends_with(short)),
    }
}

fn values(arg: &Arg, begun: &str, before: &str) -> Completion {
    let possible = arg.get_possible_values();
    let fits = possible.iter().filter(|value| !value.is_hide_set() && value.get_name().starts_with(begun));
    let candidates: Vec<(String, String)> = fits
        .map(|value| {
            let about = value.get_help().map(ToString::to_string).unwrap_or_default();
            (format!("{before}{}", value.get_name()), about)
        })
        .collect();
    let hint = arg.get_value_hint();
    let is_file = matches!(hint, ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    let name = arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
    let files = possible.is_empty() && (is_file || matches!(name, Some("FILE" | "DIR")));
    let wish = (name == Some("NAMESPACE")).then(|| Wish::Names {
        of: "namespaces".to_owned(),
        before: before.to_owned(),
        begun: begun.to_owned(),
    });
    Completion { candidates, files, wish, cluster: Vec::new() }
}

fn says_cluster(flag: &Arg) -> bool {
    flag.get_long().is_some_and(|long| CLUSTER.contains(&long))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn completed(line: &str) -> Completion {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        complete(&crate::Args::command(), &words)
    }

    fn names(line: &str) -> Vec<String> {
        completed(line).candidates.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn commands_come_first() {
        let all = names("");
        assert!(
            ["wait", "demo", "completion"].iter().all(|name| all.iter().any(|each| each == name)),
            "{all:?}"
        );
        assert_eq!(names("wai"), ["wait"]);
        assert!(names("controller ").contains(&"deployments".to_owned()));
        assert!(completed("wai").candidates.iter().all(|(_, about)| !about.is_empty()));
    }

    #[test]
    fn flags_and_their_values_are_known() {
        assert_eq!(names("wait --fail"), ["--fail-on"]);
        assert_eq!(names("completion ba"), ["bash"]);
        assert!(completed("wait --kubeconfig ").files && completed("wait --kubeconfig=").files);
        assert!(!completed("wait --context ").files);
        assert_eq!(names("wait --context wait --fail"), ["--fail-on"], "the value of a flag is no command");
        assert_eq!(names("wait -n shop --fail"), ["--fail-on"]);
        assert_eq!(names("wait -nshop --fail"), ["--fail-on"]);
        assert!(names("wait -- --fail").is_empty());
    }

    #[test]
    fn types_are_offered_where_one_can_stand() {
        let types = |before: &str, begun: &str| {
            Some(Wish::Types { before: before.to_owned(), begun: begun.to_owned() })
        };
        let objects = |of: &str, before: &str, begun: &str| {
            let (of, before, begun) = (of.to_owned(), before.to_owned(), begun.to_owned());
            Some(Wish::Names { of, before, begun })
        };
        assert_eq!(completed("wait depl").wish, types("", "depl"));
        assert_eq!(completed("wait pods,depl").wish, types("pods,", "depl"));
        assert_eq!(completed("wait pods we").wish, objects("pods", "", "we"));
        assert_eq!(completed("wait pod/we").wish, objects("pod", "pod/", "we"));
        assert_eq!(completed("wait pod/web de").wish, types("", "de"));
        assert_eq!(completed("wait -n ").wish, objects("namespaces", "", ""));
        assert_eq!(completed("wait --namespace=sh").wish, objects("namespaces", "--namespace=", "sh"));
        assert_eq!(completed("demo ").wish, None);
    }

    #[test]
    fn the_flags_that_say_which_cluster_are_kept() {
        let cluster = completed("wait --for create -n shop --kubeconfig=k --context c pod").cluster;
        assert_eq!(cluster, ["-n", "shop", "--kubeconfig=k", "--context", "c"]);
        assert_eq!(completed("wait --context c -n ").cluster, ["--context", "c"]);
    }

    #[test]
    fn no_line_is_too_odd() {
        for line in
            ["-", "--", "---", "-=", "--=", "wait -vvvn", "wait --nothing x", "é", "wait -é", "x y z "]
        {
            completed(line);
        }
    }
}
