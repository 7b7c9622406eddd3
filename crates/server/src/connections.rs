//! The open connections: who is at their other ends, how many there may be, and which one goes when there are too many.
//!
//! A connection is a *stranger's* until it has shown a good credential, and then its person's. The two have places of their own, so
//! whatever strangers open takes none from those whom we know. A new connection always gets in: where strangers have no place left,
//! the oldest goes of the network that has the most of them, one to which nothing happens first. So whoever comes with a credential has
//! the time to show it.

use crate::places::NoPlace;
use kernel::PersonId;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The bounds on connections. Each has its key below `limits` in the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionBounds {
    /// All of them.
    pub(crate) max: usize,
    /// Those of strangers.
    pub(crate) strangers_max: usize,
    /// Those of strangers from one network.
    pub(crate) per_address_max: usize,
    /// Those of one person.
    pub(crate) per_person_max: usize,
}

impl ConnectionBounds {
    /// Strangers have at most half of all, so that there is a place for those whom we know. 0 is no bound of its own for an address or a
    /// person.
    pub(crate) fn new(
        max: usize,
        strangers_max: usize,
        per_address_max: usize,
        per_person_max: usize,
    ) -> Self {
        let or = |own: usize, all: usize| if own == 0 { all } else { own.min(all) };
        let strangers_max = or(strangers_max, max / 2).min(max / 2).max(1);
        let known_max = max.saturating_sub(strangers_max).max(1);
        Self {
            max,
            strangers_max,
            per_address_max: or(per_address_max, strangers_max),
            per_person_max: or(per_person_max, known_max),
        }
    }

    fn known_max(&self) -> usize {
        self.max.saturating_sub(self.strangers_max).max(1)
    }
}

/// Why a connection goes that did nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// The bound that it was.
    pub(crate) bound: &'static str,
    /// True if no request was under way, so that it can be told.
    pub(crate) is_idle: bool,
}

/// Figures for whoever watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    pub(crate) all: usize,
    pub(crate) strangers: usize,
    pub(crate) evicted: u64,
    pub(crate) refused: u64,
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    bounds: ConnectionBounds,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// By their numbers, which grow.
    all: HashMap<u64, OneConnection>,
    last: u64,
    /// Those of strangers, by network, the oldest first.
    strangers: HashMap<IpAddr, BTreeSet<u64>>,
    strangers_count: usize,
    /// The number that each person has.
    known: HashMap<PersonId, usize>,
    evicted: u64,
    refused: u64,
}

#[derive(Debug)]
struct OneConnection {
    end: ConnectionEnd,
    /// A proxy that we trust speaks for many, and has the bounds of all alone.
    is_proxy: bool,
    requests: usize,
    goes: oneshot::Sender<Evicted>,
}

/// Whoever is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionEnd {
    Stranger(IpAddr),
    Known(PersonId),
}

impl Connections {
    pub(crate) fn new(bounds: ConnectionBounds) -> Arc<Self> {
        Arc::new(Self { bounds, open: Mutex::default() })
    }

    /// One more, from that network. It may have to go when others come: then the second part says so.
    pub(crate) fn add(
        self: &Arc<Self>,
        network: IpAddr,
        is_proxy: bool,
    ) -> (ConnectionPlace, oneshot::Receiver<Evicted>) {
        let mut open = self.open();
        let own = open.strangers.get(&network).map_or(0, BTreeSet::len);
        if own >= self.bounds.per_address_max && !is_proxy {
            open.evict_of(network, "limits.connections_per_address_max");
        } else if open.strangers_count >= self.bounds.strangers_max {
            let most = open.strangers.iter().max_by_key(|(_, own)| own.len()).map(|(network, _)| *network);
            most.into_iter().for_each(|most| open.evict_of(most, "limits.connections_strangers_max"));
        }
        open.last += 1;
        let (number, (goes, gone)) = (open.last, oneshot::channel());
        let end = ConnectionEnd::Stranger(network);
        open.all.insert(number, OneConnection { end, is_proxy, requests: 0, goes });
        open.strangers.entry(network).or_default().insert(number);
        open.strangers_count += 1;
        (ConnectionPlace(ConnectionHandle { connections: self.clone(), number }), gone)
    }

    pub(crate) fn counts(&self) -> ConnectionCounts {
        let open = self.open();
        let OpenConnections { strangers_count: strangers, evicted, refused, .. } = *open;
        ConnectionCounts { all: open.all.len(), strangers, evicted, refused }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        // Nobody panics while holding it.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Lets the oldest stranger of a network go, one with nothing under way first.
    fn evict_of(&mut self, network: IpAddr, bound: &'static str) {
        let own = || self.strangers.get(&network).into_iter().flatten().copied();
        let is_idle = |number: &u64| self.all.get(number).is_some_and(|one| one.requests == 0);
        let Some(number) = own().find(is_idle).or_else(|| own().next()) else { return };
        if let Some(one) = self.remove(number) {
            self.evicted += 1;
            // One that has just ended needs not be told.
            let _ = one.goes.send(Evicted { bound, is_idle: one.requests == 0 });
        }
    }

    fn remove(&mut self, number: u64) -> Option<OneConnection> {
        let one = self.all.remove(&number)?;
        match one.end {
            ConnectionEnd::Stranger(network) => self.forget_stranger(network, number),
            ConnectionEnd::Known(person) => {
                let left = self.known.get_mut(&person).map(|own| {
                    *own -= 1;
                    *own
                });
                if left == Some(0) {
                    self.known.remove(&person);
                }
            }
        }
        Some(one)
    }

    fn forget_stranger(&mut self, network: IpAddr, number: u64) {
        self.strangers_count -= 1;
        if let Some(own) = self.strangers.get_mut(&network) {
            own.remove(&number);
            if own.is_empty() {
                self.strangers.remove(&network);
            }
        }
    }
}

/// The place of an open connection; free again when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace(ConnectionHandle);

impl ConnectionPlace {
    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.0.clone()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let ConnectionHandle { connections, number } = &self.0;
        connections.open().remove(*number);
    }
}

