//! A CustomResourceDefinition and its objects.

use kube_informer_testbed::binaries::Unavailable;
use kube_informer_testbed::require;

use crate::harness::{Kubectl, ok};

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Phase, type: string, jsonPath: .status.phase}
    - {name: Size, type: string, jsonPath: .spec.size, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A thing.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: string, enum: [small, large], description: How big.}
              replicas: {type: integer, minimum: 0, default: 1}
          status:
            type: object
            properties: {phase: {type: string}, replicas: {type: integer}}
";

const GADGET: &str = "\
apiVersion: example.com/v1
kind: Gadget
metadata: {name: g1, labels: {a: b}}
spec: {size: small}
";

async fn with_gadget() -> Result<Kubectl, Unavailable> {
    let k = Kubectl::new().await?;
    k.file("definition.yaml", DEFINITION);
    k.file("gadget.yaml", GADGET);
    let created = k.ok("apply -f definition.yaml").await;
    assert_eq!(created, "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com created\n");
    let met = k.ok("wait --for=condition=Established crd/gadgets.example.com --timeout=60s").await;
    assert_eq!(met, "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com condition met\n");
    assert_eq!(k.ok("apply -f gadget.yaml").await, "gadget.example.com/g1 created\n");
    Ok(k)
}

#[tokio::test]
async fn a_custom_object_is_read_like_any_other() {
    let k = require!(with_gadget().await);
    assert_eq!(k.tidy("get gd").await, "NAME REPLICAS PHASE AGE\ng1 1 AGE");
    assert_eq!(k.tidy("get gadgets -o wide").await, "NAME REPLICAS PHASE SIZE AGE\ng1 1 small AGE");
    assert_eq!(k.tidy("get all -l a=b").await, "NAME REPLICAS PHASE AGE\ngadget.example.com/g1 1 AGE");
    assert_eq!(
        k.ok("get gadget.v1.example.com g1 -o jsonpath={.spec}").await,
        r#"{"replicas":1,"size":"small"}"#
    );
    let described = k.tidy("describe gadget g1").await;
    assert!(described.contains("\nSpec:\nReplicas: 1\nSize: small\nEvents: <none>"), "{described}");
    let resources = k.tidy("api-resources --api-group=example.com").await;
    assert_eq!(
        resources,
        "NAME SHORTNAMES APIVERSION NAMESPACED KIND\ngadgets gd example.com/v1 true Gadget"
    );
    let explained = k.tidy("explain gadget.spec").await;
    assert!(explained.contains("\nDESCRIPTION:\nWhat is wanted.\n"), "{explained}");
    assert!(explained.contains("\nreplicas <integer>\n"), "{explained}");
    assert!(explained.contains("\nsize <string> -required-\n"), "{explained}");
    let column = k.tidy("get crd gadgets.example.com").await;
    let expected = "NAME SCOPE VERSIONS CREATED AT\ngadgets.example.com Namespaced v1(storage) 2";
    assert!(column.starts_with(expected), "{column}");
}

#[tokio::test]
async fn a_custom_object_is_changed_like_any_other() {
    let k = require!(with_gadget().await);
    assert_eq!(k.ok("apply -f gadget.yaml").await, "gadget.example.com/g1 unchanged\n");
    assert_eq!(k.ok("scale gadget g1 --replicas=3").await, "gadget.example.com/g1 scaled\n");
    assert_eq!(k.tidy("get gd g1 --subresource=scale").await, "NAME DESIRED AVAILABLE AGE\ng1 3 0 AGE");
    let merge = r#"patch gadget g1 --type=merge -p {"spec":{"size":"large"}}"#;
    assert_eq!(k.ok(merge).await, "gadget.example.com/g1 patched\n");
    let json = r#"patch gadget g1 --type=json -p [{"op":"replace","path":"/spec/size","value":"small"}]"#;
    assert_eq!(k.ok(json).await, "gadget.example.com/g1 patched\n");
    let status = r#"patch gadget g1 --subresource=status --type=merge -p {"status":{"phase":"Ready"}}"#;
    assert_eq!(k.ok(status).await, "gadget.example.com/g1 patched\n");
    assert_eq!(
        k.ok("wait gadget/g1 --for=jsonpath={.status.phase}=Ready --timeout=60s").await,
        "gadget.example.com/g1 condition met\n"
    );
    assert_eq!(k.tidy("get gd").await, "NAME REPLICAS PHASE AGE\ng1 3 Ready AGE");
    assert_eq!(k.ok("label gadget g1 x=y").await, "gadget.example.com/g1 labeled\n");
    let mut edit = k.command("edit gadget g1");
    edit.env("KUBE_EDITOR", "sed -i s/size:.small/size:\\ large/");
    assert_eq!(ok("edit gadget g1", edit).await, "gadget.example.com/g1 edited\n");
    assert_eq!(k.ok("get gadget g1 -o jsonpath={.spec.size}:{.metadata.generation}").await, "large:5");
    assert_eq!(k.tidy("delete gadget g1").await, "gadget.example.com \"g1\" deleted");
}

#[tokio::test]
async fn a_custom_object_must_fit_its_schema() {
    let k = require!(with_gadget().await);
    k.file("bad.yaml", &GADGET.replace("g1", "g2").replace("small", "medium, replicas: -1"));
    assert_eq!(
        k.fails("apply -f bad.yaml").await,
        "The Gadget \"g2\" is invalid: \n\
         * spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0\n\
         * spec.size: Unsupported value: \"medium\": supported values: \"small\", \"large\"\n\
         * .spec.replicas: Invalid value: -1: should be a non-negative integer"
            .replace(" \n", "\n")
    );
    k.file("unknown.yaml", &GADGET.replace("g1", "g2").replace("small", "small, colour: red"));
    assert_eq!(
        k.fails("apply -f unknown.yaml").await,
        "Error from server (BadRequest): error when creating \"unknown.yaml\": Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown field \"spec.colour\""
    );
    let (out, err) = k.warned("apply -f unknown.yaml --validate=warn").await;
    assert_eq!(
        (out.as_str(), err.as_str()),
        ("gadget.example.com/g2 created", "Warning: unknown field \"spec.colour\"")
    );
}

#[tokio::test]
async fn a_definition_goes_with_its_objects() {
    let k = require!(with_gadget().await);
    let deleted = k.tidy("delete crd gadgets.example.com").await;
    assert_eq!(deleted, "customresourcedefinition.apiextensions.k8s.io \"gadgets.example.com\" deleted");
    assert_eq!(
        k.ok("apply -f definition.yaml").await,
        "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com created\n"
    );
    assert_eq!(k.ok("get gadgets -o name").await, "");
}
