//! Places that are taken for a while: how many there are, in all and for each who takes them, so that nobody takes them all.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of one kind, counted for each `K`: an address, a person.
#[derive(Debug)]
pub(crate) struct Places<K> {
    max: usize,
    each_max: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    /// Those with at least one.
    each: HashMap<K, usize>,
    refused: u64,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All are taken.
    Full,
    /// Whoever asks has as many as one may have.
    Own,
}

impl<K: Eq + Hash + Copy> Places<K> {
    /// So many in all, and of these for each. 0 for each is no bound but that of all.
    pub(crate) fn new(max: usize, each_max: usize) -> Arc<Self> {
        let each_max = if each_max == 0 { max } else { each_max };
        let taken = Taken { all: 0, each: HashMap::new(), refused: 0 };
        Arc::new(Self { max, each_max, taken: Mutex::new(taken) })
    }

    /// A place, until it is dropped.
    pub(crate) fn take(self: &Arc<Self>, whose: K) -> Result<Place<K>, NoPlace> {
        self.add(whose, 1, self.each_max)?;
        Ok(Place { places: self.clone(), whose, count: 1 })
    }

    fn add(&self, whose: K, count: usize, each_max: usize) -> Result<(), NoPlace> {
        let mut taken = self.taken();
        let own = taken.each.get(&whose).copied().unwrap_or(0);
        let no = match () {
            () if own + count > each_max && each_max < self.max => Some(NoPlace::Own),
            () if taken.all + count > self.max => Some(NoPlace::Full),
            () => None,
        };
        if let Some(no) = no {
            taken.refused += 1;
            return Err(no);
        }
        taken.all += count;
        taken.each.insert(whose, own + count);
        Ok(())
    }

    /// The number that is taken.
    pub(crate) fn count(&self) -> usize {
        self.taken().all
    }

    /// The number of times that there was none.
    pub(crate) fn refused(&self) -> u64 {
        self.taken().refused
    }

    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Eq + Hash + Copy> {
    places: Arc<Places<K>>,
    whose: K,
    count: usize,
}

impl<K: Eq + Hash + Copy> Place<K> {
    /// Makes it as large as so many, for what grows.
    pub(crate) fn grow_to(&mut self, count: usize) -> Result<(), NoPlace> {
        if let Some(more) = count.checked_sub(self.count).filter(|more| *more > 0) {
            self.places.add(self.whose, more, self.places.each_max)?;
            self.count = count;
        }
        Ok(())
    }
}

impl<K: Eq + Hash + Copy> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= self.count;
        let left = taken.each.get_mut(&self.whose).map(|own| {
            *own -= self.count;
            *own
        });
        if left == Some(0) {
            taken.each.remove(&self.whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_and_a_place_that_is_dropped_is_free() {
        let places = Places::new(4, 2);
        let mine = [places.take('a').unwrap(), places.take('a').unwrap()];
        assert_eq!(places.take('a').unwrap_err(), NoPlace::Own);
        let theirs = [places.take('b').unwrap(), places.take('b').unwrap()];
        assert_eq!(places.take('c').unwrap_err(), NoPlace::Full);
        assert_eq!((places.count(), places.refused()), (4, 2));
        drop(mine);
        assert!(places.take('c').is_ok());
        drop(theirs);
        assert_eq!(
            (places.count(), places.taken().each.len()),
            (0, 0),
            "nothing is remembered of whoever has none"
        );
    }

    #[test]
    fn a_place_grows_within_its_bound_and_is_free_as_a_whole() {
        let places = Places::new(10, 6);
        let mut mine = places.take('a').unwrap();
        assert_eq!(mine.grow_to(6), Ok(()));
        assert_eq!(mine.grow_to(7), Err(NoPlace::Own));
        let mut theirs = places.take('b').unwrap();
        assert_eq!(theirs.grow_to(5), Err(NoPlace::Full));
        assert_eq!(mine.grow_to(2), Ok(()), "it does not shrink");
        assert_eq!(places.count(), 7);
        drop(mine);
        assert_eq!((theirs.grow_to(5), places.count()), (Ok(()), 5));
    }

    #[test]
    fn without_a_bound_for_each_one_may_have_all() {
        let places = Places::new(2, 0);
        let _both = [places.take('a').unwrap(), places.take('a').unwrap()];
        assert_eq!(places.take('a').unwrap_err(), NoPlace::Full);
    }
}
