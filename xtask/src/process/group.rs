//! A process group: told to end, or killed, as a whole.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Child;

/// The process group of a running child; dropped while it still runs, it kills the group.
pub(super) struct Group {
    pub(super) child: Option<Child>,
    id: Option<u32>,
    /// Who was there when the group was told to end: process ids, and the programs that they ran.
    told: BTreeSet<(u32, PathBuf)>,
    /// Who was there beside them when it was looked last.
    late: BTreeSet<(u32, PathBuf)>,
}

impl Group {
    pub(super) fn of(child: Child) -> Self {
        Group { id: child.id(), child: Some(child), told: BTreeSet::new(), late: BTreeSet::new() }
    }

    /// Tells everyone to end.
    pub(super) fn end(&mut self) {
        self.told = self.members();
        self.signal("TERM");
    }

    /// Tells those who have not heard it: a signal that comes before a shell that waits for its commands has started the
    /// next one, or before that has become another program than the shell, reaches nobody. Others are not told twice, which
    /// means something else to some; and who is gone at the next look was somebody who cleans up.
    pub(super) fn end_latecomers(&mut self) {
        let late: BTreeSet<_> = self.members().difference(&self.told).cloned().collect();
        for member in late.intersection(&self.late) {
            send("TERM", &member.0.to_string());
            self.told.insert(member.clone());
        }
        self.late = late;
    }

    /// Whether there is anybody.
    pub(super) fn is_there(&self) -> bool {
        self.signal("0")
    }

    /// Lets those who are left live.
    pub(super) fn leave(&mut self) {
        self.child = None;
    }

    /// Whether there was anybody to send it to. A group's number is not given anew while one of its processes is there.
    fn signal(&self, signal: &str) -> bool {
        match (&self.child, self.id) {
            (Some(_), Some(id)) => send(signal, &format!("-{id}")),
            _ => false,
        }
    }

    fn members(&self) -> BTreeSet<(u32, PathBuf)> {
        let ids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| self.has(*id).unwrap_or_default())
            .map(|id| (id, std::fs::read_link(format!("/proc/{id}/exe")).unwrap_or_default()))
            .collect()
    }

    /// Whether a process belongs to it, and has not ended.
    fn has(&self, process: u32) -> Option<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The command in parentheses may hold anything; behind it are the state, the parent and the group.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        Some(self.id == Some(group) && state != "Z")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}

/// Through the shell, because the standard library can only kill one process.
fn send(signal: &str, to: &str) -> bool {
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -s {signal} -- {to}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    sent.is_ok_and(|status| status.success())
}
