//! Field selectors, and the fields that each resource can be selected by.
//!
//! A value is compared as text. A field that is accepted but has no value in an object is the empty
//! string.

use serde_json::Value;

use crate::kinds::Resource;

/// Terms that are all to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// `path=value` or `path!=value`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldTerm {
    pub(crate) path: String,
    pub(crate) equals: bool,
    pub(crate) value: String,
}

impl FieldSelector {
    /// Reads the query parameter. Whether a resource has the fields is a second question.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let (path, equals, value) = split_term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            // Nothing equals nothing, and differs from nothing: such a term selects everything.
            if !(path.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { path: path.to_owned(), equals, value: unescape(value)? });
            }
        }
        Ok(Self { terms })
    }

    #[cfg(test)]
    pub(super) fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The name that every match must have, where the selector asks for one.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        let exact = self.terms.iter().find(|t| t.equals && t.path == "metadata.name");
        exact.map(|t| t.value.as_str())
    }

    /// The same selector in the field names that [`field_values`] uses, or why the resource cannot be
    /// selected so. `custom` are the `selectableFields` of a custom resource's version, without the
    /// leading dot.
    pub(crate) fn for_resource(mut self, resource: &Resource, custom: &[String]) -> Result<Self, String> {
        for term in &mut self.terms {
            term.path = known_as(resource, &term.path, custom)?;
        }
        Ok(self)
    }

    /// Compares with the values of one object: [`field_values`], for a custom resource joined with the
    /// values of its selectable fields.
    pub(crate) fn matches(&self, values: &[(String, String)]) -> bool {
        self.terms.iter().all(|term| {
            let found = values.iter().find(|(path, _)| *path == term.path).map_or("", |(_, v)| v.as_str());
            (found == term.value) == term.equals
        })
    }
}

impl std::fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, FieldTerm { path, equals, value }) in self.terms.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let operator = if *equals { "=" } else { "!=" };
            let value = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{path}{operator}{value}")?;
        }
        Ok(())
    }
}

/// Splits at commas that no backslash protects. Backslashes stay.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator, wherever it stands.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().find(|(at, c)| *c == '=' || term[*at..].starts_with("!="))?.0;
    let (path, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((path, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((path, true, value))
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            // The real server shows the code point.
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// How a resource refuses a field it does not know.
enum Refusal {
    /// Resources that say nothing about fields.
    Default,
    Plain,
    Job,
    ResourceSlice,
}

/// What one built-in resource can be selected by besides its name and namespace.
struct Selectable {
    namespace: bool,
    fields: &'static [&'static str],
    refusal: Refusal,
}

fn selectable(resource: &Resource) -> Selectable {
    let of = |namespace, fields, refusal| Selectable { namespace, fields, refusal };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => of(
            true,
            &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.podIPs",
                "status.nominatedNodeName",
            ],
            Refusal::Plain,
        ),
        ("", "nodes") => of(false, &["spec.unschedulable"], Refusal::Plain),
        ("", "replicationcontrollers") => of(true, &["status.replicas"], Refusal::Plain),
        ("", "events") => of(
            true,
            &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            Refusal::Plain,
        ),
        ("events.k8s.io", "events") => of(
            true,
            &[
                "regarding.kind",
                "regarding.namespace",
                "regarding.name",
                "regarding.uid",
                "regarding.apiVersion",
                "regarding.resourceVersion",
                "regarding.fieldPath",
                "reason",
                "reportingController",
                "type",
            ],
            Refusal::Plain,
        ),
        ("", "namespaces") => of(false, &["status.phase"], Refusal::Plain),
        ("", "secrets") => of(true, &["type"], Refusal::Plain),
        ("", "services") => of(true, &["spec.clusterIP", "spec.type"], Refusal::Plain),
        ("batch", "jobs") => of(true, &["status.successful"], Refusal::Job),
        ("certificates.k8s.io", "certificatesigningrequests" | "clustertrustbundles") => {
            of(false, &["spec.signerName"], Refusal::Plain)
        }
        ("certificates.k8s.io", "podcertificaterequests") => {
            of(false, &["spec.signerName", "spec.podName", "spec.nodeName"], Refusal::Plain)
        }
        ("resource.k8s.io", "resourceslices") => {
            of(false, &["spec.nodeName", "spec.driver", "spec.pool.name"], Refusal::ResourceSlice)
        }
        _ => of(true, &[], Refusal::Default),
    }
}

/// Every field path that a client may name for a built-in resource; a custom resource adds its own.
pub(crate) fn selectable_fields(resource: &Resource) -> Vec<String> {
    let mut all = vec!["metadata.name".to_owned()];
    if resource.custom.is_some() {
        all.extend(resource.namespaced.then(|| "metadata.namespace".to_owned()));
        return all;
    }
    let known = selectable(resource);
    all.extend(known.namespace.then(|| "metadata.namespace".to_owned()));
    all.extend(known.fields.iter().map(|f| (*f).to_owned()));
    all
}

