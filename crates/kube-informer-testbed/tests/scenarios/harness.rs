//! How a scenario is run, recorded and compared.

mod api;
mod compare;
mod differences;
mod normal;
mod objects;
mod widgets;

pub(crate) use api::{Answer, Api};
pub(crate) use compare::both;
pub(crate) use differences::DIFFERENCES;
pub(crate) use objects::*;
pub(crate) use widgets::*;

/// Makes a test of every scenario, and the list of their names.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        /// The scenarios of this theme.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod on_both_servers {
            $(
                #[tokio::test]
                async fn $name() -> anyhow::Result<()> {
                    $crate::harness::both(
                        concat!(module_path!(), "::", stringify!($name)),
                        stringify!($name),
                        super::$name,
                    )
                    .await
                }
            )*
        }
    };
}
pub(crate) use scenarios;
