//! Where a daemon looks: in all namespaces, unless some are named. Whose kubeconfig it has says nothing about that.

use kube_informer::informer::Scope;

use crate::cluster::namespace;

/// See the module.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ScopeArgs {
    /// Only in this namespace; can be given several times. Without, in all of them
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',', value_parser = namespace)]
    namespaces: Vec<String>,
}

impl ScopeArgs {
    pub(crate) fn scope(&self) -> Scope {
        match &self.namespaces[..] {
            [] => Scope::All,
            named => Scope::namespaces(named.iter().cloned()),
        }
    }

    /// In the words of a sentence: `in shop, web`.
    pub(crate) fn describe(&self) -> String {
        match &self.namespaces[..] {
            [] => "in all namespaces".to_owned(),
            named => format!("in {}", named.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_namespaces_it_is_all_of_them() {
        assert_eq!(ScopeArgs::default().scope(), Scope::All);
        let named = ScopeArgs { namespaces: vec!["b".to_owned(), "a".to_owned()] };
        assert_eq!(named.scope(), Scope::namespaces(["a", "b"]));
        assert_eq!(named.describe(), "in b, a");
    }
}
