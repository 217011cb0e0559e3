//! `kube-informer man`: manual pages of all commands.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Command;

use crate::completion::print;
use crate::interrupt::Ended;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Read the first page
  kube-informer man | man -l -

  # Install all pages for oneself
  kube-informer man --dir ~/.local/share/man/man1
  man kube-informer-wait";

/// Write manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the pages of all commands into this folder, which is made where it is missing. Without, the first page goes
    /// to stdout
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, commands: Command) -> anyhow::Result<Ended> {
    // Pages are about the binary, however it was called.
    let mut commands = commands.disable_help_subcommand(true);
    commands.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(commands).render(&mut page).context("the page cannot be made")?;
        return print(&page);
    };
    let at = dir.display();
    let todo = "give --dir a folder that is yours";
    std::fs::create_dir_all(dir)
        .map_err(|error| anyhow::anyhow!("cannot make the folder {at}: {error}; {todo}"))?;
    let mut written = Vec::new();
    write(&commands, dir, &mut written)
        .map_err(|error| anyhow::anyhow!("cannot write manual pages to {at}: {error}; {todo}"))?;
    let lines: String = written.iter().map(|file| format!("{}\n", file.display())).collect();
    print(lines.as_bytes())
}

fn write(command: &Command, dir: &std::path::Path, written: &mut Vec<PathBuf>) -> std::io::Result<()> {
    written.push(clap_mangen::Man::new(command.clone()).generate_to(dir)?);
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write(command, dir, written)?;
    }
    Ok(())
}
