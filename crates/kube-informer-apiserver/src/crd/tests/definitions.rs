use serde_json::{Value, json};

use super::{NOW, definition, established, merge, shown, with_version};
use crate::crd::{
    default_definition, is_established, is_served, is_terminating, mark_deleted, mark_deleting_instances,
    mark_instances_deleted, prepare_definition, resources, status, validate_definition,
    warnings_of_definition,
};

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn errors_of(mut crd: Value) -> Vec<String> {
    default_definition(&mut crd);
    prepare_definition(&mut crd, None);
    shown(&validate_definition(&crd, None))
}

fn schema_errors(schema: Value) -> Vec<String> {
    let prefix = "spec.validation.openAPIV3Schema";
    let errors = errors_of(definition(schema));
    errors.into_iter().map(|e| e.strip_prefix(prefix).unwrap_or(&e).to_owned()).collect()
}

fn property_errors(property: Value) -> Vec<String> {
    let errors = schema_errors(json!({ "type": "object", "properties": { "a": property } }));
    errors.into_iter().map(|e| e.strip_prefix(".properties[a]").unwrap_or(&e).to_owned()).collect()
}

fn with_spec(more: Value) -> Value {
    let mut crd = definition(json!({ "type": "object" }));
    merge(&mut crd["spec"], more);
    crd
}

#[test]
fn a_definition_is_completed_with_names_conversion_and_stored_version() {
    let mut crd = definition(json!({ "type": "object" }));
    default_definition(&mut crd);
    prepare_definition(&mut crd, None);
    assert_eq!(
        crd["spec"]["names"],
        json!({ "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList" })
    );
    assert_eq!(crd["spec"]["conversion"], json!({ "strategy": "None" }));
    assert_eq!(
        crd["status"],
        json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": ["v1"] })
    );
    assert_eq!(shown(&validate_definition(&crd, None)), [""; 0]);
}

#[test]
fn the_name_must_be_plural_and_group() {
    let mut crd = definition(json!({ "type": "object" }));
    crd["metadata"]["name"] = "x".into();
    assert_eq!(
        errors_of(crd),
        [r#"metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group"#]
    );
}

#[test]
fn group_and_scope_are_required_and_shaped() {
    let mut crd = with_spec(json!({ "group": "ex", "scope": "X" }));
    crd["metadata"]["name"] = "foos.ex".into();
    assert_eq!(
        errors_of(crd),
        [
            r#"spec.group: Invalid value: "ex": should be a domain with at least one dot"#,
            r#"spec.scope: Unsupported value: "X": supported values: "Cluster", "Namespaced""#,
        ]
    );
    assert_eq!(errors_of(with_spec(json!({ "scope": "" }))), ["spec.scope: Required value"]);
}

#[test]
fn names_are_dns_labels_and_kinds_may_be_mixed_case() {
    let names = json!({ "plural": "foos", "kind": "F_o", "listKind": "FList", "shortNames": ["A"] });
    let mut expected = [
        format!(
            "spec.names.kind: Invalid value: \"F_o\": may have mixed case, but should otherwise match: {LABEL}"
        ),
        format!("spec.names.shortNames[0]: Invalid value: \"A\": {LABEL}"),
        format!("spec.names.singular: Invalid value: \"f_o\": {LABEL}"),
    ];
    expected.sort();
    assert_eq!(errors_of(with_spec(json!({ "names": names }))), expected);
}

#[test]
fn exactly_one_version_is_stored() {
    let version = r#"{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}"#;
    let crd =
        with_version(json!({ "storage": false, "schema": { "openAPIV3Schema": { "type": "object" } } }));
    assert_eq!(
        errors_of(crd),
        [
            format!(
                "spec.versions: Invalid value: [{version}]: must have exactly one version marked as storage version"
            ),
            "status.storedVersions: Invalid value: null: must have at least one stored version".to_owned(),
        ]
    );
}

#[test]
fn every_version_needs_a_schema() {
    let expected = ["spec.versions[0].schema.openAPIV3Schema: Required value"];
    assert_eq!(errors_of(with_version(json!({}))), expected);
}

#[test]
fn errors_of_schemas_that_versions_do_not_share_stand_at_the_version() {
    let schema = |schema: Value| json!({ "openAPIV3Schema": schema });
    let versions = json!([
        { "name": "v1", "served": true, "storage": true,
          "schema": schema(json!({ "type": "object", "properties": { "a": {} } })) },
        { "name": "v2", "served": true, "storage": false, "schema": schema(json!({ "type": "object" })) },
    ]);
    assert_eq!(
        errors_of(with_spec(json!({ "versions": versions }))),
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"
        ]
    );
}

