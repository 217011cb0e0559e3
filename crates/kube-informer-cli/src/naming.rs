//! What it is called, and what the help of all commands looks like.
//!
//! The binary is `kube-informer`. Under the name `kubectl-informer`, on the `PATH`, it is kubectl's plugin: usage lines and
//! examples then say `kubectl informer`, as it was called. Under `kubectl_complete-informer` it completes that plugin's
//! command lines.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::Command;
use kube_informer::encoding::ServerVersion;

/// By which name it was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    /// Its own.
    Binary,
    /// That of a plugin of kubectl.
    Plugin,
    /// That by which kubectl has a plugin's arguments completed.
    PluginCompletion,
}

/// What `--version` says, but for the name.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let ServerVersion { major, minor, .. } = ServerVersion::SCHEMA;
    format!("{}\nschema of Kubernetes {major}.{minor}", env!("CARGO_PKG_VERSION"))
});

/// The commands by what they are for, in the order in which somebody meets them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Look at a cluster", &["get", "watch", "wait"]),
    ("Run for others", &["serve", "controller", "elasti"]),
    ("Try it without a cluster", &["demo", "apiserver"]),
    ("Shells and manuals", &["completion", "man"]),
];

const BINARY: &str = "kube-informer";

impl Called {
    /// What the first argument of the process says.
    pub(crate) fn by(first: Option<&OsStr>) -> Self {
        let name = first.map(Path::new).and_then(Path::file_stem).and_then(OsStr::to_str);
        match name {
            Some("kubectl-informer") => Self::Plugin,
            Some("kubectl_complete-informer") => Self::PluginCompletion,
            _ => Self::Binary,
        }
    }

    /// As people type it.
    pub(crate) fn typed(self) -> &'static str {
        match self {
            Self::Binary => BINARY,
            Self::Plugin | Self::PluginCompletion => "kubectl informer",
        }
    }

    /// As the file is called.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Binary => BINARY,
            Self::Plugin | Self::PluginCompletion => "kubectl-informer",
        }
    }
}

/// What to type to call this program again: its name, where the `PATH` leads to it, or its file.
pub(crate) fn to_type() -> String {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    match std::env::current_exe() {
        Ok(file) if !leads(&paths, &file) => quoted(&file),
        _ => BINARY.to_owned(),
    }
}

/// Whether the first program of its name in these folders is this file.
fn leads(paths: &OsStr, file: &Path) -> bool {
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(paths).map(|folder| folder.join(BINARY)).find(is_program);
    found.is_some_and(|found| {
        found.canonicalize().is_ok_and(|found| file.canonicalize().is_ok_and(|file| found == file))
    })
}

/// A file as it is typed into a shell.
pub(crate) fn quoted(file: &Path) -> String {
    let text = file.display().to_string();
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ',' | ':' | '@' | '%');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The commands, named as they were called, with a help that lists them by what they are for.
pub(crate) fn commands(root: Command, called: Called) -> Command {
    let list = list(&root);
    let more = format!("`{} help COMMAND` says more about a command, with examples.", called.typed());
    let header = *root.get_styles().get_header();
    let options = format!("{}Options:{}", header.render(), header.render_reset());
    let root = root.bin_name(called.typed()).after_help(more).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{options}\n{{options}}{{after-help}}"
    ));
    match called {
        Called::Binary => root,
        Called::Plugin | Called::PluginCompletion => renamed(root, called.typed()),
    }
}

fn list(root: &Command) -> String {
    let header = *root.get_styles().get_header();
    let literal = *root.get_styles().get_literal();
    let visible: Vec<&Command> = root.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let width = visible.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        let members: Vec<&&Command> = names
            .iter()
            .filter_map(|name| visible.iter().find(|command| command.get_name() == *name))
            .collect();
        if members.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{title}:{}", header.render(), header.render_reset());
        for command in members {
            let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string));
            let (on, off) = (literal.render(), literal.render_reset());
            let _ = writeln!(text, "  {on}{name:width$}{off}  {}", about.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// Examples show what is to be typed.
fn renamed(command: Command, name: &str) -> Command {
    let rename = |text: &clap::builder::StyledStr| {
        text.to_string().replace(&format!("{BINARY} "), &format!("{name} "))
    };
    let command = match command.get_after_long_help().map(rename) {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    let command = match command.get_long_about().map(rename) {
        Some(text) => command.long_about(text),
        None => command,
    };
    command.mut_subcommands(|each| renamed(each, name))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_name_of_the_file_says_how_it_was_called() {
        for (first, called) in [
            ("kube-informer", Called::Binary),
            ("/usr/bin/kube-informer", Called::Binary),
            ("./kubectl-informer", Called::Plugin),
            ("kubectl-informer.exe", Called::Plugin),
            ("/a/kubectl_complete-informer", Called::PluginCompletion),
            ("", Called::Binary),
            ("another", Called::Binary),
        ] {
            assert_eq!(Called::by(Some(OsStr::new(first))), called, "{first}");
        }
        assert_eq!(Called::by(None), Called::Binary);
    }

    #[test]
    fn files_are_quoted_where_a_shell_would_take_them_for_something_else() {
        for (file, typed) in [
            ("/usr/bin/kube-informer", "/usr/bin/kube-informer"),
            ("/srv/Jürgen/a_b+c,d@e%f.yaml", "/srv/Jürgen/a_b+c,d@e%f.yaml"),
            ("/my tools/kube-informer", "'/my tools/kube-informer'"),
            ("/a$b", "'/a$b'"),
            ("~/a", "'~/a'"),
            ("/it's", r"'/it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(file)), typed);
        }
    }

    #[test]
    fn the_path_leads_to_a_program_that_is_the_first_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let [other, own, data] = ["other", "own", "data"].map(|name| folder.path().join(name));
        for (place, mode) in [(&other, 0o755), (&own, 0o755), (&data, 0o644)] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join(BINARY), "").unwrap();
            std::fs::set_permissions(place.join(BINARY), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let link = folder.path().join("link");
        std::fs::create_dir(&link).unwrap();
        std::os::unix::fs::symlink(own.join(BINARY), link.join(BINARY)).unwrap();
        let file = own.join(BINARY);
        for (folders, is_it) in [
            (&[&own][..], true),
            (&[&own, &other], true),
            (&[&link], true),
            (&[&data, &own], true),
            (&[&other, &own], false),
            (&[&other], false),
            (&[&data], false),
            (&[], false),
        ] {
            assert_eq!(leads(&std::env::join_paths(folders).unwrap(), &file), is_it, "{folders:?}");
        }
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        for command in crate::Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&command.get_name()));
            assert_eq!(groups.count(), 1, "{}", command.get_name());
        }
    }

    #[test]
    fn the_commands_and_their_arguments_fit_together() {
        commands(crate::Args::command(), Called::Binary).debug_assert();
        commands(crate::Args::command(), Called::Plugin).debug_assert();
    }
}
