//! Bytes on a socket with descriptors beside them: by these a supervisor, and the first process that it has prepared, get what they need
//! to hold of what others have opened.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

/// The most descriptors that the kernel lets travel at once (`SCM_MAX_FD`).
const AT_ONCE_MAX: usize = 253;
/// The bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Bytes on their way, and descriptors beside them. Bytes are behind or with the descriptors that they are about, never before.
#[derive(Debug)]
pub(crate) struct Parcel<'a> {
    bytes: &'a [u8],
    descriptors: &'a [BorrowedFd<'a>],
}

impl<'a> Parcel<'a> {
    /// There has to be a byte for every 253 descriptors.
    pub(crate) fn new(bytes: &'a [u8], descriptors: &'a [BorrowedFd<'a>]) -> Self {
        Self { bytes, descriptors }
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sends what fits, once.
    pub(crate) fn send_some(&mut self, to: impl AsFd) -> io::Result<()> {
        let (now, later) = self.descriptors.split_at(self.descriptors.len().min(AT_ONCE_MAX));
        // Where more of them have to follow, a byte has to be left that they are beside.
        let bytes = if later.is_empty() { self.bytes } else { &self.bytes[..1] };
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        if !now.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(now)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sent = rustix::net::sendmsg(to, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?;
        (self.bytes, self.descriptors) = (&self.bytes[sent..], later);
        Ok(())
    }

    /// Sends everything to somebody who reads it.
    pub(crate) fn send(mut self, to: impl AsFd) -> io::Result<()> {
        while !self.is_sent() {
            match self.send_some(&to) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                sent => sent?,
            }
        }
        Ok(())
    }
}

/// Receives what is there, once. The number of bytes; 0 if nobody sends any more.
pub(crate) fn receive_some(
    from: impl AsFd,
    bytes: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut read = [0; READ_BYTES];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let into = &mut [IoSliceMut::new(&mut read)];
    let got = rustix::net::recvmsg(from, into, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    bytes.extend_from_slice(&read[..got.bytes]);
    Ok(got.bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn inode(of: impl AsFd) -> u64 {
        rustix::fs::fstat(of).unwrap().st_ino
    }

    #[test]
    fn all_descriptors_arrive_in_order_however_many_there_are() {
        let files: Vec<_> = (0..600).map(|_| tempfile::tempfile().unwrap()).collect();
        let (here, there) = UnixStream::pair().unwrap();
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let words = vec![7; 100_000];
        let (mut bytes, mut got) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                Parcel::new(&words, &borrowed).send(&here).unwrap();
                drop(here.shutdown(std::net::Shutdown::Write));
            });
            while receive_some(&there, &mut bytes, &mut got).unwrap() > 0 {}
        });
        assert_eq!(bytes, words);
        let (sent, got): (Vec<_>, Vec<_>) =
            (files.iter().map(inode).collect(), got.iter().map(inode).collect());
        assert_eq!(sent, got);
    }

    #[test]
    fn a_parcel_without_descriptors_is_bytes() {
        let (here, there) = UnixStream::pair().unwrap();
        Parcel::new(b"hello", &[]).send(&here).unwrap();
        let (mut bytes, mut got) = (Vec::new(), Vec::new());
        assert_eq!(receive_some(&there, &mut bytes, &mut got), Ok(5));
        assert!(bytes == b"hello" && got.is_empty());
    }
}
