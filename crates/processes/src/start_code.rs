//! Lets go of the code that only the start of this program needed.
//!
//! A start runs once through much of the program: the command line, the configuration, the routes. The kernel leaves all of
//! it mapped, several times what a server at work needs. What is let go here and wanted again is mapped again from the file.

use std::fs;

/// Unmaps the pages of our own code until they are used again. Costs the next use of each a page fault, and nothing else.
pub fn release_start_code() {
    for (start, length) in code_of_ours() {
        // SAFETY: the pages are code: mapped from the program's file, never written, so there is nothing to lose, and whoever
        // runs through them the next time, this very function included, gets the same bytes from the file. A failure leaves
        // them where they are.
        #[allow(unsafe_code)]
        unsafe {
            libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED);
        }
    }
}

/// Where the program's own code is: its first address and its length.
fn code_of_ours() -> Vec<(usize, usize)> {
    let (Ok(program), Ok(maps)) = (fs::read_link("/proc/self/exe"), fs::read_to_string("/proc/self/maps"))
    else {
        return Vec::new();
    };
    maps.lines().filter_map(|line| code_at(line, &program.to_string_lossy())).collect()
}

/// One line of the kernel's list, if it is code of this program.
fn code_at(line: &str, program: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let is_code = rest.starts_with("r-xp ") && rest.trim_end().ends_with(&format!(" {program}"));
    let (start, end) = range.split_once('-').filter(|_| is_code)?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kilobytes of our own code that are mapped now.
    fn mapped_kilobytes() -> u64 {
        let program = fs::read_link("/proc/self/exe").unwrap();
        let (mut is_code, mut sum) = (false, 0);
        for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
            match line.strip_prefix("Rss:") {
                Some(figure) if is_code => {
                    sum += figure.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
                }
                Some(_) => {}
                None if line.contains('-') && line.contains(' ') && !line.contains("kB") => {
                    is_code = code_at(line, &program.to_string_lossy()).is_some();
                }
                None => {}
            }
        }
        sum
    }

    #[test]
    fn code_that_was_let_go_runs_again() {
        let before = mapped_kilobytes();
        release_start_code();
        let after = mapped_kilobytes();
        assert!(after < before, "{after} kB of {before} are still there");
        assert_eq!("1-2".split_once('-'), Some(("1", "2")), "and we go on");
    }

    #[test]
    fn only_code_of_this_program_is_let_go() {
        let line = |kind: &str, path: &str| format!("1000-3000 {kind} 00000000 fe:00 17     {path}");
        assert_eq!(code_at(&line("r-xp", "/bin/a"), "/bin/a"), Some((0x1000, 0x2000)));
        for (kind, path) in [("r--p", "/bin/a"), ("rw-p", "/bin/a"), ("r-xp", "/bin/b"), ("r-xp", "[vdso]")] {
            assert_eq!(code_at(&line(kind, path), "/bin/a"), None, "{kind} {path}");
        }
    }
}
