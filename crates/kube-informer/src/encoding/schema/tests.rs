use std::collections::BTreeSet;

use super::table::{MESSAGES, ROOTS};
use super::*;

/// `core/v1.PodSpec`, by its name.
fn named(name: &str) -> &'static Message {
    MESSAGES.iter().find(|message| message.to_string() == name).unwrap()
}

/// `core/v1.PodSpec/nodeName`: a message and a name in JSON.
fn field(path: &str) -> &'static Field {
    let (message, name) = path.rsplit_once('/').unwrap();
    named(message).field_by_name(name).unwrap()
}

fn spot(path: &str) -> (u16, Shape, Kind, Absent, bool) {
    let Field { number, shape, kind, absent, drop_zero, .. } = *field(path);
    (number, shape, kind, absent, drop_zero)
}

/// The message that a kind names.
fn inner(kind: Kind) -> Option<&'static Message> {
    match kind {
        Kind::Message(id)
        | Kind::SchemaOrBool(id)
        | Kind::SchemaOrArray(id)
        | Kind::SchemaOrStringArray(id) => Some(message(id)),
        _ => None,
    }
}

fn fields() -> impl Iterator<Item = (&'static Message, &'static Field)> {
    MESSAGES.iter().flat_map(|message| message.fields().iter().map(move |field| (message, field)))
}

#[test]
fn the_first_line_says_the_release_and_how_much_there_is() {
    let head = include_str!("../schema.txt").lines().next().unwrap();
    let counts = format!("{} messages, {} fields, {} roots", MESSAGES.len(), fields().count(), ROOTS.len());
    assert!(head.starts_with(&format!("# Kubernetes 1.{MINOR}: {counts}.")), "{head}");
    assert_eq!(MINOR, 37);
    assert!(MESSAGES.len() > 1_000 && fields().count() > 4_000 && ROOTS.len() > 700, "{head}");
}

