//! Which cluster, as whom, and which part of it: the flags of every command that talks to one, as `kubectl` has them.
//!
//! - Without `-n` and `-A`, it is the namespace of the kubeconfig's context, or `default`.
//! - The first question to a server is asked once, and has [`FIRST_ANSWER`] or `--request-timeout`: a server that is not
//!   there is told at once, with exit code 1. Only who was connected waits for a server to come back.
//! - What goes wrong is one line that says where was looked, and what to do.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kube_informer::cache::Selector;
use kube_informer::connect::{Catalog, ConnectError, Source};
use kube_informer::factory::{Factory, InformerBuilder, Timings};
use kube_informer::informer::Scope;
use kube_informer::resource::Resource;

use crate::target::Target;
use crate::time::duration;
use crate::usage::Usage;

/// How long the first answer of a server may take.
pub(crate) const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// What the server calls us, whatever the binary is called.
pub(crate) const AGENT: &str = concat!("kube-informer/", env!("CARGO_PKG_VERSION"));

/// Which cluster, and as whom.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// The kubeconfig to use, instead of the one that kubectl takes: KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Ask as this user
    #[arg(long = "as", value_name = "USER", value_parser = identity)]
    as_user: Option<String>,
    /// Ask as a member of this group; can be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user", value_parser = identity)]
    as_groups: Vec<String>,
    /// How long one answer of the server may take, such as 10s or 1m30s; 0 is as long as usual, half a minute
    #[arg(long, value_name = "TIME", value_parser = duration)]
    request_timeout: Option<Duration>,
}

/// Which part of it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which objects")]
pub(crate) struct SelectArgs {
    /// The namespace, instead of the kubeconfig's; can be given several times
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',', value_parser = namespace)]
    namespaces: Vec<String>,
    /// All namespaces, whatever -n says
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only objects with such labels: app=web,tier!=cache,env in (a,b)
    #[arg(short = 'l', long = "selector", value_name = "LABELS", value_parser = labels)]
    labels: Option<String>,
    /// Only objects with such fields: status.phase=Running. Which ones there are depends on the kind
    #[arg(long = "field-selector", value_name = "FIELDS", value_parser = fields)]
    fields: Option<String>,
}

/// A cluster, and the part of it that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) factory: Factory,
    /// What it serves.
    pub(crate) catalog: Catalog,
    /// How long one answer may take.
    pub(crate) patience: Duration,
    place: Place,
    labels: Option<String>,
    fields: Option<String>,
}

/// Where objects are looked for that are in namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Everywhere.
    All,
    /// In these: at least one.
    Namespaces(BTreeSet<String>),
}

impl ClusterArgs {
    /// Connects, and asks what there is.
    pub(crate) async fn connect(&self, select: &SelectArgs) -> anyhow::Result<Cluster> {
        let patience = self.patience();
        let factory = self.factory().await?;
        let server = factory.server().unwrap_or_else(|| "the server".to_owned());
        let answer = tokio::time::timeout(patience, factory.catalog()).await;
        let catalog = match answer {
            Ok(Ok(catalog)) => catalog,
            Ok(Err(error)) => return Err(unreachable(&server, &error.reason)),
            Err(_) => return Err(unreachable(&server, &format!("no answer within {patience:?}"))),
        };
        let place = select.place(factory.client().default_namespace());
        let (labels, fields) = (select.labels.clone(), select.fields.clone());
        Ok(Cluster { factory, catalog, patience, place, labels, fields })
    }

    /// What connects, once it is asked to: for who waits for a cluster, however long it is away.
    pub(crate) async fn factory(&self) -> anyhow::Result<Factory> {
        // Somebody may have to log in, which takes as long as it takes, unless they say otherwise.
        let limit = self.request_timeout.filter(|time| !time.is_zero()).unwrap_or(Duration::MAX);
        let factory = match tokio::time::timeout(limit, Factory::from_source(self.source())).await {
            Ok(factory) => factory.map_err(|error| self.unusable(&error))?,
            Err(_) => anyhow::bail!(
                "no credentials within {limit:?}: the login program of the kubeconfig has not ended; \
                 run it by hand, or give a longer --request-timeout"
            ),
        };
        Ok(factory.timings(Timings::default().patience(self.patience())))
    }

    fn patience(&self) -> Duration {
        self.request_timeout.filter(|time| !time.is_zero()).unwrap_or(FIRST_ANSWER)
    }

    fn source(&self) -> Source {
        let source = self.kubeconfig.clone().map_or_else(Source::default, Source::file);
        let mut source = source.user_agent(AGENT);
        if let Some(context) = &self.context {
            source = source.context(context);
        }
        match &self.as_user {
            Some(user) => source.impersonate(user, &self.as_groups),
            None => source,
        }
    }