/// An open connection, as its requests know it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    connections: Arc<Connections>,
    number: u64,
}

/// A request on a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestUnderWay(ConnectionHandle);

impl ConnectionHandle {
    pub(crate) fn begin(&self) -> RequestUnderWay {
        if let Some(one) = self.connections.open().all.get_mut(&self.number) {
            one.requests += 1;
        }
        RequestUnderWay(self.clone())
    }

    /// A good credential of that person has come over it. The first one counts.
    pub(crate) fn is_of(&self, person: PersonId) -> Result<(), NoPlace> {
        let Connections { bounds, open: _ } = &*self.connections;
        let mut open = self.connections.open();
        let Some(one) = open.all.get(&self.number) else { return Ok(()) };
        let (ConnectionEnd::Stranger(network), is_proxy) = (one.end, one.is_proxy) else { return Ok(()) };
        let (own, known) =
            (open.known.get(&person).copied().unwrap_or(0), open.all.len() - open.strangers_count);
        let no = match () {
            () if own >= bounds.per_person_max && !is_proxy => Some(NoPlace::Own),
            () if known >= bounds.known_max() => Some(NoPlace::Full),
            () => None,
        };
        if let Some(no) = no {
            open.refused += 1;
            return Err(no);
        }
        open.forget_stranger(network, self.number);
        *open.known.entry(person).or_default() += 1;
        if let Some(one) = open.all.get_mut(&self.number) {
            one.end = ConnectionEnd::Known(person);
        }
        Ok(())
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let ConnectionHandle { connections, number } = &self.0;
        if let Some(one) = connections.open().all.get_mut(number) {
            one.requests -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn person(number: u128) -> PersonId {
        PersonId::from_bits(number)
    }

    #[test]
    fn the_oldest_of_whoever_has_the_most_goes_and_one_with_a_request_last() {
        let all = Connections::new(ConnectionBounds::new(8, 4, 3, 2));
        let (busy, mut busy_goes) = all.add(network(1), false);
        let _request = busy.handle().begin();
        let (_idle, mut idle_goes) = all.add(network(1), false);
        let (_other, mut other_goes) = all.add(network(2), false);
        let (_newer, _newer_goes) = all.add(network(1), false);
        assert_eq!(all.counts().strangers, 4);
        let (_new, _) = all.add(network(3), false);
        let bound = "limits.connections_strangers_max";
        assert_eq!(idle_goes.try_recv(), Ok(Evicted { bound, is_idle: true }));
        let (_more, _) = all.add(network(1), false);
        assert!(other_goes.try_recv().is_err() && busy_goes.try_recv().is_err());
        let counts = all.counts();
        assert_eq!((counts.all, counts.strangers, counts.evicted), (4, 4, 2));
    }

    #[test]
    fn whoever_is_known_keeps_their_place_whatever_strangers_open() {
        let all = Connections::new(ConnectionBounds::new(8, 4, 2, 3));
        let mut held = Vec::new();
        for number in 1..=4 {
            let (place, goes) = all.add(network(9), false);
            let known = place.handle().is_of(person(1));
            assert_eq!(known, if number <= 3 { Ok(()) } else { Err(NoPlace::Own) });
            held.push((place, goes));
        }
        let (other, mut goes) = all.add(network(9), false);
        assert_eq!(other.handle().is_of(person(2)), Ok(()));
        let (full, _goes) = all.add(network(9), false);
        assert_eq!(full.handle().is_of(person(3)), Err(NoPlace::Full));
        let strangers: Vec<_> = (0..20).map(|number| all.add(network(number), false)).collect();
        assert!(goes.try_recv().is_err() && all.counts().all == 8, "{:?}", all.counts());
        drop(strangers);
        drop((held, other, full));
        assert_eq!((all.counts().all, all.counts().strangers), (0, 0));
        assert!(all.open().known.is_empty() && all.open().strangers.is_empty());
    }

    #[test]
    fn strangers_never_have_more_than_half() {
        let bounds = ConnectionBounds::new(100, 2048, 2048, 0);
        assert_eq!((bounds.strangers_max, bounds.per_address_max, bounds.per_person_max), (50, 50, 50));
        assert_eq!(ConnectionBounds::new(1, 0, 0, 0).strangers_max, 1);
    }
}
