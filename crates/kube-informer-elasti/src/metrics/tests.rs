use prometheus_client::encoding::text::encode;

use super::*;

fn page(metrics: &Metrics) -> String {
    let (mut registry, mut page) = (Registry::default(), String::new());
    metrics.register(&mut registry);
    encode(&mut page, &registry).unwrap();
    page
}

#[test]
fn counters_keep_the_names_that_dashboards_know() {
    let metrics = Metrics::default();
    metrics.reconciled(About::Present(Some(Mode::Proxy)), Duration::from_millis(3), true);
    metrics.reconciled(About::Present(None), Duration::from_millis(3), false);
    metrics.reconciled(About::Deleting, Duration::from_millis(3), true);
    metrics.reconciled(About::Gone, Duration::from_millis(3), true);
    metrics.woken(&Outcome::Woken(String::new()));
    let page = page(&metrics);
    for line in [
        r#"elasti_operator_reconcile_count{error="success"} 3"#,
        r#"elasti_operator_CRD_update_counter{mode="proxy",error="success"} 1"#,
        r#"elasti_operator_CRD_update_counter{mode="unknown",error="failed"} 1"#,
        r#"elasti_operator_CRD_finalizer_counter{error="success"} 1"#,
        r#"elasti_operator_scale_counter{error="success"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{page}\nlacks {line}");
    }
}

#[test]
fn no_text_of_an_error_becomes_a_label() {
    let metrics = Metrics::default();
    for number in 0..100 {
        metrics.woken(&Outcome::Failed(format!("reason {number}")));
        metrics.woken(&Outcome::Unknown);
    }
    let page = page(&metrics);
    let series = page.lines().filter(|line| line.starts_with("elasti_operator_scale_counter{"));
    assert_eq!(series.count(), 2, "{page}");
}

#[test]
fn what_the_manager_did_is_counted_under_the_names_that_dashboards_know() {
    #[derive(Debug)]
    struct Done;
    impl Collector for Done {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let mut stats = ManagerStats::default();
            stats.adds = BTreeMap::from([("success", 3), ("forbidden", 1)]);
            stats.restarts = 2;
            stats.calls = BTreeMap::from([("success", 7), ("timeout", 1)]);
            done(&stats, &mut encoder)
        }
    }
    let (mut registry, mut page) = (Registry::default(), String::new());
    registry.register_collector(Box::new(Done));
    encode(&mut page, &registry).unwrap();
    for line in [
        r#"elasti_operator_informer_counter{action="add",error="success"} 3"#,
        r#"elasti_operator_informer_counter{action="add",error="forbidden"} 1"#,
        r#"elasti_operator_informer_counter{action="restart",error="success"} 2"#,
        r#"elasti_operator_informer_handler_counter{error="success"} 7"#,
        r#"elasti_operator_informer_handler_counter{error="timeout"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{page}\nlacks {line}");
    }
}
