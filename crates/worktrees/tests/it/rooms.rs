//! Snapshots take room, which is counted for those whose they are; where it is too much the oldest go, and somebody is told.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use homing_worktrees::git::{Git, GitLimits, SnapshotMoment, SnapshotName};
use kernel::SessionId;

use super::{Yard, our_git_with};

const MINE: SessionId = SessionId::from_bits(7);
const HERS: SessionId = SessionId::from_bits(8);
const DAY: Duration = Duration::from_secs(24 * 3_600);

impl Yard {
    /// A turn of a session that writes a file nobody else has, with so many bytes, so many days ago.
    async fn turn(&self, session: SessionId, turn: u64, bytes: usize, days: u32) {
        for moment in [SnapshotMoment::Before, SnapshotMoment::After] {
            let name = SnapshotName { session, turn, moment };
            let taken = self.git.snapshot(&self.repository, &name).await.unwrap().unwrap();
            let at = SystemTime::now() - DAY * days;
            let file = fs::File::options().append(true).open(self.store().join(&taken.reference)).unwrap();
            file.set_modified(at).unwrap();
            let junk = (0..bytes / 16).flat_map(|_| uuid::Uuid::new_v4().into_bytes()).collect::<Vec<u8>>();
            fs::write(self.repository.join(format!("{session}.{turn}")), junk).unwrap();
        }
        fs::remove_file(self.repository.join(format!("{session}.{turn}"))).unwrap();
    }

    fn turns(&self, session: SessionId) -> Vec<String> {
        let place = self.store().join(format!("refs/homing/{session}"));
        let mut turns: Vec<_> = fs::read_dir(place)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        turns.sort();
        turns
    }

    fn key(&self) -> String {
        self.store().file_name().unwrap().to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_store_that_is_shared_counts_for_each_by_what_their_own_snapshots_reach() {
    let yard = Yard::new();
    yard.turn(MINE, 1, 10_000, 3).await;
    yard.turn(HERS, 1, 2_000_000, 2).await;
    yard.git.copy(&yard.repository).await.unwrap();
    let share = async |session| yard.git.share(&yard.key(), &[session]).await.unwrap().bytes;
    let (mine, hers) = (share(MINE).await, share(HERS).await);
    assert!((10_000..100_000).contains(&mine), "{mine}");
    assert!((2_000_000..2_100_000).contains(&hers), "{hers}");
    let rooms = yard.git.store_rooms();
    assert_eq!(rooms.len(), 1);
    assert!(rooms[0].bytes >= mine.max(hers), "{rooms:?}");
    let mut sessions = rooms[0].sessions.clone();
    sessions.sort();
    assert_eq!(sessions, [MINE, HERS]);
    yard.git.share("../../etc", &[MINE]).await.unwrap_err();
}

#[tokio::test]
async fn the_oldest_of_one_go_and_nobody_elses_and_it_is_said_once() {
    let yard = Yard::new();
    for turn in 1..=8 {
        yard.turn(HERS, turn, 1_000, 60).await;
        yard.turn(MINE, turn, 1_000, 40 - u32::try_from(turn).unwrap()).await;
    }
    yard.turn(MINE, 9, 1_000, 0).await;
    yard.git.copy(&yard.repository).await.unwrap();
    let before = yard.git.share(&yard.key(), &[MINE]).await.unwrap();
    let after = yard.git.let_go(&yard.key(), &[MINE]).await.unwrap();
    yard.git.compact_called(&yard.key()).await.unwrap();
    assert!(after.bytes < before.bytes && after.oldest > before.oldest, "{before:?} {after:?}");
    assert_eq!(yard.turns(MINE), ["3", "4", "5", "6", "7", "8", "9"], "the older quarter");
    assert_eq!(yard.turns(HERS).len(), 8, "hers are older, and stay");
    let words = yard.git.tell_gone(&yard.repository, MINE).unwrap().unwrap();
    assert!(words.contains("up to 2") && words.contains("limits.snapshot_bytes_per_person_max"), "{words}");
    assert_eq!(yard.git.tell_gone(&yard.repository, MINE).unwrap(), None, "once");
    assert_eq!(yard.git.tell_gone(&yard.repository, HERS).unwrap(), None);
    assert!(yard.git.why_gone(&yard.repository, MINE, 2).is_some_and(|why| why.contains("the oldest went")));
    assert_eq!(yard.git.why_gone(&yard.repository, MINE, 3), None);
    // Those of the last hour stay, whatever it takes.
    for _ in 0..20 {
        yard.git.let_go(&yard.key(), &[MINE]).await.unwrap();
    }
    assert_eq!(yard.turns(MINE), ["9"]);
    assert_eq!(yard.turns(HERS).len(), 8);
}

#[tokio::test]
async fn whose_snapshots_go_because_their_repository_takes_too_much_is_told_once() {
    let yard = Yard::new();
    for turn in 1..=4 {
        yard.turn(MINE, turn, 1_000, 10 - u32::try_from(turn).unwrap()).await;
    }
    yard.turn(HERS, 1, 1_000, 0).await;
    let git: Git = our_git_with(
        yard.place.path(),
        Path::new("git"),
        GitLimits { store_bytes_max: 4_096, ..GitLimits::default() },
    );
    assert!(git.crowded_stores().is_empty());
    git.sweep(120 * DAY).await.unwrap();
    assert_eq!((yard.turns(MINE), yard.turns(HERS)), (vec!["4".to_owned()], vec!["1".to_owned()]));
    let words = git.tell_gone(&yard.repository, MINE).unwrap().unwrap();
    assert!(words.contains("up to 3") && words.contains("repository"), "{words}");
    assert_eq!(git.tell_gone(&yard.repository, MINE).unwrap(), None, "once");
    assert_eq!(git.tell_gone(&yard.repository, HERS).unwrap(), None, "hers are there");
    assert_eq!(git.crowded_stores(), [yard.repository.join(".git")]);
    // What expires because it is old is nobody's loss.
    let plain = our_git_with(yard.place.path(), Path::new("git"), GitLimits::default());
    plain.sweep(Duration::ZERO).await.unwrap();
    assert_eq!(plain.tell_gone(&yard.repository, HERS).unwrap(), None);
}
