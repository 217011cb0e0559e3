mod speed;

use super::*;

/// A pod as the server sends it, on one line, 12 KB, more than a third of it `managedFields` of four managers.
const POD: &[u8] = include_bytes!("../../../tests/data/pod.json");
