//! What stands around the operator in a cluster: a kubelet, a resolver, and clients.

pub(crate) mod client;
pub(crate) mod echo;
pub(crate) mod exchange;
pub(crate) mod follow;
pub(crate) mod gate;
pub(crate) mod kubelet;
pub(crate) mod network;
pub(crate) mod resolver;
