//! A kernel without the parts that a wall is made of, for this thread and whatever it starts: a filter refuses them.

/// Namespaces, in the first argument of `clone`: all of them, and that of processes.
const NAMESPACES: u32 = 0x7e02_0000;
const PROCESSES: u32 = 0x2000_0000;
/// Where the kernel puts what a filter sees: the number of the call, and the first argument.
const CALL: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

/// The calls by which namespaces and mounts are made.
const SEPARATING: [libc::c_long; 6] = [
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
];

/// Takes namespaces, mounts and Landlock away, for good. Call it in a test's own thread, before that starts anything.
pub fn lose_walls() {
    lose(&[libc::SYS_landlock_create_ruleset], &SEPARATING, NAMESPACES);
}

/// Takes namespaces and mounts away, and leaves Landlock: as in a container, or for an ordinary user of Ubuntu.
pub fn lose_namespaces() {
    lose(&[], &SEPARATING, NAMESPACES);
}

/// Takes Landlock away, and nothing else.
pub fn lose_landlock() {
    lose(&[libc::SYS_landlock_create_ruleset], &[], 0);
}

/// Takes namespaces of processes away, and nothing else.
pub fn lose_namespaces_of_processes() {
    lose(&[], &[], PROCESSES);
}

fn lose(missing: &[libc::c_long], forbidden: &[libc::c_long], namespaces: u32) {
    let refuse = |errno: libc::c_int| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    let load = |from| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, from);
    let mut program = vec![load(CALL)];
    // As if it was not there: whoever starts threads or processes takes the older call then, whose flags a filter sees.
    let missing = missing.iter().chain(&[libc::SYS_clone3]).map(|call| (call, refuse(libc::ENOSYS)));
    let forbidden = forbidden.iter().map(|call| (call, refuse(libc::EPERM)));
    for (call, answer) in missing.chain(forbidden) {
        program.extend([equals(*call, 0, 1), give(answer)]);
    }
    program.extend([
        equals(libc::SYS_clone, 0, 3),
        load(FIRST_ARGUMENT),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, namespaces),
        give(refuse(libc::EPERM)),
        give(libc::SECCOMP_RET_ALLOW),
    ]);
    let len = u16::try_from(program.len()).expect("it is short");
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: reads a program of the length it is told, which is ours and stays until the call is over.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

fn equals(call: libc::c_long, then: u8, other: u8) -> libc::sock_filter {
    let call = u32::try_from(call).expect("calls have small numbers");
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, other, call)
}

fn give(answer: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, answer)
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("codes are short"), jt, jf, k }
}
