use std::collections::BTreeMap;

use super::*;

fn read(flags: Flags, variables: &[(&'static str, &str)]) -> Result<Settings, SettingsError> {
    let variables: BTreeMap<_, _> =
        variables.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
    Settings::read(flags, |name| variables.get(name).cloned())
}

#[test]
fn without_any_variable_there_are_defaults() {
    let settings = read(Flags::default(), &[]).unwrap();
    assert_eq!((settings.operator_namespace, settings.resolver_namespace), (None, None));
    assert_eq!(
        (&*settings.resolver_service, settings.resolver_proxy_port),
        ("elasti-resolver-service", 8012)
    );
    assert_eq!(settings.wake.to_string(), ":8013");
    assert_eq!(settings.metrics.unwrap().to_string(), ":8080");
    assert_eq!(settings.probes.unwrap().to_string(), ":8081");
    assert!(!settings.leader_elect);
}

#[test]
fn the_variables_of_kubeelasti_are_read() {
    let variables = [
        ("ELASTI_OPERATOR_NAMESPACE", "elasti"),
        ("ELASTI_OPERATOR_DEPLOYMENT_NAME", "elasti-operator-controller-manager"),
        ("ELASTI_OPERATOR_SERVICE_NAME", "elasti-operator-controller-service"),
        ("ELASTI_OPERATOR_PORT", ":9013"),
        ("ELASTI_RESOLVER_NAMESPACE", "resolvers"),
        ("ELASTI_RESOLVER_DEPLOYMENT_NAME", "elasti-resolver"),
        ("ELASTI_RESOLVER_SERVICE_NAME", "resolver"),
        ("ELASTI_RESOLVER_PORT", "8013"),
        ("ELASTI_RESOLVER_PROXY_PORT", "9012"),
        ("SENTRY_DSN", ""),
    ];
    let settings = read(Flags::default(), &variables).unwrap();
    assert_eq!(settings.operator_namespace.as_deref(), Some("elasti"));
    assert_eq!(settings.resolver_namespace.as_deref(), Some("resolvers"));
    assert_eq!((&*settings.resolver_service, settings.resolver_proxy_port), ("resolver", 9012));
    assert_eq!(settings.wake.to_string(), ":9013");
}

#[test]
fn a_flag_wins_over_its_variable_even_over_one_that_is_wrong() {
    let flags = Flags {
        resolver_proxy_port: Some(1),
        wake: Some("127.0.0.1:0".parse().unwrap()),
        ..Flags::default()
    };
    let variables = [("ELASTI_RESOLVER_PROXY_PORT", "none"), ("ELASTI_OPERATOR_PORT", "9013")];
    let settings = read(flags, &variables).unwrap();
    assert_eq!((settings.resolver_proxy_port, settings.wake.to_string()), (1, "127.0.0.1:0".to_owned()));
}

#[test]
fn a_variable_that_cannot_be_read_is_named_with_the_flag_that_helps() {
    for (variable, value, flag) in [
        ("ELASTI_OPERATOR_NAMESPACE", "A b", "--operator-namespace"),
        ("ELASTI_OPERATOR_PORT", "65536", "--wake-bind-address"),
        ("ELASTI_RESOLVER_NAMESPACE", "-a", "--resolver-namespace"),
        ("ELASTI_RESOLVER_SERVICE_NAME", "a/b", "--resolver-service"),
        ("ELASTI_RESOLVER_PROXY_PORT", "0", "--resolver-proxy-port"),
    ] {
        let said = read(Flags::default(), &[(variable, value)]).unwrap_err().to_string();
        for part in [variable, value, flag] {
            assert!(said.contains(part), "{said} lacks {part}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_an_error_too() {
    use std::os::unix::ffi::OsStringExt as _;
    let settings = Settings::read(Flags::default(), |name| {
        (name == "ELASTI_RESOLVER_NAMESPACE").then(|| OsString::from_vec(vec![0xff]))
    });
    assert!(settings.unwrap_err().to_string().contains("ELASTI_RESOLVER_NAMESPACE"));
}

#[test]
fn variables_that_nothing_follows_from_are_named() {
    let variables =
        [("SENTRY_DSN", "x"), ("POLLING_INTERVAL", "30"), ("ELASTI_RESOLVER_PORT", "8013"), ("HOME", "/")];
    let settings = read(Flags::default(), &variables).unwrap();
    let unused: Vec<_> = settings.unused().collect();
    assert_eq!(unused, ["POLLING_INTERVAL", "SENTRY_DSN", "ELASTI_RESOLVER_PORT"]);
}

#[test]
fn addresses_are_read_as_go_writes_them() {
    for (text, shown) in [
        (":8080", ":8080"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("[::1]:0", "[::1]:0"),
        ("localhost:8081", "localhost:8081"),
    ] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
    }
    for wrong in ["", "8080", ":", ":-1", ":65536", "[::1:80", "[a]:80", "a b:80", "::1:80", "http://a:80"] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn every_address_is_one_of_both_families() {
    let listener = ":0".parse::<Address>().unwrap().listen("--here").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let taken = Address::everywhere(port).listen("--here").await.unwrap_err().to_string();
    assert!(taken.contains(&format!(":{port}")) && taken.contains("--here"), "{taken}");
}

#[test]
fn some_namespaces_or_all_of_them() {
    let mut settings = read(Flags::default(), &[]).unwrap();
    assert_eq!(settings.scope(), Scope::All);
    settings.watch_namespaces = ["b", "a"].map(str::to_owned).into();
    assert_eq!(settings.scope(), Scope::namespaces(["a", "b"]));
}
