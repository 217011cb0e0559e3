//! The same cases under divan: `cargo bench -p kube-informer-bench`. For ratios, use `cargo xtask bench micro`: it runs
//! the cases in turns.

use std::cell::RefCell;

use kube_informer_bench::{Case, cases};

thread_local! {
    static CASES: RefCell<Vec<Case>> = RefCell::new(cases::all().map(|(cases, _)| cases).unwrap_or_default());
}

fn main() {
    divan::main();
}

fn names() -> Vec<String> {
    CASES.with_borrow(|cases| cases.iter().map(|case| case.name.clone()).collect())
}

#[divan::bench(args = names())]
fn pod(bencher: divan::Bencher<'_, '_>, name: &str) {
    CASES.with_borrow_mut(|cases| {
        if let Some(case) = cases.iter_mut().find(|case| case.name == name) {
            bencher.bench_local(|| case.run(1));
        }
    });
}