#[test]
fn each_line_of_the_text_is_in_the_table() {
    let marks = |field: &Field| {
        let shape = match field.shape {
            Shape::One => '.',
            Shape::Pointer => '*',
            Shape::List => '[',
            Shape::Map => '{',
            Shape::Embedded => '+',
        };
        let absent = match (field.absent, field.drop_zero) {
            (Absent::Omit, false) => '?',
            (Absent::Omit, true) => '-',
            (Absent::Null, _) => '~',
            (Absent::Zero, _) => '!',
            (Absent::EmptyList, _) => '0',
        };
        let kind = match field.kind {
            Kind::Bool => 'b',
            Kind::Int32 => 'i',
            Kind::Int64 => 'l',
            Kind::Double => 'd',
            Kind::String => 's',
            Kind::Bytes => 'y',
            Kind::Time => 'T',
            Kind::MicroTime => 'U',
            Kind::Quantity => 'Q',
            Kind::IntOrString => 'I',
            Kind::Raw => 'R',
            Kind::Strings => 'L',
            Kind::SchemaOrBool(_) => 'B',
            Kind::SchemaOrArray(_) => 'A',
            Kind::SchemaOrStringArray(_) => 'P',
            Kind::Message(_) => 'M',
        };
        format!("{}{shape}{absent}{kind}", field.number)
    };
    let relative = |package: &str, message: &Message| {
        if message.package() == package { message.name().to_owned() } else { message.to_string() }
    };
    let mut lines = vec![include_str!("../schema.txt").lines().next().unwrap().to_owned()];
    let mut package = "";
    for message in &MESSAGES {
        if message.package() != package {
            package = message.package();
            lines.push(format!(":{package}"));
        }
        lines.push(message.name().to_owned());
        for field in message.fields() {
            let words = [
                marks(field),
                field.name().to_owned(),
                inner(field.kind).map(|message| relative(package, message)).unwrap_or_default(),
            ];
            lines.push(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
        }
    }
    let mut api_version = "";
    for root in &ROOTS {
        if root.api_version() != api_version {
            api_version = root.api_version();
            let own = ROOTS.iter().filter(|other| other.api_version() == api_version);
            let packages: Vec<_> = own.map(|other| message(other.message).package()).collect();
            package = packages.iter().find(|package| **package != "meta/v1").unwrap_or(&"meta/v1");
            lines.push(format!("@{api_version} {package}"));
        }
        lines.push(relative(package, message(root.message)));
    }
    for (made, line) in lines.iter().zip(include_str!("../schema.txt").lines()) {
        assert_eq!(made, line);
    }
    assert_eq!(lines.len(), include_str!("../schema.txt").lines().count());
}

#[test]
fn fields_are_sorted_by_number_and_found_by_it() {
    for message in &MESSAGES {
        assert!(message.fields().is_sorted_by(|a, b| a.number < b.number), "{message}");
        for field in message.fields() {
            let found = message.field_by_number(field.number.into()).unwrap();
            assert!(std::ptr::eq(found, field), "{message} {}", field.number);
        }
        assert!(message.field_by_number(0).is_none());
        assert!(message.field_by_number(u32::MAX).is_none());
        // Not cut to the width of a field's number.
        assert!(message.field_by_number(65_536 + 1).is_none());
    }
}

#[test]
fn a_field_that_json_shows_though_it_is_absent_is_not_passed_by() {
    for (message, field) in fields() {
        let silent = field.absent == Absent::Omit && field.shape != Shape::Embedded;
        let number = if silent { field.number } else { NO_FIELD };
        assert_eq!(field.silent_number, number, "{message} {}", field.number);
        assert!(field.number < NO_FIELD);
    }
}

#[test]
fn metadata_without_the_rest_is_found() {
    assert_eq!(message(PARTIAL_METADATA).to_string(), "meta/v1.PartialObjectMetadata");
}

#[test]
fn fields_are_found_by_name_unless_embedded() {
    for (message, field) in fields() {
        let found = message.field_by_name(field.name());
        if field.shape == Shape::Embedded {
            assert!(field.name().is_empty() && found.is_none(), "{message} {}", field.number);
        } else {
            assert!(std::ptr::eq(found.unwrap(), field), "{message} {}", field.name());
        }
    }
    assert!(named("core/v1.Volume").field_by_name("hostPath").is_none());
    assert!(named("core/v1.Volume").field_by_name("Name").is_none());
}

#[test]
fn names_are_unique_once_embedded_messages_are_laid_flat() {
    fn flat(message: &Message, names: &mut Vec<&'static str>) {
        for field in message.fields() {
            match field.shape {
                Shape::Embedded => flat(inner(field.kind).unwrap(), names),
                _ => names.push(field.name()),
            }
        }
    }
    for message in &MESSAGES {
        let mut names = Vec::new();
        flat(message, &mut names);
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{message}: {names:?}");
    }
}

#[test]
fn every_id_is_in_range() {
    for kind in fields().map(|(_, field)| field.kind) {
        if let Some(inner) = inner(kind) {
            assert!(!inner.name().is_empty());
        }
    }
}

#[test]
fn every_root_is_found() {
    assert!(ROOTS.is_sorted_by_key(|root| (root.api_version(), root.kind())));
    for expected in &ROOTS {
        let found = root(expected.api_version(), expected.kind()).unwrap();
        assert!(std::ptr::eq(found, expected), "{} {}", expected.api_version(), expected.kind());
        assert_eq!(message(found.message).name(), expected.kind());
    }
}

#[test]
fn kinds_of_every_group_have_roots() {
    for (api_version, kind, name) in [
        ("v1", "Pod", "core/v1.Pod"),
        ("v1", "Status", "meta/v1.Status"),
        ("v1", "WatchEvent", "meta/v1.WatchEvent"),
        ("v1", "List", "core/v1.List"),
        ("v1", "APIGroupList", "meta/v1.APIGroupList"),
        ("v1", "APIResourceList", "meta/v1.APIResourceList"),
        ("apps/v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("meta.k8s.io/v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("meta.k8s.io/v1", "PartialObjectMetadata", "meta/v1.PartialObjectMetadata"),
        ("meta.k8s.io/v1", "PartialObjectMetadataList", "meta/v1.PartialObjectMetadataList"),
        ("rbac.authorization.k8s.io/v1", "Role", "rbac/v1.Role"),
        ("admission.k8s.io/v1", "AdmissionReview", "admission/v1.AdmissionReview"),
        ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList", "apidiscovery/v2.APIGroupDiscoveryList"),
        ("imagepolicy.k8s.io/v1alpha1", "ImageReview", "imagepolicy/v1alpha1.ImageReview"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "apiextensions/v1.CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService", "apiregistration/v1.APIService"),
    ] {
        let found = root(api_version, kind).unwrap_or_else(|| panic!("{api_version} {kind}"));
        assert_eq!(message(found.message).to_string(), name);
    }
}

#[test]
fn a_kind_that_protobuf_does_not_carry_has_no_root() {
    for (api_version, kind) in [
        ("", ""),
        ("v1", ""),
        ("", "Pod"),
        ("v1", "pod"),
        ("v1", "Deployment"),
        ("core/v1", "Pod"),
        ("apps/v1", "Deploymen"),
        ("example.com/v1", "Pod"),
        ("meta.k8s.io/v1", "Table"),
    ] {
        assert!(root(api_version, kind).is_none(), "{api_version} {kind}");
    }
}

#[test]
fn objects_are_told_from_lists_and_options() {
    let is = |api_version, kind| is_object(root(api_version, kind).unwrap());
    assert!(is("v1", "Pod") && is("v1", "Event") && is("meta.k8s.io/v1", "PartialObjectMetadata"));
    assert!(is("apps/v1", "Deployment") && is("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    assert!(!is("v1", "PodList") && !is("v1", "Status") && !is("v1", "DeleteOptions"));
    // Its first field is no metadata.
    assert!(!is("admission.k8s.io/v1", "AdmissionReview"));
    for root in ROOTS.iter().filter(|root| is_object(root)) {
        assert_eq!(message(root.message).field_by_name("metadata").unwrap().number, 1, "{}", root.kind());
    }
}

#[test]
fn metadata_is_where_cutting_and_scanning_expect_it() {
    let (number, shape, kind, absent, drop_zero) = spot("core/v1.Pod/metadata");
    assert_eq!((number, shape, absent, drop_zero), (1, Shape::One, Absent::Zero, false));
    assert_eq!(kind, Kind::Message(table::OBJECT_META));
    for (name, number) in [
        ("name", 1),
        ("namespace", 3),
        ("uid", 5),
        ("resourceVersion", 6),
        ("generation", 7),
        ("creationTimestamp", 8),
        ("deletionTimestamp", 9),
        ("labels", 11),
        ("annotations", 12),
        ("ownerReferences", 13),
        ("managedFields", 17),
    ] {
        assert_eq!(field(&format!("meta/v1.ObjectMeta/{name}")).number, number, "{name}");
    }
    assert_eq!(field("meta/v1.ObjectMeta/managedFields").shape, Shape::List);
    assert_eq!(inner(field("meta/v1.ObjectMeta/managedFields").kind).unwrap().name(), "ManagedFieldsEntry");
}

#[test]
fn zero_times_are_dropped_from_creation_alone() {
    let omitted = (8, Shape::One, Kind::Time, Absent::Omit, true);
    assert_eq!(spot("meta/v1.ObjectMeta/creationTimestamp"), omitted);
    let null = (4, Shape::One, Kind::Time, Absent::Zero, false);
    assert_eq!(spot("core/v1.PodCondition/lastTransitionTime"), null);
    let pointer = (9, Shape::Pointer, Kind::Time, Absent::Omit, false);
    assert_eq!(spot("meta/v1.ObjectMeta/deletionTimestamp"), pointer);
    for (message, field) in fields().filter(|(_, field)| field.drop_zero) {
        let scalar = !matches!(field.kind, Kind::Message(_) | Kind::Time);
        assert!(scalar || field.name() == "creationTimestamp", "{message} {}", field.name());
        assert_eq!((field.shape, field.absent), (Shape::One, Absent::Omit), "{message} {}", field.name());
    }
}

#[test]
fn items_of_a_list_are_never_null() {
    assert_eq!(field("core/v1.PodList/items").absent, Absent::EmptyList);
    assert_eq!(field("core/v1.List/items").absent, Absent::EmptyList);
    assert_eq!(field("core/v1.List/items").kind, Kind::Raw);
    assert_eq!(field("core/v1.ConfigMapVolumeSource/items").absent, Absent::Omit);
    for (message, field) in fields().filter(|(_, field)| field.absent == Absent::EmptyList) {
        // One list has its fields the other way round.
        let number = if message.package() == "meta/v1beta1" { 1 } else { 2 };
        assert_eq!((field.name(), field.shape, field.number), ("items", Shape::List, number), "{message}");
    }
}

#[test]
fn the_go_type_decides_what_an_absent_field_is() {
    let rule = |path| {
        let (_, shape, _, absent, drop_zero) = spot(path);
        (shape, absent, drop_zero)
    };
    // Values: left out with omitempty, else always there.
    assert_eq!(rule("core/v1.PodSpec/nodeName"), (Shape::One, Absent::Omit, true));
    assert_eq!(rule("core/v1.ContainerStatus/name"), (Shape::One, Absent::Zero, false));
    assert_eq!(rule("core/v1.ContainerStatus/ready"), (Shape::One, Absent::Zero, false));
    assert_eq!(rule("core/v1.ContainerStatus/restartCount"), (Shape::One, Absent::Zero, false));
    // Structs: always there, whatever the tag says.
    assert_eq!(rule("core/v1.Pod/status"), (Shape::One, Absent::Zero, false));
    assert_eq!(rule("core/v1.ContainerStatus/lastState"), (Shape::One, Absent::Zero, false));
    // Pointers, lists and maps: null without omitempty.
    assert_eq!(rule("apps/v1.DeploymentSpec/replicas"), (Shape::Pointer, Absent::Omit, false));
    assert_eq!(rule("apps/v1.DeploymentSpec/selector"), (Shape::Pointer, Absent::Null, false));
    assert_eq!(rule("core/v1.PodSpec/containers"), (Shape::List, Absent::Null, false));
    assert_eq!(rule("core/v1.PodSpec/volumes"), (Shape::List, Absent::Omit, false));
    assert_eq!(rule("core/v1.PodSpec/nodeSelector"), (Shape::Map, Absent::Omit, false));
    assert_eq!(rule("certificates/v1.CertificateSigningRequestSpec/request").1, Absent::Null);
    // Tagged as bytes, and a number.
    assert_eq!(field("meta/v1.ListMeta/remainingItemCount").kind, Kind::Int64);
}

#[test]
fn values_that_write_their_own_json_have_kinds_of_their_own() {
    for (path, shape, kind) in [
        ("core/v1.ResourceRequirements/limits", Shape::Map, Kind::Quantity),
        ("core/v1.EmptyDirVolumeSource/sizeLimit", Shape::Pointer, Kind::Quantity),
        ("core/v1.ServicePort/targetPort", Shape::One, Kind::IntOrString),
        ("policy/v1.PodDisruptionBudgetSpec/minAvailable", Shape::Pointer, Kind::IntOrString),
        ("policy/v1.PodDisruptionBudgetStatus/disruptedPods", Shape::Map, Kind::Time),
        ("coordination/v1.LeaseSpec/renewTime", Shape::Pointer, Kind::MicroTime),
        ("core/v1.Secret/data", Shape::Map, Kind::Bytes),
        ("core/v1.Secret/stringData", Shape::Map, Kind::String),
        ("meta/v1.ManagedFieldsEntry/fieldsV1", Shape::Pointer, Kind::Raw),
        ("apps/v1.ControllerRevision/data", Shape::One, Kind::Raw),
        ("meta/v1.WatchEvent/object", Shape::One, Kind::Raw),
        ("meta/v1.APIResource/verbs", Shape::One, Kind::Strings),
        ("authentication/v1.UserInfo/extra", Shape::Map, Kind::Strings),
        ("apiextensions/v1.JSONSchemaProps/default", Shape::Pointer, Kind::Raw),
        ("apiextensions/v1.JSONSchemaProps/enum", Shape::List, Kind::Raw),
        ("apiextensions/v1.JSONSchemaProps/maximum", Shape::Pointer, Kind::Double),
    ] {
        let found = field(path);
        assert_eq!((found.shape, found.kind), (shape, kind), "{path}");
    }
}

#[test]
fn schemas_refer_to_themselves() {
    for package in ["apiextensions/v1", "apiextensions/v1beta1"] {
        let name = format!("{package}.JSONSchemaProps");
        let own = |field: &str| {
            let kind = named(&name).field_by_name(field).unwrap().kind;
            assert!(std::ptr::eq(inner(kind).unwrap(), named(&name)), "{name} {field}");
            kind
        };
        assert!(matches!(own("items"), Kind::SchemaOrArray(_)));
        assert!(matches!(own("additionalProperties"), Kind::SchemaOrBool(_)));
        assert!(matches!(own("dependencies"), Kind::SchemaOrStringArray(_)));
        assert!(matches!(own("properties"), Kind::Message(_)));
        assert!(matches!(own("not"), Kind::Message(_)));
    }
}

#[test]
fn embedded_messages_are_nested_on_the_wire() {
    let embedded = |name: &str| {
        let all = named(name).fields().iter().filter(|field| field.shape == Shape::Embedded);
        let all: Vec<_> = all.map(|field| (field.number, inner(field.kind).unwrap().name())).collect();
        assert_eq!(all.len(), 1, "{name}");
        all[0]
    };
    assert_eq!(embedded("core/v1.Volume"), (2, "VolumeSource"));
    assert_eq!(embedded("core/v1.PersistentVolumeSpec"), (2, "PersistentVolumeSource"));
    assert_eq!(embedded("core/v1.Probe"), (1, "ProbeHandler"));
    assert_eq!(embedded("core/v1.EphemeralContainer"), (1, "EphemeralContainerCommon"));
    assert_eq!(embedded("core/v1.ConfigMapKeySelector"), (1, "LocalObjectReference"));
    // Two levels.
    assert_eq!(embedded("admissionregistration/v1.NamedRuleWithOperations"), (2, "RuleWithOperations"));
    assert_eq!(embedded("admissionregistration/v1.RuleWithOperations"), (2, "Rule"));
    for (message, field) in fields().filter(|(_, field)| field.shape == Shape::Embedded) {
        assert!(matches!(field.kind, Kind::Message(_)), "{message}");
        assert_eq!((field.absent, field.drop_zero), (Absent::Zero, false), "{message}");
    }
}

#[test]
fn the_table_is_as_large_as_is_said_of_it() {
    let statics = size_of_val(&table::FIELDS) + size_of_val(&MESSAGES) + size_of_val(&ROOTS);
    assert!((140_000..156_000).contains(&table::TEXT.len()), "{}", table::TEXT.len());
    assert!((88_000..96_000).contains(&statics), "{statics}");
}
