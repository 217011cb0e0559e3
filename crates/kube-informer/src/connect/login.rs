//! Programs that a kubeconfig names for credentials, and what is said where one gives none.

use kube_client::Error;
use kube_client::client::AuthError;
use kube_client::config::ExecConfig;

use super::ConnectError;

/// So much of what a program has said is passed on.
const LONGEST: usize = 300;

/// Why there is no client: a program that gives no credentials is named, with what it said.
pub(super) fn explain(error: Error, program: Option<ExecConfig>) -> ConnectError {
    let (Error::Auth(reason), Some(program)) = (&error, program) else {
        return ConnectError::Client(Box::new(error));
    };
    let why = match reason {
        AuthError::AuthExecStart(error) => format!("cannot be run: {error}"),
        AuthError::AuthExecRun { out, .. } => {
            let said = in_short(&String::from_utf8_lossy(&out.stderr));
            let code = match out.status.code() {
                Some(code) => format!("failed with exit code {code}"),
                None => "was killed".to_owned(),
            };
            if said.is_empty() { code } else { format!("{code}: {said}") }
        }
        AuthError::AuthExecParse(error) => {
            format!("says nothing that is a credential: {}", in_short(&error.to_string()))
        }
        _ => return ConnectError::Client(Box::new(error)),
    };
    named(program, why)
}

/// The client panicked: a token without an end is put into a header without being looked at. Others are looked at before.
pub(super) fn unsendable(program: Option<ExecConfig>) -> ConnectError {
    match program {
        Some(program) => {
            named(program, format!("gives no credential that can be sent: {}", ConnectError::Token))
        }
        None => ConnectError::Token,
    }
}

fn named(program: ExecConfig, why: String) -> ConnectError {
    let command = program.command.unwrap_or_default();
    let hint = program.install_hint.as_deref().map(in_short).filter(|hint| !hint.is_empty());
    ConnectError::Login { command, why, hint }
}

/// Several lines as one.
fn in_short(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join("; ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
