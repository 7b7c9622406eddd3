//! The language between the daemon and a supervisor: one byte of kind, four of length (little-endian), then the rest.
//!
//! Both sides are the same binary, started from the same file, so there is one version of this.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::wall::{Separation, SessionWall};

/// The longest frame. A start with its whole environment has to fit; words and output are cut into pieces.
pub(crate) const FRAME_BYTES_MAX: usize = 512 * 1024;
/// The most words or output in one frame.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
const HEAD_BYTES: usize = 5;

/// The kind of a frame. The daemon says the capitals, the supervisor the small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Prepare,
    Start,
    Input,
    CloseInput,
    Beat,
    Interrupt,
    Kill,
    Count,
    List,
    Started,
    Refused,
    Output,
    Errors,
    Exited,
    Counted,
    Listed,
}

impl FrameKind {
    const ALL: [(u8, Self); 16] = [
        (b'P', Self::Prepare),
        (b'S', Self::Start),
        (b'I', Self::Input),
        (b'C', Self::CloseInput),
        (b'B', Self::Beat),
        (b'T', Self::Interrupt),
        (b'K', Self::Kill),
        (b's', Self::Started),
        (b'r', Self::Refused),
        (b'o', Self::Output),
        (b'e', Self::Errors),
        (b'x', Self::Exited),
        (b'N', Self::Count),
        (b'n', Self::Counted),
        (b'L', Self::List),
        (b'l', Self::Listed),
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(letter, _)| *letter == byte).map(|(_, kind)| *kind)
    }

    fn byte(self) -> u8 {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or(0, |(letter, _)| *letter)
    }
}

/// Everything a supervisor has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The tree's name.
    pub(crate) tree: String,
    /// The directory of the locks.
    pub(crate) locks: PathBuf,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// The whole environment, but for the mark.
    pub(crate) env: Vec<(String, String)>,
    /// Where it runs.
    pub(crate) directory: PathBuf,
    /// The longest that the daemon may be silent.
    pub(crate) silence_ms_max: u64,
    /// True if the tree gets a control group, where one can be made.
    pub(crate) group: bool,
    /// The most open files of each of its processes, if not ours.
    pub(crate) files_max: Option<u64>,
    /// True if the agent finds its input closed from the beginning.
    pub(crate) closes_input: bool,
    /// The share of the machine that the tree may take.
    pub(crate) limits: ResourceLimits,
    /// The wall around it.
    pub(crate) wall: SessionWall,
}

/// The share of the machine that a whole tree may take, where that is bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) processes_max: Option<u32>,
    #[serde(default)]
    pub(crate) written_bytes_max: Option<u64>,
}

/// A limit that a tree went beyond, which was its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceLimit {
    /// Its processes used more memory than they may.
    Memory,
    /// It had more processes than it may.
    Processes,
    /// Its processes wrote more than they may.
    Written,
}

/// The agent runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// Where it runs, as the kernel says. Nothing if it has already ended.
    pub(crate) directory: Option<String>,
    /// The namespaces that it has.
    #[serde(default)]
    pub(crate) separation: Option<Separation>,
}

/// Nothing was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) why: RefusalKind,
    pub(crate) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalKind {
    /// Another supervisor has this tree.
    Locked,
    /// There is no such program or directory, or we may not.
    Wrong,
    /// Something else, which may pass.
    Failed,
}

/// The agent and its whole tree have ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) killed: u32,
    pub(crate) gone: bool,
    pub(crate) limit: Option<ResourceLimit>,
}

/// The number of processes of the tree, and the start of the newest of them, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) processes: u32,
    pub(crate) newest: u64,
}

/// The processes of the tree that are not the agent's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Listed {
    /// All of them.
    pub(crate) processes: u32,
    /// The start of the newest of them, in the kernel's ticks.
    pub(crate) newest: u64,
    /// The oldest of them, at most `LISTED_MAX`.
    pub(crate) oldest: Vec<ListedLine>,
}

/// One of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ListedLine {
    pub(crate) pid: i32,
    /// Its start, in the kernel's ticks.
    pub(crate) started: u64,
    pub(crate) age_ms: u64,
    pub(crate) command: String,
}

/// Somebody on the other side is not who we think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a frame")]
pub(crate) struct NotAFrame;

/// Puts frames together from bytes as they come.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Where bytes are read into, at the end.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The next whole frame, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<(FrameKind, Vec<u8>)>, NotAFrame> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let kind = FrameKind::from_byte(head[0]).ok_or(NotAFrame)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(NotAFrame);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let body = rest[..length].to_vec();
        self.bytes.drain(..HEAD_BYTES + length);
        Ok(Some((kind, body)))
    }
}

/// Adds a frame to what is to be written.
pub(crate) fn put(out: &mut Vec<u8>, kind: FrameKind, body: &[u8]) {
    debug_assert!(body.len() <= FRAME_BYTES_MAX);
    out.push(kind.byte());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(body);
}

/// A frame whose body is one of the structures above.
pub(crate) fn put_json(out: &mut Vec<u8>, kind: FrameKind, body: &impl Serialize) {
    put(out, kind, &serde_json::to_vec(body).expect("plain structures can be written"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_however_they_are_cut() {
        let mut all = Vec::new();
        put(&mut all, FrameKind::Input, b"hello");
        put(&mut all, FrameKind::Beat, b"");
        let (mut frames, mut seen) = (FrameReader::default(), Vec::new());
        for byte in all {
            frames.bytes().push(byte);
            seen.extend(frames.next().unwrap());
        }
        assert_eq!(seen, [(FrameKind::Input, b"hello".to_vec()), (FrameKind::Beat, Vec::new())]);
    }

    #[test]
    fn nonsense_and_giants_are_not_frames() {
        for bytes in [&b"?\0\0\0\0"[..], b"I\xff\xff\xff\xff"] {
            let mut frames = FrameReader::default();
            frames.bytes().extend_from_slice(bytes);
            assert_eq!(frames.next(), Err(NotAFrame));
        }
    }

    #[test]
    fn every_kind_has_its_letter() {
        assert!(
            FrameKind::ALL
                .iter()
                .all(|(letter, kind)| kind.byte() == *letter && FrameKind::from_byte(*letter) == Some(*kind))
        );
    }
}
