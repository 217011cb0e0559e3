//! Parts of a definition as errors show them: the real server prints its Go structs.

use serde_json::Value;

use super::Shared;
use crate::crd::{flag, items, present, text};

/// Name in Go and in JSON, in the order in which Go prints them.
pub(super) const FIELDS: [(&str, &str); 43] = [
    ("ID", "id"),
    ("Schema", "$schema"),
    ("Ref", "$ref"),
    ("Description", "description"),
    ("Type", "type"),
    ("Nullable", "nullable"),
    ("Format", "format"),
    ("Title", "title"),
    ("Default", "default"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Enum", "enum"),
    ("MaxProperties", "maxProperties"),
    ("MinProperties", "minProperties"),
    ("Required", "required"),
    ("Items", "items"),
    ("AllOf", "allOf"),
    ("OneOf", "oneOf"),
    ("AnyOf", "anyOf"),
    ("Not", "not"),
    ("Properties", "properties"),
    ("AdditionalProperties", "additionalProperties"),
    ("PatternProperties", "patternProperties"),
    ("Dependencies", "dependencies"),
    ("AdditionalItems", "additionalItems"),
    ("Definitions", "definitions"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource"),
    ("XIntOrString", "x-kubernetes-int-or-string"),
    ("XListMapKeys", "x-kubernetes-list-map-keys"),
    ("XListType", "x-kubernetes-list-type"),
    ("XMapType", "x-kubernetes-map-type"),
];

/// What a root may hold beside a status subresource.
pub(super) const ALLOWED_BESIDE_STATUS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Whether a field is set as soon as it is there, whatever it holds.
pub(super) fn is_pointer(key: &str) -> bool {
    matches!(
        key,
        "$ref"
            | "default"
            | "maximum"
            | "minimum"
            | "maxLength"
            | "minLength"
            | "maxItems"
            | "minItems"
            | "multipleOf"
            | "maxProperties"
            | "minProperties"
            | "items"
            | "not"
            | "additionalProperties"
            | "additionalItems"
            | "externalDocs"
            | "example"
            | "x-kubernetes-preserve-unknown-fields"
            | "x-kubernetes-list-type"
            | "x-kubernetes-map-type"
    )
}

/// The versions, without what they share.
pub(super) fn versions(
    versions: &[Value],
    schemas: &Shared<'_>,
    subresources: &Shared<'_>,
    columns: &Shared<'_>,
    selectable: &Shared<'_>,
) -> String {
    let all = versions.iter().enumerate().map(|(index, version)| {
        object(&[
            ("Name", quoted(text(version, "name"))),
            ("Served", flag(version, "served").to_string()),
            ("Storage", flag(version, "storage").to_string()),
            ("Deprecated", flag(version, "deprecated").to_string()),
            ("DeprecationWarning", or_null(present(version, "deprecationWarning").map(plain))),
            ("Schema", or_null(schemas.at(index).map(validation))),
            ("Subresources", or_null(subresources.at(index).map(subresources_of))),
            ("AdditionalPrinterColumns", or_null(columns.at(index).map(columns_of))),
            ("SelectableFields", or_null(selectable.at(index).map(selectable_of))),
        ])
    });
    escape(&array(all))
}

/// A schema with all of its fields, set or not.
pub(super) fn schema(schema: &Value) -> String {
    escape(&props(schema))
}

fn props(schema: &Value) -> String {
    let mut fields: Vec<(&str, String)> =
        FIELDS.iter().map(|(name, key)| (*name, field(schema.get(*key), key))).collect();
    let rules = items(schema, "x-kubernetes-validations");
    let rules = (!rules.is_empty()).then(|| array(rules.iter().map(rule)));
    fields.push(("XValidations", or_null(rules)));
    object(&fields)
}

fn field(value: Option<&Value>, key: &str) -> String {
    let value = value.filter(|value| !value.is_null());
    match (key, value) {
        ("id" | "$schema" | "description" | "type" | "format" | "title" | "pattern", None) => {
            "\"\"".to_owned()
        }
        (
            "nullable"
            | "exclusiveMaximum"
            | "exclusiveMinimum"
            | "uniqueItems"
            | "x-kubernetes-embedded-resource"
            | "x-kubernetes-int-or-string",
            None,
        ) => "false".to_owned(),
        (_, None) => "null".to_owned(),
        ("items", Some(Value::Array(list))) => {
            object(&[("Schema", "null".to_owned()), ("JSONSchemas", array(list.iter().map(props)))])
        }
        ("items", Some(one)) => object(&[("Schema", props(one)), ("JSONSchemas", "null".to_owned())]),
        ("allOf" | "oneOf" | "anyOf", Some(list)) => array(list.as_array().into_iter().flatten().map(props)),
        ("not", Some(one)) => props(one),
        ("properties" | "patternProperties" | "definitions", Some(map)) => {
            let fields = map.as_object().into_iter().flatten();
            let fields: Vec<String> =
                fields.map(|(name, value)| format!("{}:{}", quoted(name), props(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        ("additionalProperties" | "additionalItems", Some(value)) => {
            let allows = *value != Value::Bool(false);
            let inner = value.is_object().then(|| props(value));
            object(&[("Allows", allows.to_string()), ("Schema", or_null(inner))])
        }
        ("externalDocs", Some(docs)) => {
            object(&[("Description", quoted(text(docs, "description"))), ("URL", quoted(text(docs, "url")))])
        }
        (_, Some(value)) => value.to_string(),
    }
}

fn rule(rule: &Value) -> String {
    object(&[
        ("Rule", quoted(text(rule, "rule"))),
        ("Message", quoted(text(rule, "message"))),
        ("MessageExpression", quoted(text(rule, "messageExpression"))),
        ("Reason", or_null(present(rule, "reason").map(plain))),
        ("FieldPath", quoted(text(rule, "fieldPath"))),
        ("OptionalOldSelf", or_null(present(rule, "optionalOldSelf").map(plain))),
    ])
}

fn validation(schema: &Value) -> String {
    object(&[("OpenAPIV3Schema", or_null(present(schema, "openAPIV3Schema").map(props)))])
}

fn subresources_of(subresources: &Value) -> String {
    let scale = present(subresources, "scale").map(|scale| {
        object(&[
            ("SpecReplicasPath", quoted(text(scale, "specReplicasPath"))),
            ("StatusReplicasPath", quoted(text(scale, "statusReplicasPath"))),
            ("LabelSelectorPath", or_null(present(scale, "labelSelectorPath").map(plain))),
        ])
    });
    let status = present(subresources, "status").map(|_| "{}".to_owned());
    object(&[("Status", or_null(status)), ("Scale", or_null(scale))])
}

fn columns_of(columns: &Value) -> String {
    array(columns.as_array().into_iter().flatten().map(|column| {
        object(&[
            ("Name", quoted(text(column, "name"))),
            ("Type", quoted(text(column, "type"))),
            ("Format", quoted(text(column, "format"))),
            ("Description", quoted(text(column, "description"))),
            ("Priority", column.get("priority").and_then(Value::as_i64).unwrap_or_default().to_string()),
            ("JSONPath", quoted(text(column, "jsonPath"))),
        ])
    }))
}

fn selectable_of(fields: &Value) -> String {
    array(
        fields.as_array().into_iter().flatten().map(|f| object(&[("JSONPath", quoted(text(f, "jsonPath")))])),
    )
}

fn plain(value: &Value) -> String {
    value.to_string()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn or_null(text: Option<String>) -> String {
    text.unwrap_or_else(|| "null".to_owned())
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Go writes these three so that they are safe inside of HTML.
fn escape(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
