//! Looks that are shared: what many streams of one person would each ask again and again is asked once for all of them.
//!
//! A thousand streams of one person must cost the others nothing. So a stream to which nothing happens does not wake: one task
//! looks for all those that have the same thing to look at, and wakes them only if it has something to tell. It begins with the
//! first of them and ends with the last.

use crate::tasks::Tasks;
use kernel::{OrgId, PersonId, Principal, TokenId};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Whoever looks, as far as what they may see is concerned: a person with one of their credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Looker(OrgId, PersonId, Option<TokenId>);

impl Looker {
    pub(crate) fn of(by: &Principal) -> Self {
        Self(by.org, by.person, by.credential)
    }
}

/// Where a look tells what it has seen last.
pub(crate) type Tell<T> = Arc<watch::Sender<T>>;

/// The looks that are going on, at most one for each key. Cheap to clone.
#[derive(Debug)]
pub(crate) struct SharedLooks<K, T>(Arc<Mutex<BTreeMap<K, Tell<T>>>>);

impl<K, T> Default for SharedLooks<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, T> Clone for SharedLooks<K, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Copy + Send + 'static, T: Send + Sync + 'static> SharedLooks<K, T> {
    /// Listens to the look of this key. If there is none it begins, with `first` as what was told last. When a look ends by
    /// itself, whoever listens hears that there is nothing more to come.
    pub(crate) fn join<F: Future<Output = ()> + Send + 'static>(
        &self,
        tasks: &Tasks,
        key: K,
        first: T,
        look: impl FnOnce(Tell<T>) -> F,
    ) -> watch::Receiver<T> {
        let mut looks = self.looks();
        if let Some(tell) = looks.get(&key) {
            return tell.subscribe();
        }
        let (tell, told) = watch::channel(first);
        let tell = Arc::new(tell);
        looks.insert(key, tell.clone());
        drop(looks);
        let look = look(tell.clone());
        let place = LookPlace { all: self.clone(), key, tell };
        tasks.spawn(async move {
            let mut look = pin!(look);
            loop {
                tokio::select! {
                    biased;
                    () = place.tell.closed() => if place.left() { return },
                    () = look.as_mut() => return,
                }
            }
        });
        told
    }

    fn looks(&self) -> MutexGuard<'_, BTreeMap<K, Tell<T>>> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a look among all; empty again when dropped, however the look has ended.
struct LookPlace<K: Ord + Copy + Send + 'static, T: Send + Sync + 'static> {
    all: SharedLooks<K, T>,
    key: K,
    tell: Tell<T>,
}

impl<K: Ord + Copy + Send + 'static, T: Send + Sync + 'static> LookPlace<K, T> {
    /// True if the last one has left, and nobody can join any more.
    fn left(&self) -> bool {
        let mut looks = self.all.looks();
        let is_over = self.tell.receiver_count() == 0;
        if is_over {
            self.leave(&mut looks);
        }
        is_over
    }

    /// Another look may have taken the place already.
    fn leave(&self, looks: &mut BTreeMap<K, Tell<T>>) {
        if looks.get(&self.key).is_some_and(|tell| Arc::ptr_eq(tell, &self.tell)) {
            looks.remove(&self.key);
        }
    }
}

impl<K: Ord + Copy + Send + 'static, T: Send + Sync + 'static> Drop for LookPlace<K, T> {
    fn drop(&mut self) {
        self.leave(&mut self.all.looks());
    }
}

/// Answers that are found once for all who ask at the same time. Whoever comes while one is being found waits for the next one:
/// what was found before they asked may be old. Cheap to clone.
#[derive(Debug)]
pub(crate) struct SharedAnswers<K, V>(Arc<Mutex<Questions<K, V>>>);

/// The questions that somebody waits for, and the number of moments so far at which one was asked or begun to be answered.
#[derive(Debug)]
struct Questions<K, V> {
    slots: BTreeMap<K, Slot<V>>,
    moments: u64,
}

/// The last answer, with the moment at which it was begun to be found.
type Slot<V> = Arc<tokio::sync::Mutex<Option<(u64, V)>>>;

impl<K, V> Default for SharedAnswers<K, V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Questions { slots: BTreeMap::new(), moments: 0 })))
    }
}