/// The name under which [`field_values`] gives a field, or the real server's refusal.
fn known_as(resource: &Resource, path: &str, custom: &[String]) -> Result<String, String> {
    if selectable_fields(resource).iter().chain(custom).any(|known| known == path) {
        return Ok(match (resource.group.as_str(), path) {
            ("events.k8s.io", "reportingController") => "reportingComponent".to_owned(),
            ("events.k8s.io", path) => path.replace("regarding.", "involvedObject."),
            (_, path) => path.to_owned(),
        });
    }
    if resource.is("", "pods") && path == "spec.host" {
        return Ok("spec.nodeName".to_owned());
    }
    let refusal = if resource.custom.is_some() { Refusal::Plain } else { selectable(resource).refusal };
    Err(match refusal {
        Refusal::Plain => format!("field label not supported: {path}"),
        Refusal::Job => format!("field label {path:?} not supported for Job"),
        Refusal::ResourceSlice => {
            format!("field label not supported for {}, Kind=ResourceSlice: {path}", resource.api_version())
        }
        Refusal::Default => {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    })
}

/// The values that selectors compare with. A custom resource's own selectable fields are evaluated by
/// the caller.
pub(crate) fn field_values(resource: &Resource, object: &Value) -> Vec<(String, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let flag =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default().to_string();
    let number =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default().to_string();
    let mut values = vec![("metadata.name", text("/metadata/name"))];
    if resource.namespaced {
        values.push(("metadata.namespace", text("/metadata/namespace")));
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            let ip = text("/status/podIPs/0/ip");
            values.extend([
                ("spec.nodeName", text("/spec/nodeName")),
                ("spec.restartPolicy", text("/spec/restartPolicy")),
                ("spec.schedulerName", text("/spec/schedulerName")),
                ("spec.serviceAccountName", text("/spec/serviceAccountName")),
                ("spec.hostNetwork", flag("/spec/hostNetwork")),
                ("status.phase", text("/status/phase")),
                // Decoding fills podIPs from podIP where only that was sent.
                ("status.podIP", if ip.is_empty() { text("/status/podIP") } else { ip }),
                ("status.nominatedNodeName", text("/status/nominatedNodeName")),
            ]);
        }
        ("", "nodes") => values.push(("spec.unschedulable", flag("/spec/unschedulable"))),
        ("", "namespaces") => values.push(("status.phase", text("/status/phase"))),
        ("", "secrets") => values.push(("type", text("/type"))),
        ("", "services") => {
            values.extend([("spec.clusterIP", text("/spec/clusterIP")), ("spec.type", text("/spec/type"))]);
        }
        ("", "replicationcontrollers") | ("apps", "replicasets") => {
            values.push(("status.replicas", number("/status/replicas")));
        }
        ("batch", "jobs") => values.push(("status.successful", number("/status/succeeded"))),
        ("certificates.k8s.io", _) => values.extend([
            ("spec.signerName", text("/spec/signerName")),
            ("spec.podName", text("/spec/podName")),
            ("spec.nodeName", text("/spec/nodeName")),
        ]),
        ("resource.k8s.io", "resourceslices") => values.extend([
            ("spec.nodeName", text("/spec/nodeName")),
            ("spec.driver", text("/spec/driver")),
            ("spec.pool.name", text("/spec/pool/name")),
        ]),
        ("" | "events.k8s.io", "events") => values.extend(event_values(object)),
        _ => {}
    }
    values.into_iter().map(|(path, value)| (path.to_owned(), value)).collect()
}

/// Both groups' names for the same things; an object has the ones of the version it is written in.
fn event_values(object: &Value) -> Vec<(&'static str, String)> {
    let either = |one: &str, other: &str| {
        let found = object.pointer(one).or_else(|| object.pointer(other));
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let about = |name: &str| either(&format!("/involvedObject/{name}"), &format!("/regarding/{name}"));
    let reporter = either("/reportingComponent", "/reportingController");
    let source = either("/source/component", "/deprecatedSource/component");
    vec![
        ("involvedObject.kind", about("kind")),
        ("involvedObject.namespace", about("namespace")),
        ("involvedObject.name", about("name")),
        ("involvedObject.uid", about("uid")),
        ("involvedObject.apiVersion", about("apiVersion")),
        ("involvedObject.resourceVersion", about("resourceVersion")),
        ("involvedObject.fieldPath", about("fieldPath")),
        ("reason", either("/reason", "/reason")),
        ("source", if source.is_empty() { reporter.clone() } else { source }),
        ("reportingComponent", reporter),
        ("type", either("/type", "/type")),
    ]
}
