pub(crate) const NAMES: &[&str] = &[];
