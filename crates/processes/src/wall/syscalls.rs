//! Calls by which a process changes another one of its user, and which neither mounts nor Landlock bound: limits and
//! priorities. A filter of the kernel's (seccomp) refuses them; whatever a process does with itself goes on.
//!
//! A filter sees numbers, not whose they are, so another process is whoever is named by a number and not by 0. Who sets
//! the priority of one of its own threads by its number is refused, too. `sched_setscheduler`, `sched_setaffinity` and
//! their like are refused only where processes outside have numbers at all: threads are set up with them by number
//! everywhere, and in a namespace of processes such a number is one of the agent's own.
//!
//! Where Landlock alone makes a list, no Unix sockets are made that could be connected to a name: Landlock does not ask who may reach a
//! listener of which somebody knows the name. Pairs that belong together go on, and so do sockets of the network.

use super::enforce::Separation;

/// Installs the filter, for this process and whatever it starts, for good. Needs `no_new_privs`. A kernel without it leaves
/// the calls open; the proof tells.
pub(super) fn bound(separation: Separation, lists: bool) {
    let mut program = program(separation, lists);
    let Ok(len) = u16::try_from(program.len()) else { return };
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: reads a program of the length it is told, which is ours and stays until the call is over.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) };
}

/// True if the kernel has filters that refuse.
pub(super) fn can_filter() -> bool {
    let refuse = libc::SECCOMP_RET_ERRNO;
    // SAFETY: reads a number of ours.
    #[allow(unsafe_code)]
    let has =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const refuse) };
    has == 0
}

/// The numbers of the calls on one kind of machine.
struct Machine {
    name: u32,
    prlimit64: u32,
    setpriority: u32,
    ioprio_set: u32,
    /// `sched_setparam`, `sched_setscheduler`, `sched_setaffinity`, `sched_setattr`.
    schedulers: [u32; 4],
    socket: u32,
    socketpair: u32,
    /// The older way to both, with the arguments where no filter sees them.
    socketcall: Option<u32>,
}

/// The calls by which the kernel is asked for others later, which no filter sees. It has this number on every machine.
const IO_URING_SETUP: u32 = 425;

