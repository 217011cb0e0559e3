//! kube-informer.
fn main() {}