#[test]
fn schemas_are_structural() {
    assert_eq!(schema_errors(json!({})), [".type: Required value: must not be empty at the root"]);
    assert_eq!(
        schema_errors(json!({ "type": "object", "additionalProperties": { "type": "string" } })),
        [".additionalProperties: Forbidden: must not be used at the root"]
    );
    assert_eq!(property_errors(json!({ "type": "array" })), [".items: Required value: must be specified"]);
    assert_eq!(
        property_errors(json!({ "type": "string", "anyOf": [{ "type": "string", "nullable": true }] })),
        [
            ".anyOf[0].nullable: Forbidden: must be false to be structural",
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ]
    );
    assert_eq!(
        property_errors(
            json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] })
        ),
        [""; 0]
    );
    assert_eq!(
        schema_errors(json!({ "type": "object", "anyOf": [{ "properties": { "b": { "minimum": 1 } } }] })),
        [
            ".properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[b]"
        ]
    );
}

#[test]
fn constructs_beyond_structural_schemas_are_refused() {
    assert_eq!(
        property_errors(json!({ "type": "string", "$ref": "#/x" })),
        [".$ref: Forbidden: $ref is not supported"]
    );
    assert_eq!(
        property_errors(json!({ "type": "array", "uniqueItems": true, "items": { "type": "string" } })),
        [
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        ]
    );
    let both = json!({ "type": "object", "properties": { "b": { "type": "string" } },
                       "additionalProperties": { "type": "string" } });
    assert_eq!(
        property_errors(both),
        [".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"]
    );
    assert_eq!(
        property_errors(json!({ "type": "foo" })),
        [
            r#".type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#
        ]
    );
    assert_eq!(
        schema_errors(json!({ "type": "object", "$schema": "x" })),
        [r#": Invalid value: "": OpenAPIV3Schema 'schema' is not supported"#]
    );
}

#[test]
fn lists_that_are_maps_have_keys_that_are_always_there() {
    let list = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "z"],
        "items": { "type": "object", "properties": { "n": { "type": "string" } } },
    });
    assert_eq!(
        property_errors(list),
        [
            ".items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            r#".x-kubernetes-list-map-keys: Invalid value: ["n","z"]: entries must all be names of item properties"#,
        ]
    );
}

