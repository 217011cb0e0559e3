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
