//! Many streams of one person: what they cost while nothing happens to them, and that they still hear what does.

use crate::world::{World, trace};
use engine::Resource;
use kernel::{Grant, Grantee, Number, Principal, Role, SessionId, To};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const STREAMS: usize = 100;
/// Long enough that every stream would have looked many times.
const A_WHILE: Duration = Duration::from_secs(10);
/// A right that is gone ends a stream within this time.
const SOON: Duration = Duration::from_secs(1);

/// Streams that are read by tasks of their own, with how often these woke and what they were told.
#[derive(Default)]
struct Streams {
    tasks: JoinSet<()>,
    wakes: Arc<AtomicUsize>,
    told: Arc<AtomicUsize>,
}

impl Streams {
    fn read(&mut self, stream: impl Future<Output = ()> + Send + 'static) {
        let wakes = self.wakes.clone();
        self.tasks.spawn(async move {
            let mut stream = pin!(stream);
            let counted = poll_fn(|cx| {
                wakes.fetch_add(1, Ordering::Relaxed);
                stream.as_mut().poll(cx)
            });
            counted.await;
        });
    }

    async fn of_session(&mut self, world: &World, by: &Principal, session: SessionId) {
        for _ in 0..STREAMS {
            let mut follow = world.engine.views().follow(by, session, Number(0)).await.unwrap();
            let told = self.told.clone();
            self.read(async move {
                while follow.next().await.is_some() {
                    told.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }

    async fn of_all(&mut self, world: &World, by: &Principal) {
        for _ in 0..STREAMS {
            let mut follow = world.engine.views().follow_heads(by, 0).await.unwrap();
            let told = self.told.clone();
            self.read(async move {
                while follow.next().await.is_some() {
                    told.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }

    fn told(&self) -> usize {
        self.told.load(Ordering::Relaxed)
    }

    async fn all_end(&mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        tokio::time::timeout(SOON, all).await.expect("they end");
    }
}

/// A session of mine that somebody else may read, and they.
async fn shared(world: &World) -> (Principal, SessionId) {
    let bob = world.let_in("bob", Role::Member).await;
    let session = world.talk(To::New, "one").await.row.session;
    world.give(session, Grantee::Person(bob.person), Grant::View).await;
    (bob, session)
}

#[tokio::test(start_paused = true)]
async fn streams_to_which_nothing_happens_do_not_wake() {
    let world = World::new().await;
    let (bob, session) = shared(&world).await;
    let (mut of_session, mut of_all) = (Streams::default(), Streams::default());
    of_session.of_session(&world, &bob, session).await;
    of_all.of_all(&world, &bob).await;
    tokio::time::sleep(A_WHILE).await;
    let before = (of_session.wakes(), of_all.wakes());
    tokio::time::sleep(A_WHILE).await;
    // Somebody comes, and something happens in a session that they do not see.
    world.let_in("eve", Role::Member).await;
    world.talk(To::New, "two").await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!((of_session.wakes(), of_all.wakes()), before);
}

#[tokio::test(start_paused = true)]
async fn each_of_many_streams_is_told_whatever_happens_to_it() {
    let world = World::new().await;
    let (bob, session) = shared(&world).await;
    let (mut of_session, mut of_all) = (Streams::default(), Streams::default());
    of_session.of_session(&world, &bob, session).await;
    of_all.of_all(&world, &bob).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(of_all.told(), STREAMS, "the one session that they see");
    let (facts, heads) = (of_session.told(), of_all.told());
    world.talk(To::Session(session), "again").await;
    tokio::time::sleep(A_WHILE).await;
    assert!(
        of_session.told() >= facts + 4 * STREAMS,
        "queued, started, handed, ended: {}",
        of_session.told()
    );
    assert!(of_all.told() >= heads + STREAMS, "{}", of_all.told());
    let (on, to) = (Resource::Session(session), Grantee::Person(bob.person));
    world.engine.people().take_back(&world.me, on, to, trace(None)).await.unwrap();
    of_session.all_end().await;
    let credential = bob.credential.expect("they came in with one");
    world.engine.people().revoke_token(&world.me, credential, trace(None)).await.unwrap();
    of_all.all_end().await;
}