#[test]
fn patterns_are_regular_expressions_of_go() {
    let error_of = |pattern: &str| {
        property_errors(json!({ "type": "string", "pattern": pattern }))
            .first()
            .and_then(|e| e.split_once("error parsing regexp: ").map(|(_, why)| why.to_owned()))
    };
    for good in
        ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "{a}", "a{,3}", r"\Qa.b\E", "[]a]", "[a&&b]", r"[^\d]+", r"\012"]
    {
        assert_eq!(error_of(good), None, "{good}");
    }
    for (bad, why) in [
        ("(?=a)b", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("[", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
    ] {
        assert_eq!(error_of(bad).as_deref(), Some(why), "{bad}");
    }
}

#[test]
fn defaults_must_be_valid_and_hold_nothing_unknown() {
    assert_eq!(
        property_errors(json!({ "type": "integer", "default": "x" })),
        [r#".default: Invalid value: "string":  in body must be of type integer: "string""#]
    );
    assert_eq!(
        property_errors(
            json!({ "type": "object", "default": { "q": 1 }, "properties": { "z": { "type": "integer" } } })
        ),
        [r#".default: Invalid value: {"q":1}: must not have unknown fields"#]
    );
    assert_eq!(
        schema_errors(
            json!({ "type": "object", "properties": { "metadata": { "type": "object", "default": {} } } })
        ),
        [".properties[metadata].default: Forbidden: must not be set in top-level metadata"]
    );
}

#[test]
fn metadata_may_only_be_narrowed_in_its_name() {
    let metadata =
        |metadata: Value| schema_errors(json!({ "type": "object", "properties": { "metadata": metadata } }));
    let named = json!({ "type": "object", "properties": { "name": { "type": "string", "maxLength": 5 } } });
    assert_eq!(metadata(named), [""; 0]);
    assert_eq!(
        metadata(json!({ "type": "object", "properties": { "labels": { "type": "object" } } })),
        [
            ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
        ]
    );
}

#[test]
fn scale_paths_stand_under_spec_and_status() {
    let crd = with_version(json!({
        "schema": { "openAPIV3Schema": { "type": "object" } },
        "subresources": { "scale": { "specReplicasPath": "x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".foo" } },
    }));
    assert_eq!(
        errors_of(crd),
        [
            r#"spec.subresources.scale.labelSelectorPath: Invalid value: ".foo": should be a json path under either .spec or .status"#,
            r#"spec.subresources.scale.specReplicasPath: Invalid value: "x": must be a simple json path starting with ."#,
            r#"spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status"#,
        ]
    );
}

#[test]
fn selectable_fields_are_scalars_of_the_schema() {
    let crd = with_version(json!({
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object" } } } },
        "selectableFields": [{ "jsonPath": ".spec" }, { "jsonPath": ".spec.x" }, { "jsonPath": "spec" }],
    }));
    assert_eq!(
        errors_of(crd),
        [
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
            r#"spec.selectableFields[1].jsonPath: Invalid value: ".spec.x": is an invalid path: does not refer to a valid field"#,
            r#"spec.selectableFields[2].jsonPath: Invalid value: "spec": is an invalid path: expected [ or . but got: spec"#,
        ]
    );
}

#[test]
fn conversion_webhooks_are_refused() {
    assert_eq!(
        errors_of(with_spec(json!({ "conversion": { "strategy": "X" } }))),
        [r#"spec.conversion.strategy: Unsupported value: "X": supported values: "None", "Webhook""#]
    );
    let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": { "url": "https://x" } });
    assert_eq!(
        errors_of(with_spec(json!({ "conversion": { "strategy": "Webhook", "webhook": webhook } }))),
        ["spec.conversion.strategy: Forbidden: this server calls no conversion webhooks; use None"]
    );
}

#[test]
fn preserving_all_unknown_fields_is_a_thing_of_the_past() {
    assert_eq!(
        errors_of(with_spec(json!({ "preserveUnknownFields": true }))),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ]
    );
}

#[test]
fn groups_of_kubernetes_need_approval() {
    let mut crd = with_spec(json!({ "group": "foo.k8s.io" }));
    crd["metadata"]["name"] = "foos.foo.k8s.io".into();
    assert_eq!(
        errors_of(crd.clone()),
        [
            r#"metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111"#
        ]
    );
    crd["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": "unapproved, a test" });
    assert_eq!(errors_of(crd), [""; 0]);
}

#[test]
fn what_names_the_storage_cannot_change() {
    let old = established(definition(json!({ "type": "object" })));
    let change = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new["spec"]);
        prepare_definition(&mut new, Some(&old));
        shown(&validate_definition(&new, Some(&old)))
    };
    assert_eq!(
        change(&|spec| spec["scope"] = "Cluster".into()),
        [r#"spec.scope: Invalid value: "Cluster": field is immutable"#]
    );
    assert_eq!(
        change(&|spec| spec["names"]["kind"] = "Q".into()),
        [r#"spec.names.kind: Invalid value: "Q": field is immutable"#]
    );
    assert_eq!(
        change(&|spec| spec["group"] = "z.com".into()),
        [r#"spec.group: Invalid value: "z.com": field is immutable"#]
    );
    assert_eq!(change(&|spec| spec["names"]["singular"] = "other".into()), [""; 0]);
    assert_eq!(
        change(&|spec| spec["versions"][0]["name"] = "v2".into()),
        [
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#
        ]
    );
}

#[test]
fn formats_that_nobody_checks_are_warned_about_once() {
    let old =
        definition(json!({ "type": "object", "properties": { "a": { "type": "string", "format": "zzz" } } }));
    assert_eq!(warnings_of_definition(&old, None), [r#"unrecognized format "zzz""#]);
    assert_eq!(warnings_of_definition(&old, Some(&old)), [""; 0]);
}

#[test]
fn a_definition_whose_names_are_free_is_established() {
    let crd = established(definition(json!({ "type": "object" })));
    assert_eq!(
        crd["status"],
        json!({
            "conditions": [
                { "type": "NamesAccepted", "status": "True", "lastTransitionTime": NOW,
                  "reason": "NoConflicts", "message": "no conflicts found" },
                { "type": "Established", "status": "True", "lastTransitionTime": NOW,
                  "reason": "InitialNamesAccepted", "message": "the initial names have been accepted" },
            ],
            "acceptedNames": { "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList" },
            "storedVersions": ["v1"],
        })
    );
    assert!(is_served(&crd) && is_established(&crd) && !is_terminating(&crd));
    assert_eq!(status(&crd, &[], "2030-01-01T00:00:00Z"), crd["status"], "nothing to say twice");
}

#[test]
fn a_definition_with_taken_names_is_not_served() {
    let first = established(definition(json!({ "type": "object" })));
    let mut second = definition(json!({ "type": "object" }));
    second["metadata"]["name"] = "bars.ex.com".into();
    second["spec"]["names"] = json!({ "plural": "bars", "singular": "foo", "kind": "Foo" });
    default_definition(&mut second);
    prepare_definition(&mut second, None);
    second["status"] = status(&second, std::slice::from_ref(&first), NOW);
    assert_eq!(
        second["status"]["conditions"],
        json!([
            { "type": "NamesAccepted", "status": "False", "lastTransitionTime": NOW,
              "reason": "ListKindConflict", "message": "\"FooList\" is already in use" },
            { "type": "Established", "status": "False", "lastTransitionTime": NOW,
              "reason": "NotAccepted", "message": "not all names are accepted" },
        ])
    );
    assert_eq!(second["status"]["acceptedNames"], json!({ "plural": "bars", "kind": "" }));
    assert!(!is_served(&second));
    let freed = status(&second, &[], NOW);
    assert_eq!(freed["acceptedNames"]["kind"], "Foo", "a freed name is taken");
    assert_eq!(freed["conditions"][1]["status"], "True");
}

#[test]
fn a_deleted_definition_waits_for_its_objects() {
    let mut crd = established(definition(json!({ "type": "object" })));
    mark_deleted(&mut crd, NOW);
    assert_eq!(crd["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(crd["metadata"]["deletionTimestamp"], NOW);
    assert_eq!(crd["status"]["conditions"][2]["reason"], "InstanceDeletionPending");
    assert!(is_terminating(&crd));
    let resource = resources(&crd).unwrap().remove(0);
    assert_eq!(resource.verbs, ["delete", "deletecollection", "get", "list", "watch"]);
    mark_deleting_instances(&mut crd, NOW);
    assert_eq!(crd["status"]["conditions"][2]["reason"], "InstanceDeletionInProgress");
    mark_instances_deleted(&mut crd, NOW);
    assert_eq!(crd["metadata"].get("finalizers"), None);
    assert_eq!(crd["status"]["conditions"][2]["reason"], "InstanceDeletionCompleted");
}

#[test]
fn each_served_version_becomes_a_resource() {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let crd = established(with_spec(json!({
        "names": { "plural": "foos", "kind": "Foo", "shortNames": ["f"], "categories": ["all"] },
        "versions": [
            { "name": "v1alpha1", "served": true, "storage": false, "deprecated": true, "schema": schema },
            { "name": "v1beta1", "served": false, "storage": false, "schema": schema },
            { "name": "v1", "served": true, "storage": true, "schema": schema,
              "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } } },
        ],
    })));
    let all = resources(&crd).unwrap();
    let versions: Vec<&str> = all.iter().map(|r| r.version.as_str()).collect();
    assert_eq!(versions, ["v1alpha1", "v1"]);
    assert!(
        all.iter().all(|r| r.storage_version == "v1" && r.short_names == ["f"] && r.categories == ["all"])
    );
    assert_eq!(
        all[0].custom.as_ref().unwrap().warnings,
        ["ex.com/v1alpha1 Foo is deprecated; use ex.com/v1 Foo"]
    );
    let subresources: Vec<&str> = all[1].subresources.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(subresources, ["status", "scale"]);
}

#[test]
fn columns_default_to_the_age_and_fall_back_to_none() {
    let columns = |columns: Value| {
        let crd = with_version(json!({
            "schema": { "openAPIV3Schema": { "type": "object" } }, "additionalPrinterColumns": columns,
        }));
        let resource = super::served(crd);
        let columns = resource.custom.as_ref().unwrap().columns.iter();
        columns.map(|c| (c.name.clone(), c.description.clone())).collect::<Vec<_>>()
    };
    assert_eq!(columns(json!([]))[0].0, "Age");
    assert_eq!(columns(json!([{ "name": "A", "type": "string", "jsonPath": ".spec[" }])).len(), 0);
    let described = "Custom resource definition column (in JSONPath format): .spec.a";
    assert_eq!(
        columns(json!([{ "name": "A", "type": "string", "jsonPath": ".spec.a" }])),
        [("A".to_owned(), described.to_owned())]
    );
}

#[test]
fn patterns_match_what_go_matches() {
    use crate::crd::pattern::Pattern;
    for (pattern, good, bad) in [
        (r"^\d+$", "12", "١٢"),
        (r"^\w$", "_", "é"),
        (r"^[\w.]+$", "a.b", "é"),
        (r"^[\x20-!]$", "!", "#"),
        (r"^[a-c-]$", "-", "d"),
        (r"^[a-c-e]$", "-", "d"),
        (r"^[[a]$", "[", "b"),
        (r"^[]a]$", "]", "b"),
        (r"^[a&&b]$", "&", "c"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\<$", "<", "a"),
        (r"^a{,3}$", "a{,3}", "aa"),
        (r"^\101$", "A", "B"),
        ("(?i)^ABC$", "abc", "abd"),
        (r"^[^\s]+$", "a", "a b"),
        ("a$", "ba", "a\n"),
    ] {
        let compiled = Pattern::new(pattern);
        assert_eq!(compiled.error(), None, "{pattern}");
        assert!(compiled.matches(good), "{pattern} {good}");
        assert!(!compiled.matches(bad), "{pattern} {bad}");
    }
}
