use super::*;

#[test]
fn every_case_runs_and_the_base_is_the_first() {
    let (mut cases, sizes) = all().unwrap();
    assert_eq!(cases[0].name, BASE);
    for case in &mut cases {
        case.run(3);
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    for size in &sizes {
        assert!(size.arrived > size.stored && size.stored >= size.packed, "{size:?}");
    }
    assert!((10_000..14_000).contains(&sizes[0].arrived), "{sizes:?}");
}

#[test]
fn both_encodings_hold_the_same_pods() {
    let json = Prepared::new(Resource::Pods, Encoding::Json).unwrap();
    let protobuf = Prepared::new(Resource::Pods, Encoding::Protobuf).unwrap();
    assert_eq!(json.packed.len(), protobuf.packed.len());
    for (one, two) in json.packed.iter().zip(&protobuf.packed) {
        assert_eq!(one.json().unwrap(), two.json().unwrap());
    }
}

#[test]
fn the_measured_part_of_the_body_has_the_measured_objects() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let pods = Prepared::new(Resource::Pods, encoding).unwrap();
        let mut stream = Stream::new(&pods.body, encoding);
        for _ in 0..2 {
            for object in &pods.arrived {
                assert_eq!(stream.object(), object);
            }
        }
    }
}
