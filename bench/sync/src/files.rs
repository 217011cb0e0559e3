//! How many files a process may have open: a socket is one of them.

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process has open beside what is counted: its program, its pipes, its event loops.
const OTHERS: u64 = 64;

/// Lets this process have so many sockets, and what else it needs: as many files as the system allows it at all.
///
/// # Errors
///
/// Where that is not enough.
pub fn allow_sockets(sockets: usize) -> Result<()> {
    let limit = raised(&getrlimit(Resource::Nofile), sockets as u64 + OTHERS)?;
    setrlimit(Resource::Nofile, limit).context("the limit of open files cannot be raised")
}

/// The limit with nothing held back.
fn raised(limit: &Rlimit, wanted: u64) -> Result<Rlimit> {
    match limit.maximum {
        Some(most) if most < wanted => {
            bail!("{wanted} open files are needed, and the hard limit is {most}: raise it (ulimit -Hn)")
        }
        most => Ok(Rlimit { current: most, maximum: most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_allows_is_taken_and_too_little_is_said() {
        let limit = Rlimit { current: Some(1024), maximum: Some(4096) };
        let most = Rlimit { current: Some(4096), maximum: Some(4096) };
        assert_eq!(raised(&limit, 1064).unwrap(), most);
        let error = raised(&limit, 5000).unwrap_err().to_string();
        assert_eq!(error, "5000 open files are needed, and the hard limit is 4096: raise it (ulimit -Hn)");
        let endless = Rlimit { current: Some(1024), maximum: None };
        assert_eq!(raised(&endless, 1064).unwrap(), Rlimit { current: None, maximum: None });
    }

    #[test]
    fn this_process_may_have_some() {
        allow_sockets(10).unwrap();
    }
}
