//! What an informer asks the server for, and what it keeps: all that informers are shared by.

use std::sync::Arc;

use super::scope::Scope;
use crate::cache::Scopes;
use crate::encoding::{Codec, CodecError, Encoding, Rules, ServerVersion};
use crate::object::Packing;
use crate::reflector::request::{Form, Target};
use crate::resource::Resource;

/// See the module. Equal ones are one informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) rules: Rules,
    /// `None`: whichever is best for the resource and the server.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) form: Form,
    pub(crate) packing: Packing,
}

impl Spec {
    pub(crate) fn new(resource: Resource, scope: Scope) -> Self {
        Self {
            resource,
            scope,
            labels: None,
            fields: None,
            rules: Rules::default(),
            encoding: None,
            form: Form::default(),
            packing: Packing::default(),
        }
    }

    /// What cannot be asked for, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        let Resource { kind, namespaced, .. } = &self.resource;
        let (namespaces, name): (Vec<&str>, Option<&str>) = match &self.scope {
            Scope::All => (Vec::new(), None),
            Scope::Namespaces(namespaces) if namespaces.is_empty() => {
                return Some("the scope names no namespace: use Scope::All for all of them".to_owned());
            }
            Scope::Namespaces(_) if !namespaced => {
                return Some(format!("objects of kind {kind} are in no namespace: use Scope::All"));
            }
            Scope::Namespaces(namespaces) => (namespaces.iter().map(String::as_str).collect(), None),
            Scope::Object { namespace, name } => match (namespaced, namespace.is_empty()) {
                (true, true) => {
                    return Some(format!("objects of kind {kind} are in namespaces: name that of {name:?}"));
                }
                (false, false) => {
                    return Some(format!(
                        "objects of kind {kind} are in no namespace: leave out {namespace:?}"
                    ));
                }
                (true, false) => (vec![namespace], Some(name)),
                (false, true) => (Vec::new(), Some(name)),
            },
        };
        if let Some(namespace) = namespaces.into_iter().find(|namespace| !is_namespace(namespace)) {
            return Some(format!("{namespace:?} is not a name that a namespace can have"));
        }
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Some(format!("{name:?} is not a name that an object can have"));
        }
        let codec = |encoding| self.codec(encoding).err();
        let encodings = [Some(Encoding::Json), self.may_be_protobuf().then_some(Encoding::Protobuf)];
        encodings.into_iter().flatten().find_map(codec).map(|error| error.to_string())
    }

    /// What is listed and watched, one for each scope of the cache.
    pub(crate) fn targets(&self) -> Vec<(Option<Arc<str>>, Target)> {
        let target = |namespace: Option<&str>, fields: Option<String>| Target {
            resource: self.resource.clone(),
            namespace: namespace.map(str::to_owned),
            label_selector: self.labels.clone(),
            field_selector: fields,
            form: self.form,
        };
        match &self.scope {
            Scope::All => vec![(None, target(None, self.fields.clone()))],
            Scope::Namespaces(namespaces) => {
                let each =
                    |name: &String| (Some(Arc::from(&**name)), target(Some(name), self.fields.clone()));
                namespaces.iter().map(each).collect()
            }
            Scope::Object { namespace, name } => {
                let mut fields = format!("metadata.name={}", escaped(name));
                if let Some(more) = &self.fields {
                    fields = format!("{fields},{more}");
                }
                let namespace = (!namespace.is_empty()).then_some(&**namespace);
                vec![(namespace.map(Arc::from), target(namespace, Some(fields)))]
            }
        }
    }

    /// The scopes of the cache.
    pub(crate) fn scopes(&self) -> Scopes {
        match &self.scope {
            Scope::Namespaces(namespaces) => {
                Scopes::namespaces(namespaces.iter().map(|name| Arc::from(&**name)))
            }
            Scope::Object { namespace, .. } if !namespace.is_empty() => {
                Scopes::namespaces([Arc::from(&**namespace)])
            }
            Scope::All | Scope::Object { .. } => Scopes::all(),
        }
    }

    /// The encoding to ask a server of this version for.
    pub(crate) fn encoding(&self, server: Option<ServerVersion>) -> Encoding {
        let (api_version, kind) = (self.resource.api_version(), &self.resource.kind);
        self.encoding.unwrap_or_else(|| Encoding::for_kind(&api_version, kind, server))
    }

    /// How what comes is read.
    pub(crate) fn codec(&self, encoding: Encoding) -> Result<Codec, CodecError> {
        let (api_version, kind) = self.form.kind(&self.resource);
        Codec::new(encoding, &api_version, kind, self.rules.clone())
    }

    /// Whether there is a server that may be asked for protobuf.
    pub(crate) fn may_be_protobuf(&self) -> bool {
        self.encoding == Some(Encoding::Protobuf)
            || self.encoding.is_none()
                && self.encoding(Some(ServerVersion { major: 1, minor: 0 })) == Encoding::Protobuf
    }
}

/// Whether it may be the name of a namespace. It becomes a part of paths.
fn is_namespace(name: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || "-._:@".contains(c);
    !name.is_empty() && !matches!(name, "." | "..") && name.chars().all(usual)
}

/// Whether it may be the name of an object. Most kinds are stricter; roles and their bindings take all that can be a part of
/// a path.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

/// A value of a field selector.
fn escaped(value: &str) -> String {
    let escape = |mut escaped: String, c: char| {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    };
    value.chars().fold(String::with_capacity(value.len()), escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Spec {
        let resource = Resource {
            group: "rbac.authorization.k8s.io".to_owned(),
            version: "v1".to_owned(),
            plural: "clusterroles".to_owned(),
            kind: "ClusterRole".to_owned(),
            namespaced: false,
        };
        Spec::new(resource, Scope::Object { namespace: String::new(), name: name.to_owned() })
    }

    #[test]
    fn an_object_may_have_any_name_that_can_be_a_part_of_a_path() {
        for (name, selector) in [
            ("view", "metadata.name=view"),
            ("view (legacy)", "metadata.name=view (legacy)"),
            ("a,b=c\\d", "metadata.name=a\\,b\\=c\\\\d"),
            ("größe", "metadata.name=größe"),
        ] {
            let spec = role(name);
            assert_eq!(spec.problem(), None, "{name}");
            assert_eq!(spec.targets()[0].1.field_selector.as_deref(), Some(selector));
        }
        for name in ["", ".", "..", "a/b", "a%2Fb"] {
            let problem = role(name).problem().unwrap();
            assert_eq!(problem, format!("{name:?} is not a name that an object can have"));
        }
    }
}
