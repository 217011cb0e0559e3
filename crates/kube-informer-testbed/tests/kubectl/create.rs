//! `create`, `run`, `expose`: bodies that kubectl sends in protobuf where it can.

use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn workloads_are_created() {
    let k = require!(Kubectl::new().await);
    assert_eq!(
        k.ok("create deployment web --image=nginx --replicas=2 --port=80").await,
        "deployment.apps/web created\n"
    );
    let table = "\
NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR
web 0/2 0 0 AGE nginx nginx app=web";
    assert_eq!(k.tidy("get deploy web -o wide").await, table);
    assert_eq!(k.ok("create job once --image=busybox -- echo hi").await, "job.batch/once created\n");
    assert_eq!(
        k.ok("get job once -o jsonpath={.spec.template.spec.containers[0].command}").await,
        r#"["echo","hi"]"#
    );
    assert_eq!(
        k.ok("create cronjob hourly --image=busybox --schedule=@hourly -- date").await,
        "cronjob.batch/hourly created\n"
    );
    assert_eq!(k.ok("create job now --from=cronjob/hourly").await, "job.batch/now created\n");
    let owner =
        "get job now -o jsonpath={.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name}";
    assert_eq!(k.ok(owner).await, "CronJob/hourly");
    assert_eq!(k.ok("run one --image=nginx --labels=a=b --env=X=y").await, "pod/one created\n");
    assert_eq!(
        k.ok("get pod -l a=b -o jsonpath={.items[*].spec.containers[*].env}").await,
        r#"[{"name":"X","value":"y"}]"#
    );
    assert_eq!(k.ok("expose deployment web --port=8080 --target-port=80").await, "service/web exposed\n");
    assert_eq!(
        k.tidy("get svc web -o wide").await,
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR\nweb ClusterIP 10.96.0.2 <none> 8080/TCP AGE app=web"
    );
}

#[tokio::test]
async fn configuration_is_created() {
    let k = require!(Kubectl::new().await);
    assert_eq!(k.ok("create namespace shop").await, "namespace/shop created\n");
    assert_eq!(
        k.ok("-n shop create configmap conf --from-literal=a=1 --from-literal=b=2").await,
        "configmap/conf created\n"
    );
    assert_eq!(k.tidy("-n shop get cm").await, "NAME DATA AGE\nconf 2 AGE");
    assert_eq!(k.ok("create secret generic pass --from-literal=user=me").await, "secret/pass created\n");
    assert_eq!(k.ok("get secret pass -o jsonpath={.type}/{.data.user}").await, "Opaque/bWU=");
    assert_eq!(k.ok("create serviceaccount robot").await, "serviceaccount/robot created\n");
    assert_eq!(k.ok("create quota few --hard=pods=5,cpu=2").await, "resourcequota/few created\n");
    assert_eq!(
        k.ok("create priorityclass high --value=1000 --description=Important").await,
        "priorityclass.scheduling.k8s.io/high created\n"
    );
    assert_eq!(
        k.tidy("get pc high").await,
        "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY\nhigh 1000 false AGE PreemptLowerPriority"
    );
    assert_eq!(
        k.ok("create poddisruptionbudget some --min-available=1 --selector=app=web").await,
        "poddisruptionbudget.policy/some created\n"
    );
    assert_eq!(
        k.tidy("get pdb").await,
        "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE\nsome 1 N/A 0 AGE"
    );
    assert_eq!(
        k.ok("create ingress front --rule=example.org/shop=web:80").await,
        "ingress.networking.k8s.io/front created\n"
    );
    assert_eq!(
        k.tidy("get ingress").await,
        "NAME CLASS HOSTS ADDRESS PORTS AGE\nfront <none> example.org 80 AGE"
    );
}

#[tokio::test]
async fn services_get_addresses_and_ports() {
    let k = require!(Kubectl::new().await);
    k.ok("create service clusterip inner --tcp=80:8080").await;
    k.ok("create service nodeport outer --tcp=80 --node-port=30100").await;
    k.ok("create service loadbalancer front --tcp=443:8443").await;
    k.ok("create service externalname away --external-name=example.org").await;
    let table = "\
NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE
inner ClusterIP 10.96.0.2 <none> 80/TCP AGE
outer NodePort 10.96.0.3 <none> 80:30100/TCP AGE
front LoadBalancer 10.96.0.4 <pending> 443:30000/TCP AGE
away ExternalName <none> example.org <none> AGE";
    assert_eq!(k.tidy("get svc inner outer front away").await, table);
}

#[tokio::test]
async fn rights_are_created() {
    let k = require!(Kubectl::new().await);
    assert_eq!(
        k.ok("create role reader --verb=get,list --resource=pods,deployments.apps").await,
        "role.rbac.authorization.k8s.io/reader created\n"
    );
    let role = k.tidy("describe role reader").await;
    assert!(role.contains("\npods [] [] [get list]\ndeployments.apps [] [] [get list]"), "{role}");
    k.ok("create rolebinding readers --role=reader --user=jane --serviceaccount=default:robot").await;
    let binding = k.tidy("get rolebinding readers -o wide").await;
    assert_eq!(
        binding,
        "NAME ROLE AGE USERS GROUPS SERVICEACCOUNTS\nreaders Role/reader AGE jane default/robot"
    );
    k.ok("create clusterrole health --verb=get --non-resource-url=/healthz").await;
    k.ok("create clusterrolebinding health --clusterrole=health --group=ops").await;
    assert_eq!(
        k.ok("get clusterrolebinding health -o jsonpath={.subjects[0].kind}:{.subjects[0].name}").await,
        "Group:ops"
    );
}

#[tokio::test]
async fn a_dry_run_leaves_nothing() {
    let k = require!(Kubectl::new().await);
    let yaml = k.ok("run one --image=nginx --dry-run=server -o yaml").await;
    assert!(yaml.contains("  restartPolicy: Always\n  schedulerName: default-scheduler\n"), "{yaml}");
    assert_eq!(
        k.ok("create deployment web --image=nginx --dry-run=server").await,
        "deployment.apps/web created (server dry run)\n"
    );
    assert_eq!(k.ok("get pods,deployments -o name").await, "");
}