#[cfg(target_arch = "x86_64")]
const MACHINES: [Machine; 2] = [
    Machine {
        name: 0xc000_003e,
        prlimit64: 302,
        setpriority: 141,
        ioprio_set: 251,
        schedulers: [142, 144, 203, 314],
        socket: 41,
        socketpair: 53,
        socketcall: None,
    },
    // Programs of 32 bits.
    Machine {
        name: 0x4000_0003,
        prlimit64: 340,
        setpriority: 97,
        ioprio_set: 289,
        schedulers: [154, 156, 241, 351],
        socket: 359,
        socketpair: 360,
        socketcall: Some(102),
    },
];
#[cfg(target_arch = "aarch64")]
const MACHINES: [Machine; 2] = [
    Machine {
        name: 0xc000_00b7,
        prlimit64: 261,
        setpriority: 140,
        ioprio_set: 30,
        schedulers: [118, 119, 122, 274],
        socket: 198,
        socketpair: 199,
        socketcall: None,
    },
    // Programs of 32 bits.
    Machine {
        name: 0x4000_0028,
        prlimit64: 369,
        setpriority: 97,
        ioprio_set: 314,
        schedulers: [154, 156, 241, 380],
        socket: 281,
        socketpair: 288,
        socketcall: Some(102),
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINES: [Machine; 0] = [];

/// Where the kernel puts what a filter sees: the number of the call, the machine, and the halves of each argument.
const CALL: u32 = 0;
const MACHINE: u32 = 4;
const fn low_half(argument: u32) -> u32 {
    16 + 8 * argument
}
const fn high_half(argument: u32) -> u32 {
    low_half(argument) + 4
}

/// The bit in the number of a call by which programs of x86-64 say that their pointers are short.
const SHORT_POINTERS: u32 = 0x4000_0000;
/// All processes of a user, as the first argument of the calls for priorities.
const PRIORITY_OF_USER: u32 = 2;
const IO_PRIORITY_OF_USER: u32 = 3;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// The answer to who may not have a socket of that kind.
const NO_SOCKET: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
/// As if it was not there: whoever can do without does.
const MISSING: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
/// The part of a kind of socket that says which it is; the rest are its flags.
const SOCKET_KIND: u32 = 0xf;

/// For each machine: is it this one; then for each call, is it this one, and is somebody else meant.
fn program(separation: Separation, lists: bool) -> Vec<libc::sock_filter> {
    let mut all = Vec::new();
    for machine in MACHINES {
        let mut calls = vec![load(CALL), and(!SHORT_POINTERS)];
        calls.extend(if_call(machine.prlimit64, limits_of_another()));
        calls.extend(if_call(machine.setpriority, priority_of_another(PRIORITY_OF_USER)));
        calls.extend(if_call(machine.ioprio_set, priority_of_another(IO_PRIORITY_OF_USER)));
        if separation != Separation::Processes {
            for call in machine.schedulers {
                calls.extend(if_call(call, anything_of_another()));
            }
        }
        if lists && separation == Separation::Nothing {
            calls.extend(if_call(machine.socket, unix_socket()));
            calls.extend(if_call(machine.socketpair, pair_that_can_be_led_elsewhere()));
            for call in machine.socketcall.into_iter().chain([IO_URING_SETUP]) {
                calls.extend(if_call(call, vec![answer(MISSING)]));
            }
        }
        calls.push(answer(ALLOW));
        all.push(load(MACHINE));
        all.push(jump_if(machine.name, 0, steps(&calls)));
        all.extend(calls);
    }
    all.push(answer(ALLOW));
    all
}

/// Does the rest if it is that call. The number has been loaded, and stays so if it is another one.
fn if_call(number: u32, then: Vec<libc::sock_filter>) -> Vec<libc::sock_filter> {
    let mut all = vec![jump_if(number, 0, steps(&then))];
    all.extend(then);
    all
}

/// `prlimit64(pid, resource, new, old)`: refused with a process and new limits.
fn limits_of_another() -> Vec<libc::sock_filter> {
    vec![
        load(low_half(0)),
        jump_if(0, 4, 0),
        load(low_half(2)),
        jump_if(0, 0, 3),
        load(high_half(2)),
        jump_if(0, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]
}

/// `setpriority(which, who, priority)`, `ioprio_set` alike: refused with a number, or for all processes of a user.
fn priority_of_another(user: u32) -> Vec<libc::sock_filter> {
    vec![
        load(low_half(0)),
        jump_if(user, 3, 0),
        load(low_half(1)),
        jump_if(0, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]
}

/// `sched_setaffinity(process, …)` and its like: refused with a number.
fn anything_of_another() -> Vec<libc::sock_filter> {
    vec![load(low_half(0)), jump_if(0, 0, 1), answer(ALLOW), answer(REFUSE)]
}

/// `socket(family, …)`: refused for Unix sockets.
fn unix_socket() -> Vec<libc::sock_filter> {
    vec![load(low_half(0)), jump_if(libc::AF_UNIX.cast_unsigned(), 0, 1), answer(NO_SOCKET), answer(ALLOW)]
}

/// `socketpair(family, kind, …)`: refused unless both ends stay connected to each other for as long as they live.
fn pair_that_can_be_led_elsewhere() -> Vec<libc::sock_filter> {
    vec![
        load(low_half(1)),
        and(SOCKET_KIND),
        jump_if(libc::SOCK_STREAM.cast_unsigned(), 2, 0),
        jump_if(libc::SOCK_SEQPACKET.cast_unsigned(), 1, 0),
        answer(NO_SOCKET),
        answer(ALLOW),
    ]
}

fn steps(program: &[libc::sock_filter]) -> u8 {
    u8::try_from(program.len()).expect("each part of the filter is short")
}

fn load(offset: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn and(mask: u32) -> libc::sock_filter {
    step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask)
}

/// Goes on so many steps later if what was loaded is that, and so many later if not.
fn jump_if(value: u32, equal: u8, other: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, equal, other, value)
}

fn answer(action: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("codes of filters are short"), jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of the filter to a call, as the kernel would find it.
    fn asked(separation: Separation, machine: u32, call: u32, arguments: [u64; 3]) -> u32 {
        asked_of(program(separation, false), machine, call, arguments)
    }

    fn asked_of(program: Vec<libc::sock_filter>, machine: u32, call: u32, arguments: [u64; 3]) -> u32 {
        let mut seen = vec![call, machine, 0, 0];
        for argument in arguments {
            seen.extend([argument as u32, (argument >> 32) as u32]);
        }
        let (mut loaded, mut at) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            match u32::from(code) & 0x07 {
                libc::BPF_LD => loaded = seen[k as usize / 4],
                libc::BPF_ALU => loaded &= k,
                libc::BPF_JMP => at += usize::from(if loaded == k { jt } else { jf }),
                _ => return k,
            }
        }
    }

    #[test]
    fn only_another_process_is_refused() {
        const SOME: u64 = 0x7f00_0000_0000;
        for separation in [Separation::Processes, Separation::Files, Separation::Nothing] {
            for Machine { name, prlimit64, setpriority, ioprio_set, .. } in MACHINES {
                for (call, arguments, answer) in [
                    (prlimit64, [0, 7, SOME], ALLOW),
                    (prlimit64, [42, 7, 0], ALLOW),
                    (prlimit64, [42, 7, SOME], REFUSE),
                    (prlimit64, [42, 7, 8], REFUSE),
                    (prlimit64 | SHORT_POINTERS, [42, 7, 8], REFUSE),
                    (setpriority, [0, 0, 5], ALLOW),
                    (setpriority, [1, 0, 5], ALLOW),
                    (setpriority, [0, 42, 5], REFUSE),
                    (setpriority, [2, 0, 5], REFUSE),
                    (ioprio_set, [1, 0, 5], ALLOW),
                    (ioprio_set, [1, 42, 5], REFUSE),
                    (ioprio_set, [3, 0, 5], REFUSE),
                    (1, [42, 42, 42], ALLOW),
                ] {
                    let said = asked(separation, name, call, arguments);
                    assert_eq!(said, answer, "{name:x}: {call} {arguments:?}");
                }
            }
            assert_eq!(asked(separation, 1, 302, [42, 7, SOME]), ALLOW, "of a machine that nobody knows");
        }
    }

    #[test]
    fn no_unix_socket_that_can_be_led_to_a_name_is_made_where_landlock_alone_makes_a_list() {
        const FLAGS: u64 = 0o2_004_000;
        let (unix, stream, datagram, raw, seqpacket) = (1, 1, 2, 3, 5);
        for Machine { name, socket, socketpair, socketcall, .. } in MACHINES {
            let all = [
                (socket, [unix, stream | FLAGS, 0], NO_SOCKET),
                (socket, [unix, datagram, 0], NO_SOCKET),
                (socket, [2, stream, 0], ALLOW),
                (socket, [10, datagram, 0], ALLOW),
                (socket, [16, raw, 0], ALLOW),
                (socketpair, [unix, stream | FLAGS, 0], ALLOW),
                (socketpair, [unix, seqpacket, 0], ALLOW),
                (socketpair, [unix, datagram | FLAGS, 0], NO_SOCKET),
                (socketpair, [unix, raw, 0], NO_SOCKET),
                (IO_URING_SETUP, [8, 8, 8], MISSING),
                (0, [unix, stream, 0], ALLOW),
            ];
            let older = socketcall.map(|call| (call, [1, 8, 0], MISSING));
            for (call, arguments, answer) in all.into_iter().chain(older) {
                let said = |separation, lists| asked_of(program(separation, lists), name, call, arguments);
                assert_eq!(said(Separation::Nothing, true), answer, "{name:x}: {call} {arguments:?}");
                for separation in [Separation::Processes, Separation::Files] {
                    assert_eq!(said(separation, true), ALLOW, "{name:x}: {call} {arguments:?}");
                }
                assert_eq!(said(Separation::Nothing, false), ALLOW, "{name:x}: {call} {arguments:?}");
            }
        }
    }

    #[test]
    fn who_runs_where_is_set_for_oneself_or_where_no_number_leads_outside() {
        for Machine { name, schedulers, .. } in MACHINES {
            for call in schedulers {
                for (separation, answer) in [
                    (Separation::Processes, ALLOW),
                    (Separation::Files, REFUSE),
                    (Separation::Nothing, REFUSE),
                ] {
                    assert_eq!(asked(separation, name, call, [42, 8, 8]), answer, "{name:x}: {call}");
                    assert_eq!(asked(separation, name, call, [0, 8, 8]), ALLOW, "{name:x}: {call}");
                }
            }
        }
    }
}