    fn unusable(&self, error: &ConnectError) -> anyhow::Error {
        // A file that was asked for is in the error; files that were not are to be named.
        let looked = if self.kubeconfig.is_some() { String::new() } else { format!(" ({})", looked()) };
        let said = chain(error);
        if said.contains("kube/http-proxy") || said.contains("kube/socks5") {
            return anyhow::anyhow!(
                "cannot connect to a cluster: the kubeconfig names a proxy (proxy-url), and proxies are not supported; \
                 leave it out where the server can be reached without"
            );
        }
        let todo = match (&self.context, &self.kubeconfig) {
            _ if matches!(error, ConnectError::Login { .. }) => "run it by hand, and log in again",
            _ if matches!(error, ConnectError::Address { .. }) => "mend `server` in the kubeconfig",
            _ if matches!(error, ConnectError::Token) => "mend `token` in the kubeconfig",
            (Some(_), _) => "`kubectl config get-contexts` lists the contexts there are",
            (None, _) if said.contains("failed to determine current context") => {
                "it has no current-context: give --context NAME, or another --kubeconfig FILE"
            }
            (None, Some(_)) => "give another --kubeconfig FILE",
            (None, None) => "give --kubeconfig FILE, or set KUBECONFIG",
        };
        anyhow::anyhow!("cannot connect to a cluster: {said}{looked}; {todo}")
    }
}

impl SelectArgs {
    /// Whether objects are chosen by labels or fields.
    pub(crate) fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    fn place(&self, default: &str) -> Place {
        match &self.namespaces[..] {
            _ if self.all_namespaces => Place::All,
            [] => Place::Namespaces([default.to_owned()].into()),
            named => Place::Namespaces(named.iter().cloned().collect()),
        }
    }
}

impl Cluster {
    /// Where objects are looked for that are in namespaces.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether objects of a resource can only be told apart with their namespaces.
    pub(crate) fn shows_namespaces(&self, resource: &Resource) -> bool {
        let is_one = matches!(&self.place, Place::Namespaces(names) if names.len() == 1);
        resource.namespaced && !is_one
    }

    /// What is to be watched for a target: one scope for all of it, or one for each object that is named.
    ///
    /// # Errors
    ///
    /// Where what is named is not in one place.
    pub(crate) fn scopes(&self, target: &Target) -> Result<Vec<Scope>, Usage> {
        let Target { resource, names } = target;
        if !names.is_empty() && (self.labels.is_some() || self.fields.is_some()) {
            return Err(Usage::new("objects are chosen by name or by selector, not by both: leave one out"));
        }
        let namespaces = match &self.place {
            _ if !resource.namespaced => BTreeSet::from([String::new()]),
            Place::Namespaces(namespaces) if names.is_empty() => {
                return Ok(vec![Scope::Namespaces(namespaces.clone())]);
            }
            Place::Namespaces(namespaces) => namespaces.clone(),
            Place::All if names.is_empty() => return Ok(vec![Scope::All]),
            Place::All => {
                let why =
                    format!("{resource} cannot be asked for by name in all namespaces: give -n NAMESPACE");
                return Err(Usage::new(why));
            }
        };
        if names.is_empty() {
            return Ok(vec![Scope::All]);
        }
        let of_each =
            |namespace: &String| names.iter().map(|name| Scope::object(namespace, name)).collect::<Vec<_>>();
        Ok(namespaces.iter().flat_map(of_each).collect())
    }

    /// The informer of a resource, with the selectors that were asked for.
    pub(crate) fn informer(&self, resource: &Resource, scope: Scope) -> Result<InformerBuilder, Usage> {
        let mut builder = self.factory.configure_resource(resource.clone(), scope);
        if let Some(labels) = &self.labels {
            builder = builder.labels(labels).map_err(|error| Usage::new(format!("-l: {error}")))?;
        }
        if let Some(fields) = &self.fields {
            builder = builder.fields(fields);
        }
        Ok(builder)
    }

    /// The selectors that were asked for, by their names in a query.
    pub(crate) fn selectors(&self) -> Vec<(&'static str, &str)> {
        let labels = self.labels.as_deref().map(|labels| ("labelSelector", labels));
        let fields = self.fields.as_deref().map(|fields| ("fieldSelector", fields));
        labels.into_iter().chain(fields).collect()
    }

    /// What was looked for where, in the words of a sentence: `in shop`, `in all namespaces`.
    pub(crate) fn describe_place(&self) -> String {
        match &self.place {
            Place::All => "in all namespaces".to_owned(),
            Place::Namespaces(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("in {}", names.join(", "))
            }
        }
    }
}

