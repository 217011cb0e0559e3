//! Waiting for what another process does in its own time.
//!
//! For what happens in the test's own process there are better ways: await it, or pause tokio's clock.

use std::time::Duration;

/// How often it is looked.
const POLL: Duration = Duration::from_millis(20);

/// Looks until `condition` gives something. `what` says what for.
///
/// # Panics
///
/// If nothing came within `patience`.
pub async fn eventually<T>(
    what: &str,
    patience: Duration,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let found = async {
        loop {
            match condition().await {
                Some(value) => return value,
                None => tokio::time::sleep(POLL).await,
            }
        }
    };
    match tokio::time::timeout(patience, found).await {
        Ok(value) => value,
        Err(_) => panic!("not within {patience:?}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_looks_until_there_is_something() {
        let mut looks = 0;
        let found = eventually("the third look", Duration::from_secs(20), async || {
            looks += 1;
            (looks == 3).then_some("something")
        });
        assert_eq!(found.await, "something");
    }

    #[tokio::test]
    #[should_panic(expected = "not within 50ms: the impossible")]
    async fn its_patience_ends() {
        eventually("the impossible", Duration::from_millis(50), async || None::<()>).await;
    }
}
