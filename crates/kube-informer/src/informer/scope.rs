//! Which objects of a resource: all of them, those of some namespaces, or one.

use std::collections::BTreeSet;
use std::fmt;

/// Which objects of a resource are watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Those of these namespaces. Each has a watch and a version of its own.
    Namespaces(BTreeSet<String>),
    /// One object. It is asked for by its name, as those must who are allowed to see nothing else.
    Object {
        /// The namespace; empty for cluster-scoped objects.
        namespace: String,
        /// The name.
        name: String,
    },
}

impl Scope {
    /// One namespace.
    #[must_use]
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self::namespaces([namespace])
    }

    /// Several namespaces.
    #[must_use]
    pub fn namespaces<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self::Namespaces(namespaces.into_iter().map(Into::into).collect())
    }

    /// One object.
    #[must_use]
    pub fn object(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Object { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Namespaces(namespaces) => {
                for (index, namespace) in namespaces.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{namespace}")?;
                }
                Ok(())
            }
            Self::Object { namespace, name } if namespace.is_empty() => f.write_str(name),
            Self::Object { namespace, name } => write!(f, "{namespace}/{name}"),
        }
    }
}
