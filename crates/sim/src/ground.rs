//! The engine's needs from the world besides stores and agents, made from the seed: time, ids, directories; no seal but
//! the audit's, and a wall that nobody looks at.

use engine::{ChainKey, Proof};
use kernel::{GroundPath, Moment, SessionId};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tokio::time::Instant;

/// Where all stories begin, so that a jump back never meets the beginning of time.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// A clock that goes with the runtime's virtual time and jumps when told to.
#[derive(Debug)]
pub(crate) struct JumpyClock {
    built: Instant,
    skew_ms: AtomicI64,
    /// The distance it has jumped, in either direction.
    jumped_ms: AtomicU64,
}

impl JumpyClock {
    pub(crate) fn new() -> Self {
        Self { built: Instant::now(), skew_ms: AtomicI64::new(0), jumped_ms: AtomicU64::new(0) }
    }

    pub(crate) fn jump(&self, ms: i64) {
        self.skew_ms.fetch_add(ms, Ordering::Relaxed);
        self.jumped_ms.fetch_add(ms.unsigned_abs(), Ordering::Relaxed);
    }

    pub(crate) fn jumped_ms(&self) -> u64 {
        self.jumped_ms.load(Ordering::Relaxed)
    }

    /// Milliseconds since the story began, whatever the clock says.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.built.elapsed().as_millis() as u64
    }
}

impl engine::Clock for JumpyClock {
    fn now(&self) -> Moment {
        Moment((BEGINNING_MS + self.elapsed_ms()).saturating_add_signed(self.skew_ms.load(Ordering::Relaxed)))
    }
}

/// Ids that count, so that a story can be read.
#[derive(Debug, Default)]
pub(crate) struct CountingMint(AtomicU64);

impl engine::Mint for CountingMint {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.bits().to_be_bytes());
        bytes
    }
}

/// Every directory is firm, and none is touched.
#[derive(Debug)]
pub(crate) struct FirmGround;

impl engine::Ground for FirmGround {
    fn check(&self, directory: &str) -> Result<GroundPath, engine::GroundError> {
        Ok(directory.into())
    }
    fn own(&self, session: SessionId) -> GroundPath {
        format!("/sim/{session}").into()
    }
    fn look(&self, _: &GroundPath) -> Result<(), engine::NoGround> {
        Ok(())
    }
    fn why_not(&self, _root: &str, _directory: &str) -> Option<engine::GroundError> {
        None
    }
    fn prepare(&self, directory: &GroundPath) -> Result<GroundPath, engine::GroundError> {
        Ok(directory.clone())
    }
}

/// Nobody in a story has a sign-in of their own.
#[derive(Debug)]
pub(crate) struct NoSeal;

impl engine::Seal for NoSeal {
    fn seal(&self, _about: &str, _plain: &[u8]) -> Result<Vec<u8>, engine::SealError> {
        Err(engine::SealError("there is no seal in a story".to_owned()))
    }
    fn open(&self, _about: &str, _sealed: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn chain_key(&self) -> ChainKey {
        ChainKey([1; 32])
    }
}

/// Nobody new comes into a story.
#[derive(Debug)]
pub(crate) struct NoWall;

impl engine::WallProver for NoWall {
    fn prove(&self) -> Pin<Box<dyn Future<Output = Proof> + Send + '_>> {
        Box::pin(std::future::ready(Proof::default()))
    }
}
