//! What is simulated, and how fast.

use std::time::Duration;

/// What a simulation does; given to [`Builder::simulate`](crate::Builder::simulate).
///
/// Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs make pods; pods are scheduled to simulated
/// nodes, start, become ready, may crash, and end; EndpointSlices follow Services. With the same seed, the
/// same writes and tokio's clock paused, everything happens again in the same order.
///
/// ```
/// use kube_informer_apiserver::Simulation;
///
/// let calm = Simulation::default();
/// let stormy = Simulation::default().with_seed(7).with_speed(10.0).with_crash_rate(0.2);
/// assert!(stormy.speed > calm.speed);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Simulation {
    /// Decides every duration and choice. Also seeds names and UIDs, unless the server has a seed of its
    /// own.
    pub seed: u64,
    /// How many simulated seconds pass in a second.
    pub speed: f64,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many pods a node takes.
    pub pods_per_node: usize,
    /// How many pods there may be. Once there are as many, whoever made them, controllers make no more: they
    /// say so in an Event, and go on when some are gone. However many replicas somebody asks for, the
    /// simulation does not fill the memory.
    pub pods: usize,
    /// How likely a container that has started crashes after a while; it then backs off and starts again.
    /// From 0 (never) to 1 (a crash loop).
    pub crash_rate: f64,
    /// How often (in simulated time) a node renews its Lease. `None`: never.
    pub heartbeat: Option<Duration>,
    /// How many Events are kept; the oldest goes first. 0: none are written.
    pub events: usize,
    /// Whether a small shop lives in the namespace `shop`, where somebody does something every few
    /// seconds, for ever.
    pub story: bool,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            seed: 0,
            speed: 1.0,
            nodes: 3,
            pods_per_node: 110,
            pods: 10_000,
            crash_rate: 0.0,
            heartbeat: None,
            events: 1_000,
            story: false,
        }
    }
}

impl Simulation {
    /// Decides every duration and choice. Default: 0.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many simulated seconds pass in a second. Default: 1. What is not a positive number counts as 1.
    #[must_use]
    pub fn with_speed(mut self, speed: f64) -> Self {
        self.speed = speed;
        self
    }

    /// How many nodes there are. Default: 3.
    #[must_use]
    pub fn with_nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// How many pods a node takes. Default: 110, as a kubelet's.
    #[must_use]
    pub fn with_pods_per_node(mut self, pods: usize) -> Self {
        self.pods_per_node = pods;
        self
    }

    /// How many pods there may be. Default: 10,000.
    #[must_use]
    pub fn with_pods(mut self, pods: usize) -> Self {
        self.pods = pods;
        self
    }

    /// How likely a container that has started crashes after a while. Default: 0.
    #[must_use]
    pub fn with_crash_rate(mut self, rate: f64) -> Self {
        self.crash_rate = rate;
        self
    }

    /// How often (in simulated time) a node renews its Lease. Default: never.
    #[must_use]
    pub fn with_heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = Some(every);
        self
    }

    /// How many Events are kept. Default: 1,000. 0: none are written.
    #[must_use]
    pub fn with_events(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// Whether the story of a small shop is played. Default: no.
    #[must_use]
    pub fn with_story(mut self, on: bool) -> Self {
        self.story = on;
        self
    }
}
