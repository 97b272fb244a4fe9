//! How a command comes to its supervisor: over the socket, in one message that carries its descriptors.
//!
//! The daemon's own descriptors all close on exec, so nothing can be handed down by number without `unsafe`; a message can carry them, and
//! no other process started at the same moment can catch one. Progress is the first of them, so that it gets the lowest number, which is kept
//! free for it: shells only know one digit.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

const COUNT: usize = 5;
/// Standard input, output and error.
const STANDARD: RawFd = 3;

/// The command's ends of its pipes, and the command itself.
pub(in super::super) struct Descriptors {
    pub progress: OwnedFd,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// See `errand.rs`.
    pub errand: OwnedFd,
}

impl Descriptors {
    /// Puts them into the socket; they wait there for the supervisor.
    pub(in super::super) fn send(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let fds = [&self.progress, &self.stdin, &self.stdout, &self.stderr, &self.errand].map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        if !message.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(socket, &[IoSlice::new(b"d")], &mut message, SendFlags::empty())?;
        Ok(())
    }

    /// Takes them out; none if the daemon is gone.
    pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let received =
            recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut fds = Vec::with_capacity(COUNT);
        for part in message.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                fds.extend(received);
            }
        }
        let [progress, stdin, stdout, stderr, errand] = <[OwnedFd; COUNT]>::try_from(fds)
            .map_err(|_| io::Error::other("the daemon sent other descriptors than expected"))?;
        Ok(Some(Self { progress, stdin, stdout, stderr, errand }))
    }
}

/// Lets the command have the progress descriptor, and says its number.
pub(super) fn inherit_progress(progress: &OwnedFd) -> io::Result<RawFd> {
    fcntl_setfd(progress, FdFlags::empty())?;
    Ok(progress.as_raw_fd())
}

/// Closes what the daemon itself was started with and passed on unknowingly. Nothing of ours is open yet.
pub(super) fn close_inherited() -> io::Result<()> {
    let numbers: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number >= STANDARD)
        .collect();
    for number in numbers {
        // The one that listed them is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}
