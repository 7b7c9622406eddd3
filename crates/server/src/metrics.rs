//! Figures about the door and what is behind it. No globals: they live and die with the door.

use crate::door::HttpDoor;
use engine::DiskTotals;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Seconds; the first is about one commit, the last the longest wait for a receipt.
const SECONDS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    route: String,
    status: u16,
}

/// The figures.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    now: Gauges,
}

/// Figures that are looked up when somebody asks.
#[derive(Default)]
struct Gauges {
    memory: Gauge,
    kept: Gauge,
    connections: Gauge,
    connections_strangers: Gauge,
    connections_closed: Gauge,
    connections_refused: Gauge,
    streams: Gauge,
    streams_refused: Gauge,
    looks: Gauge,
    looks_refused: Gauge,
    body_bytes: Gauge,
    bodies_refused: Gauge,
    ground_workers: Gauge,
    words_bytes: Gauge,
    words_bytes_top: Gauge,
    worktree_bytes: Gauge,
    snapshot_bytes: Gauge,
    commits: Gauge,
    changes: Gauge,
    fenced: Gauge,
    moved: Gauge,
    reads_dropped: Gauge,
    lists_awaited: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("homing");
        let requests = Family::default();
        let seconds = Histogram::new(SECONDS);
        let now = Gauges::default();
        registry.register("http_requests", "Requests answered, by route and status", requests.clone());
        registry.register("http_request_seconds", "Time to the head of an answer", seconds.clone());
        let gauges = [
            ("process_resident_memory_bytes", "Memory of this process", &now.memory),
            ("kept_sessions", "Sessions being kept right now", &now.kept),
            ("http_connections", "Connections open right now", &now.connections),
            (
                "http_connections_strangers",
                "Connections that have shown no good credential",
                &now.connections_strangers,
            ),
            (
                "http_connections_closed",
                "Connections of strangers that were closed in favour of new ones",
                &now.connections_closed,
            ),
            (
                "http_connections_refused",
                "Requests on connections for which their person had no place",
                &now.connections_refused,
            ),
            ("http_streams", "Streams open right now", &now.streams),
            ("http_streams_refused", "Streams for which there was no place", &now.streams_refused),
            ("http_looks", "Requests that look at a directory right now", &now.looks),
            ("http_looks_refused", "Looks for which there was no place", &now.looks_refused),
            ("http_body_bytes", "Bytes of bodies that are held right now", &now.body_bytes),
            ("http_bodies_refused", "Bodies for which there was no room", &now.bodies_refused),
            ("ground_workers", "Processes that look at directories right now", &now.ground_workers),
            ("disk_words_bytes", "Room that words take on the disk", &now.words_bytes),
            ("disk_words_bytes_top", "The same of the person who has the most", &now.words_bytes_top),
            ("disk_worktree_bytes", "Room that worktrees took when last looked at", &now.worktree_bytes),
            ("disk_snapshot_bytes", "Room that snapshots took when last counted", &now.snapshot_bytes),
            ("store_commits", "Commits that reached the disk since the start", &now.commits),
            ("store_changes", "Changes in those commits", &now.changes),
            ("store_fenced", "Appends refused because of an old term", &now.fenced),
            ("store_moved", "Appends refused because of an old number", &now.moved),
            ("audit_reads_dropped", "Refused reads that are missing in the audit", &now.reads_dropped),
            ("lists_awaited", "Requests that wait for the list of an agent right now", &now.lists_awaited),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        Self { registry, requests, seconds, now }
    }

    /// One more answer.
    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { route: route.to_owned(), status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// All figures, as text.
    pub(crate) fn text(
        &self,
        door: &HttpDoor,
        disk: DiskTotals,
        tree_bytes: u64,
        snapshot_bytes: u64,
    ) -> String {
        let store = door.engine.gauges();
        self.now.memory.set(resident_bytes());
        self.now.kept.set(small(door.engine.kept() as u64));
        let connections = door.connections.counts();
        self.now.connections.set(small(connections.all as u64));
        self.now.connections_strangers.set(small(connections.strangers as u64));
        self.now.connections_closed.set(small(connections.evicted));
        self.now.connections_refused.set(small(connections.refused));
        self.now.streams.set(small(door.streams.count() as u64));
        self.now.streams_refused.set(small(door.streams.refused()));
        self.now.looks.set(small(door.looks.count() as u64));
        self.now.looks_refused.set(small(door.looks.refused()));
        self.now.body_bytes.set(small(door.bodies.count() as u64));
        self.now.bodies_refused.set(small(door.bodies.refused()));
        self.now.ground_workers.set(small(door.engine.worktrees().workers() as u64));
        self.now.words_bytes.set(small(disk.words_bytes));
        self.now.words_bytes_top.set(small(disk.words_bytes_top));
        self.now.worktree_bytes.set(small(tree_bytes));
        self.now.snapshot_bytes.set(small(snapshot_bytes));
        self.now.commits.set(small(store.commits));
        self.now.changes.set(small(store.changes));
        self.now.fenced.set(small(store.fenced));
        self.now.moved.set(small(store.moved));
        self.now.reads_dropped.set(small(door.engine.views().refused_reads_dropped()));
        self.now.lists_awaited.set(small(door.engine.views().lists_awaited() as u64));
        let mut text = String::new();
        // A string takes every byte.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

fn small(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

/// Resident memory; 0 where the system does not say (Linux does).
fn resident_bytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: i64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kib * 1024
}
