//! How much is done, and from which seed.

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) operations: u64,
}

const SEED: &str = "KUBE_INFORMER_SOAK_SEED";

impl Plan {
    /// So many operations, or so many in a full run.
    pub(crate) fn of(short: u64, full: u64) -> Self {
        let is_full = std::env::var_os("KUBE_INFORMER_FULL").is_some_and(|value| value == "1");
        let seed = std::env::var(SEED).map_or(20_260_301, |seed| {
            seed.parse().unwrap_or_else(|_| panic!("{SEED} is not a number: {seed:?}"))
        });
        Self { seed, operations: if is_full { full } else { short } }
    }
}
