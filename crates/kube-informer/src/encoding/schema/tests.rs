use super::*;

#[test]
fn a_pod_is_found() {
    let pod = root("v1", "Pod").unwrap();
    assert_eq!(message(pod.message).to_string(), "core/v1.Pod");
    assert!(is_object(pod));
}