impl<K, V> Clone for SharedAnswers<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Copy, V: Clone> SharedAnswers<K, V> {
    /// An answer that was begun to be found after this was asked: by `find`, or by somebody who waits for the same.
    pub(crate) async fn ask(&self, key: K, find: impl Future<Output = V>) -> V {
        let (asked, slot) = {
            let mut questions = self.questions();
            (questions.moment(), questions.slots.entry(key).or_default().clone())
        };
        let mut last = slot.lock().await;
        let answer = match &*last {
            Some((began, answer)) if *began > asked => answer.clone(),
            Some(_) | None => {
                let began = self.questions().moment();
                let answer = find.await;
                *last = Some((began, answer.clone()));
                answer
            }
        };
        drop(last);
        let mut questions = self.questions();
        // Nobody but us and the map holds it: nobody waits any more.
        if Arc::strong_count(&slot) == 2 {
            questions.slots.remove(&key);
        }
        answer
    }

    fn questions(&self) -> MutexGuard<'_, Questions<K, V>> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Questions<K, V> {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    /// A look that tells a number whenever it is asked to, and how many of them there were.
    #[derive(Default)]
    struct Counting {
        begun: AtomicUsize,
        go: Notify,
        end: Notify,
    }

    fn join(looks: &SharedLooks<u8, usize>, tasks: &Tasks, of: &Arc<Counting>) -> watch::Receiver<usize> {
        let of = of.clone();
        looks.join(tasks, 1, 0, |tell| async move {
            of.begun.fetch_add(1, Ordering::Relaxed);
            let telling = async {
                loop {
                    of.go.notified().await;
                    tell.send_modify(|count| *count += 1);
                }
            };
            tokio::select! {
                () = telling => {}
                () = of.end.notified() => {}
            }
        })
    }

    #[tokio::test]
    async fn many_listen_to_one_look_that_goes_with_the_last_of_them() {
        let (looks, tasks, of) = (SharedLooks::default(), Tasks::default(), Arc::<Counting>::default());
        let mut all: Vec<_> = (0..100).map(|_| join(&looks, &tasks, &of)).collect();
        of.go.notify_one();
        for told in &mut all {
            told.changed().await.unwrap();
            assert_eq!(*told.borrow(), 1);
        }
        assert_eq!(of.begun.load(Ordering::Relaxed), 1);
        let last = all.pop();
        drop(all);
        tokio::task::yield_now().await;
        assert_eq!(looks.looks().len(), 1, "somebody listens");
        drop(last);
        while !looks.looks().is_empty() {
            tokio::task::yield_now().await;
        }
        let _again = join(&looks, &tasks, &of);
        while of.begun.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_look_that_ends_is_heard_and_the_next_begins_anew() {
        let (looks, tasks, of) = (SharedLooks::default(), Tasks::default(), Arc::<Counting>::default());
        let mut told = join(&looks, &tasks, &of);
        of.end.notify_one();
        assert!(told.changed().await.is_err());
        let mut again = join(&looks, &tasks, &of);
        of.go.notify_one();
        again.changed().await.unwrap();
        assert_eq!(of.begun.load(Ordering::Relaxed), 2);
        tasks.abort_all();
        assert!(again.changed().await.is_err(), "the node goes down");
    }

    #[tokio::test]
    async fn those_who_ask_together_get_one_answer_that_is_newer_than_their_question() {
        let (answers, found) = (SharedAnswers::<u8, usize>::default(), Arc::<AtomicUsize>::default());
        let ask = || {
            let (answers, found) = (answers.clone(), found.clone());
            async move {
                let find = async {
                    tokio::task::yield_now().await;
                    found.fetch_add(1, Ordering::Relaxed)
                };
                answers.ask(1, find).await
            }
        };
        let mut asking = tokio::task::JoinSet::new();
        (0..100).for_each(|_| drop(asking.spawn(ask())));
        let mut got = asking.join_all().await;
        got.sort_unstable();
        assert_eq!(got[..2], [0, 1], "the first was begun before the others asked");
        assert_eq!(got[1..], [1; 99]);
        assert_eq!(ask().await, 2);
        assert!(answers.questions().slots.is_empty(), "nothing is kept when nobody waits");
    }
}
