//! `kube-informer completion`: scripts that let a shell complete its command lines.
//!
//! kubectl completes the arguments of its plugins by a program of a certain name on the `PATH`: `completion kubectl` prints
//! it, and this binary is it under that name.

mod ask;
mod words;

use std::io::Write as _;

use clap::Command;

use crate::interrupt::Ended;
use crate::naming::Called;
use crate::output::unwritable;

/// How shells get to know it.
pub(crate) const EXAMPLES: &str = "\
Examples:
  # In this bash, and in every new one
  source <(kube-informer completion bash)
  kube-informer completion bash > ~/.local/share/bash-completion/completions/kube-informer

  # zsh, from a folder of its fpath
  kube-informer completion zsh > \"${fpath[1]}/_kube-informer\"

  # fish
  kube-informer completion fish > ~/.config/fish/completions/kube-informer.fish

  # `kubectl informer …`: a program beside kubectl-informer on the PATH
  kube-informer completion kubectl > /usr/local/bin/kubectl_complete-informer
  chmod +x /usr/local/bin/kubectl_complete-informer";

/// Print a script.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose script
    shell: Shell,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    /// What kubectl runs to complete `kubectl informer …`
    Kubectl,
}

/// To be called `kubectl_complete-informer`.
const KUBECTL: &str =
    "#!/bin/sh\n# Completes the arguments of `kubectl informer`.\nexec kubectl-informer __complete \"$@\"\n";

pub(crate) fn run(args: &Args, mut commands: Command, called: Called) -> anyhow::Result<Ended> {
    use clap_complete::Shell as Known;
    let file = called.file();
    let mut script = Vec::new();
    let mut generate = |shell: Known, name: &str| {
        clap_complete::generate(shell, &mut commands, name, &mut script);
    };
    match args.shell {
        Shell::Bash => {
            // clap_complete loses subcommands of names with a hyphen (4.6.11). Its functions may have any name; only what is
            // completed must have ours.
            let name = file.replace('-', "_");
            generate(Known::Bash, &name);
            let text = String::from_utf8_lossy(&script);
            script =
                text.replace(&format!(" -o default {name}\n"), &format!(" -o default {file}\n")).into_bytes();
        }
        Shell::Zsh => generate(Known::Zsh, file),
        Shell::Fish => generate(Known::Fish, file),
        Shell::Powershell => generate(Known::PowerShell, file),
        Shell::Elvish => generate(Known::Elvish, file),
        Shell::Kubectl => script.extend(KUBECTL.as_bytes()),
    }
    print(&script)
}

/// Completes the last of some words, as kubectl wants to have it: a candidate per line, and what else to do.
pub(crate) fn complete(commands: &Command, words: &[String]) -> anyhow::Result<Ended> {
    let mut text = String::new();
    let mut completion = words::complete(commands, words);
    if let Some(wish) = &completion.wish {
        let asked = ask::ask(wish, &completion.cluster).into_iter();
        completion.candidates.extend(asked.map(|candidate| (candidate, String::new())));
    }
    for (candidate, about) in completion.candidates {
        text.push_str(&candidate);
        if !about.is_empty() {
            text.push('\t');
            text.push_str(&about);
        }
        text.push('\n');
    }
    // cobra's codes: files where nothing else is known, otherwise none.
    text.push_str(if completion.files { ":0\n" } else { ":4\n" });
    print(text.as_bytes())
}

/// Whoever has read enough has what they wanted.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<Ended> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(Ended::Done),
    }
}
