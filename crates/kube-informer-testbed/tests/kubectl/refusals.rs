//! What is refused, in the words that kubectl shows on the real server.

use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let k = require!(Kubectl::new().await);
    for (arguments, complaint) in [
        ("get nothings", r#"error: the server doesn't have a resource type "nothings""#),
        ("get pods nope", r#"Error from server (NotFound): pods "nope" not found"#),
        ("get deploy nope", r#"Error from server (NotFound): deployments.apps "nope" not found"#),
        ("delete pod nope", r#"Error from server (NotFound): pods "nope" not found"#),
        (
            "scale deploy nope --replicas=1",
            r#"error: no objects passed to scale deployments.apps "nope" not found"#,
        ),
        ("rollout status deploy nope", r#"Error from server (NotFound): deployments.apps "nope" not found"#),
        ("-n nope create configmap a", r#"error: failed to create configmap: namespaces "nope" not found"#),
        ("explain nothing", r#"the server doesn't have a resource type "nothing""#),
    ] {
        let said = k.fails(arguments).await;
        assert!(said.ends_with(complaint), "kubectl {arguments}: {said}");
    }
    assert_eq!(k.ok("get pods nope --ignore-not-found").await, "");
}

#[tokio::test]
async fn what_exists_is_not_created_again() {
    let k = require!(Kubectl::new().await);
    assert_eq!(
        k.fails("create namespace default").await,
        r#"Error from server (AlreadyExists): namespaces "default" already exists"#
    );
}

#[tokio::test]
async fn bad_names_and_selectors_are_refused() {
    let k = require!(Kubectl::new().await);
    k.file("name.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}");
    for (arguments, complaint) in [
        (
            "create namespace BAD",
            "The Namespace \"BAD\" is invalid: metadata.name: Invalid value: \"BAD\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name', or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            "apply -f name.yaml",
            "The ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            "get pods -l a=(",
            "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match label selector \"a=(\", field selector \"\": unable to parse requirement: found '(', expected: identifier",
        ),
        (
            "get pods --field-selector spec.nope=1",
            "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match label selector \"\", field selector \"spec.nope=1\": field label not supported: spec.nope",
        ),
        (
            "get pods --field-selector a",
            "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match label selector \"\", field selector \"a\": invalid selector: 'a'; can't understand 'a'",
        ),
    ] {
        assert_eq!(k.fails(arguments).await, complaint, "kubectl {arguments}");
    }
}

#[tokio::test]
async fn files_that_are_no_objects_are_refused() {
    let k = require!(Kubectl::new().await);
    k.file("unknown.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {a: b}");
    k.file("type.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: many}]}");
    k.file("kind.yaml", "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}");
    k.file("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n");
    assert_eq!(
        k.fails("apply -f unknown.yaml").await,
        "Error from server (BadRequest): error when creating \"unknown.yaml\": ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dta\""
    );
    let (out, err) = k.warned("apply -f unknown.yaml --validate=warn").await;
    assert_eq!((out.as_str(), err.as_str()), ("configmap/a created", "Warning: unknown field \"dta\""));
    assert_eq!(k.ok("apply -f unknown.yaml --validate=false").await, "configmap/a configured\n");
    assert_eq!(
        k.fails("create -f type.yaml").await,
        "Error from server (BadRequest): error when creating \"type.yaml\": Service in version \"v1\" cannot be handled as a Service: json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32"
    );
    assert_eq!(
        k.fails("apply -f kind.yaml").await,
        "error: resource mapping not found for name: \"x\" namespace: \"\" from \"kind.yaml\": no matches for kind \"Nothing\" in version \"example.com/v1\"\nensure CRDs are installed first"
    );
    assert!(
        k.fails("apply -f broken.yaml")
            .await
            .starts_with("error: error parsing broken.yaml: error converting YAML to JSON:")
    );
}

#[tokio::test]
async fn changes_that_make_no_sense_are_refused() {
    let k = require!(Kubectl::new().await);
    k.ok("create deployment web --image=nginx").await;
    for (arguments, complaint) in [
        (
            r#"patch deployment web --type=merge -p {"spec":{"selector":{"matchLabels":{"a":"b"}}}}"#,
            "field is immutable",
        ),
        (
            r#"patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":9}]"#,
            "the server rejected our request due to an error in our request",
        ),
        (
            r#"patch deployment web --type=merge -p {"spec":{"replicas":-1}}"#,
            "The Deployment \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("set image deployment/web nope=nginx:3", "error: unable to find container named \"nope\""),
        (
            "label deployment web bad=@@",
            "a valid label must be an empty string or consist of alphanumeric characters",
        ),
    ] {
        let said = k.fails(arguments).await;
        assert!(said.contains(complaint), "kubectl {arguments}: {said}");
    }
    k.file("stale.yaml", &k.ok("get deployment web -o yaml").await);
    k.ok("scale deployment web --replicas=2").await;
    assert_eq!(
        k.fails("replace -f stale.yaml").await,
        "Error from server (Conflict): error when replacing \"stale.yaml\": Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your changes to the latest version and try again"
    );
}
