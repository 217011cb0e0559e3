//! Atomics of either kind, with what is used of them.

use std::sync::atomic::{self, Ordering};

use shuttle::sync::atomic as scheduled;

use super::schedules::is_scheduled;

macro_rules! either {
    ($name:ident of $value:ty { $($operation:ident($($given:ident: $type:ty),*) -> $result:ty;)* }) => {
        #[derive(Debug)]
        pub(crate) enum $name {
            Usual(atomic::$name),
            Scheduled(scheduled::$name),
        }

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                if is_scheduled() {
                    Self::Scheduled(scheduled::$name::new(value))
                } else {
                    Self::Usual(atomic::$name::new(value))
                }
            }

            $(
                pub(crate) fn $operation(&self, $($given: $type),*) -> $result {
                    match self {
                        Self::Usual(atomic) => atomic.$operation($($given),*),
                        Self::Scheduled(atomic) => atomic.$operation($($given),*),
                    }
                }
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

either!(AtomicBool of bool {
    load(order: Ordering) -> bool;
    store(value: bool, order: Ordering) -> ();
    swap(value: bool, order: Ordering) -> bool;
});

either!(AtomicU8 of u8 {
    load(order: Ordering) -> u8;
    store(value: u8, order: Ordering) -> ();
    swap(value: u8, order: Ordering) -> u8;
    compare_exchange(current: u8, new: u8, success: Ordering, failure: Ordering) -> Result<u8, u8>;
    fetch_update(set: Ordering, fetch: Ordering, next: impl FnMut(u8) -> Option<u8>) -> Result<u8, u8>;
});

either!(AtomicUsize of usize {
    load(order: Ordering) -> usize;
    fetch_add(value: usize, order: Ordering) -> usize;
    fetch_sub(value: usize, order: Ordering) -> usize;
});
