//! What is counted. Labels have few values, which are known here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::change::What;
use crate::message::close;

/// What a hub and those who are connected to it do.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    connections: Gauge,
    subscriptions: Gauge,
    changes: Family<Type, Counter>,
    sent_messages: Counter,
    sent_bytes: Counter,
    coalesced: Counter,
    gaps: Family<Labels, Counter>,
    closes: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    errors: Counter,
    journal_entries: Gauge,
    journal_bytes: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Type {
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    reason: &'static str,
}

/// Why not everything was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GapReason {
    /// To a client that does not read.
    Slow,
    /// More came from the cluster than could be read.
    Missed,
    /// The cluster was read anew.
    Relisted,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CloseReason {
    Client,
    Slow,
    Silent,
    TooLarge,
    Unreadable,
    Shutdown,
    Broken,
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    Host,
    Origin,
    Token,
    Subprotocol,
    /// Too many connections.
    Full,
    /// Too many connections of one address.
    Address,
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("kube_informer_feed");
        registry.register("connections", "Connections that are open", self.connections.clone());
        registry.register("subscriptions", "Subscriptions of these", self.subscriptions.clone());
        registry.register("changes", "Changes that were told, by what happened", self.changes.clone());
        registry.register("sent_messages", "Messages that were sent", self.sent_messages.clone());
        registry.register("sent_bytes", "What they took", self.sent_bytes.clone());
        registry.register(
            "coalesced",
            "Changes that became part of others, for slow clients",
            self.coalesced.clone(),
        );
        registry.register("gaps", "How often not everything could be told, by why", self.gaps.clone());
        registry.register("closes", "Connections that ended, by why", self.closes.clone());
        registry.register("refused", "Requests that were not taken, by why", self.refused.clone());
        registry.register("errors", "Requests of connected clients that were refused", self.errors.clone());
        registry.register(
            "journal_entries",
            "What is kept for those who come back",
            self.journal_entries.clone(),
        );
        registry.register("journal_bytes", "What that takes", self.journal_bytes.clone());
    }

    pub(crate) fn connected(&self) {
        self.connections.inc();
    }

    pub(crate) fn disconnected(&self, why: CloseReason, subscriptions: usize) {
        self.connections.dec();
        self.unsubscribed(subscriptions);
        self.closes.get_or_create(&Labels { reason: why.as_str() }).inc();
    }

    pub(crate) fn subscribed(&self) {
        self.subscriptions.inc();
    }

    pub(crate) fn unsubscribed(&self, count: usize) {
        self.subscriptions.dec_by(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn change(&self, what: What) {
        let r#type = match what {
            What::Added => "added",
            What::Modified => "modified",
            What::Deleted => "deleted",
        };
        self.changes.get_or_create(&Type { r#type }).inc();
    }

    pub(crate) fn sent(&self, messages: u64, bytes: u64) {
        self.sent_messages.inc_by(messages);
        self.sent_bytes.inc_by(bytes);
    }

    pub(crate) fn coalesced(&self, count: u64) {
        self.coalesced.inc_by(count);
    }

    pub(crate) fn gap(&self, reason: GapReason) {
        self.gaps.get_or_create(&Labels { reason: reason.as_str() }).inc();
    }

    pub(crate) fn refused(&self, reason: Refusal) {
        self.refused.get_or_create(&Labels { reason: reason.as_str() }).inc();
    }

    pub(crate) fn error(&self) {
        self.errors.inc();
    }

    pub(crate) fn journal(&self, entries: usize, bytes: usize) {
        let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.journal_entries.set(number(entries));
        self.journal_bytes.set(number(bytes));
    }
}

impl CloseReason {
    /// Of a connection that was closed with a code.
    pub(crate) fn of(code: u16) -> Self {
        match code {
            close::SLOW => Self::Slow,
            close::SILENT => Self::Silent,
            close::TOO_LARGE => Self::TooLarge,
            close::PROTOCOL | close::NOT_TEXT => Self::Unreadable,
            _ => Self::Shutdown,
        }
    }
}

impl GapReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Missed => "missed",
            Self::Relisted => "relisted",
        }
    }
}

impl CloseReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Slow => "slow",
            Self::Silent => "silent",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Shutdown => "shutdown",
            Self::Broken => "broken",
        }
    }
}

impl Refusal {
    fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Token => "token",
            Self::Subprotocol => "subprotocol",
            Self::Full => "full",
            Self::Address => "address",
        }
    }
}