fn unreachable(server: &str, reason: &str) -> anyhow::Error {
    let todo = match reason {
        _ if reason.contains("certificate") => "check certificate-authority in the kubeconfig",
        _ if reason.contains("Unauthorized") => "check the credentials in the kubeconfig, or log in again",
        _ if reason.contains("Forbidden") => {
            "ask with credentials that may: `kubectl auth whoami` says whose they are, and --as needs the right to impersonate"
        }
        _ => "check that it runs, and its address in the kubeconfig",
    };
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxy = match server.starts_with("https:") && (is_set("HTTPS_PROXY") || is_set("https_proxy")) {
        true => "; HTTPS_PROXY is not used, proxies are not supported",
        false => "",
    };
    anyhow::anyhow!("{server} does not say what it serves: {reason}; {todo}{proxy}")
}

/// Where kubeconfigs are looked for.
fn looked() -> String {
    match std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(files) => format!("KUBECONFIG is {}", files.display()),
        None => match std::env::home_dir() {
            Some(home) => {
                format!("KUBECONFIG is not set; looked at {}", home.join(".kube").join("config").display())
            }
            None => "KUBECONFIG is not set, and there is no home folder".to_owned(),
        },
    }
}

/// An error with its causes, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !line.contains(&said) {
            line = format!("{line}: {said}");
        }
        cause = error.source();
    }
    // What follows in other lines shows a place in a file, as parsers do.
    line.lines().next().unwrap_or_default().to_owned()
}

/// The name of a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err("is no name of a namespace: small letters, digits and - only".to_owned()),
    }
}

/// The name of a user or a group, which is sent in a header.
fn identity(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.chars().any(char::is_control) => {
            Err("is no name: it has a line's end in it, or another control character".to_owned())
        }
        text if !text.is_ascii() => Err("cannot be sent in a header: characters of ASCII only".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn labels(text: &str) -> Result<String, String> {
    let selector: Selector = text.parse().map_err(|error| format!("{error}"))?;
    Ok(selector.to_string())
}

/// `a=b,c!=d`, with `\\`, `\,` and `\=` in values. Which fields there are, only the server knows.
fn fields(text: &str) -> Result<String, String> {
    for term in terms(text).into_iter().filter(|term| !term.is_empty()) {
        let Some((field, value)) = term.split_once('=') else { return Err(no_term(term)) };
        let is_negated = field.ends_with('!');
        if field.trim_end_matches('!').trim().is_empty() {
            return Err(no_term(term));
        }
        let value = if is_negated { value } else { value.strip_prefix('=').unwrap_or(value) };
        check_value(term, value)?;
    }
    Ok(text.to_owned())
}

fn no_term(term: &str) -> String {
    format!("{term:?} is no selector of a field: write FIELD=VALUE or FIELD!=VALUE")
}

/// What stands between commas that are none of a value.
fn terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let ends = |c: char| {
        let ends = c == ',' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    text.split(ends).collect()
}

/// Whether a value is escaped as servers have it.
fn check_value(term: &str, value: &str) -> Result<(), String> {
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        let fits = match c {
            '\\' => matches!(rest.next(), Some('\\' | ',' | '=')),
            c => c != '=',
        };
        if !fits {
            return Err(format!(
                r"{term:?} has a value that is not escaped: \, comma and = are \\, \, and \= in it"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_checked() {
        assert_eq!(namespace("kube-system").as_deref(), Ok("kube-system"));
        for wrong in ["", "a b", "A", "a/b", "ä"] {
            assert!(namespace(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_namespace_it_is_the_kubeconfigs() {
        let place = |names: &[&str], all_namespaces| {
            let namespaces = names.iter().map(|name| (*name).to_owned()).collect();
            SelectArgs { namespaces, all_namespaces, ..SelectArgs::default() }.place("mine")
        };
        let named = |names: &[&str]| Place::Namespaces(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(place(&[], false), named(&["mine"]));
        assert_eq!(place(&["b", "a", "b"], false), named(&["a", "b"]));
        assert_eq!(place(&["a"], true), Place::All);
    }

    #[test]
    fn selectors_of_fields_have_a_field_and_a_value() {
        for right in [
            "status.phase=Running",
            "a==b",
            "a!=b,c=d",
            "metadata.name=",
            "",
            r"a=b\,c",
            r"a=b\=c\\,d!=\,",
            r"a=\\,b=c",
        ] {
            assert!(fields(right).is_ok(), "{right}");
        }
        for wrong in [
            "status.phase",
            "=b",
            "a=b,c",
            "!=b",
            r"a=b\\,c",
            r"a=b\c",
            r"a=b\",
            "a=b=c",
            r"a\,b",
            r"a=b,c\,d",
        ] {
            assert!(fields(wrong).is_err(), "{wrong}");
        }
    }
}
