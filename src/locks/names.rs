// SPDX-License-Identifier: GPL-2.0-only
//! Names for what a profile has as numbers: modules and functions of processes
//! (as long as they live), and symbols of the kernel.
//!
//! Where in a program a lock was waited for is looked for among the words on top
//! of the stack, since libraries have no frame pointers to follow: the first that
//! is a return address, with a call before it, outside of what implements locks.
//!
//! Any user whose tasks wait for locks makes the processes and files that are looked at here, so
//! nothing is opened or read that could make this wait for him: no file by a path in his
//! root folder, nothing but plain files that are mapped, and no page that would have to be
//! fetched first, from his own file system for example. Nor is any debugging information of
//! his read: symbols are enough, and do not lead to other files.

use super::LockProfile;
use crate::cgroups::Cgroups;
use crate::foreign::Foreign;
use anyhow::Result;
use blazesym::symbolize::source::{Process as ProcessSource, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use procfs::process::{MMPermissions, MMapPath, Process};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest call instruction of x86-64 that compilers make.
const CALL_BYTES: usize = 7;
/// Larger files are not looked through for symbols: a third of it may be symbols to sort.
const MAX_FILE: u64 = 256 << 20;
/// Of a page, in /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
/// Modules that wait for others: the C library and its loader.
const LIBRARIES: [&str; 5] = ["libc", "libpthread", "ld-linux", "ld-musl", "[vdso]"];
/// The same by how functions begin, for programs that have them linked in.
const WRAPPERS: [&str; 5] = ["pthread_", "__pthread_", "___pthread_", "lll_", "__lll_"];
/// Functions of the kernel that wait for others, by how their names begin.
const WAITERS: [&str; 14] = [
    "bpf_",
    "__bpf",
    "fl_",
    "lock_kernel",
    "get_perf_callchain",
    "__traceiter_",
    "trace_contention",
    "mutex_lock",
    "__mutex_lock",
    "ww_mutex",
    "__ww_mutex",
    "rwsem_",
    "down_",
    "__down_",
];

/// What is asked for again and again, kept.
#[derive(Default)]
pub struct Names {
    symbolizer: Symbolizer,
    processes: HashMap<u64, Option<Image>>,
    kernel: Option<Kernel>,
    /// Paths of cgroups.
    pub cgroups: Cgroups,
}

/// A process's address space.
struct Image {
    maps: Vec<Mapping>,
    memory: File,
    /// A word for each page.
    pages: File,
    page_size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    begin: u64,
    end: u64,
    code: bool,
    /// Of a file; what follows one without a name is its .bss.
    module: Option<String>,
}

impl Names {
    /// module+offset of a futex, symbol of a lock of the kernel, or the address.
    pub fn lock(&mut self, lock: &LockProfile) -> Foreign {
        let name = if lock.is_kernel() {
            let kernel = self.kernel();
            kernel.symbol(lock.addr, |kind| !is_code(kind))
        } else {
            self.process(lock.tgid)
                .and_then(|image| module_offset(&image.maps, lock.addr))
        };
        name.unwrap_or_else(|| format!("{:#x}", lock.addr)).into()
    }

    /// The function that waited, of the first waiter; none where it is unknown.
    pub fn function(&mut self, lock: &LockProfile) -> Option<Foreign> {
        if lock.is_kernel() {
            let kernel = self.kernel();
            return (lock.stack.iter().filter(|addr| **addr != 0))
                .filter_map(|addr| kernel.symbol(*addr, is_code))
                .find(|name| !begins_with(name, &WAITERS))
                .map(Foreign::from);
        }
        let callers = self.process(lock.tgid)?.callers(&lock.stack);
        (callers.into_iter())
            .filter_map(|addr| self.symbol(lock.tgid, addr))
            .find(|name| !begins_with(name, &WRAPPERS))
            .map(Foreign::from)
    }

    /// The function to which a call returns, or the module where that has no name.
    fn symbol(&mut self, tgid: u64, returns_to: u64) -> Option<String> {
        let image = self.process(tgid)?;
        let fallback = module_offset(&image.maps, returns_to);
        let map = image.maps.iter().find(|map| map.has(returns_to))?;
        let file = format!("/proc/{tgid}/map_files/{:x}-{:x}", map.begin, map.end);
        if !is_readable(Path::new(&file)) {
            return fallback;
        }
        // The call before it is what was meant.
        let call = Input::AbsAddr(returns_to - 1);
        let source = Source::Process(source(tgid as u32));
        match self.symbolizer.symbolize_single(&source, call) {
            Ok(Symbolized::Sym(symbol)) => Some(symbol.name.into_owned()),
            _ => fallback,
        }
    }

    /// Processes come and go, and map new modules; the rest stays as it is.
    pub fn forget_processes(&mut self) {
        self.processes.clear();
    }

    fn kernel(&mut self) -> &Kernel {
        self.kernel.get_or_insert_with(|| {
            Kernel::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
        })
    }

    fn process(&mut self, tgid: u64) -> Option<&Image> {
        self.processes
            .entry(tgid)
            .or_insert_with(|| Image::of(tgid).ok())
            .as_ref()
    }
}

impl Image {
    fn of(tgid: u64) -> Result<Self> {
        let process = Process::new(tgid.try_into()?)?;
        let maps = process.maps()?.into_iter().map(|map| Mapping {
            begin: map.address.0,
            end: map.address.1,
            code: map.perms.contains(MMPermissions::EXECUTE),
            module: match map.pathname {
                MMapPath::Path(path) => Some(file_name(&path)),
                MMapPath::Heap => Some("[heap]".into()),
                MMapPath::Stack => Some("[stack]".into()),
                MMapPath::Vdso => Some("[vdso]".into()),
                _ => None,
            },
        });
        Ok(Self {
            maps: maps.collect(),
            memory: process.mem()?,
            pages: File::open(format!("/proc/{tgid}/pagemap"))?,
            page_size: procfs::page_size(),
        })
    }

    /// The return addresses among the words of a stack that are not a library's.
    fn callers(&self, stack: &[u64]) -> Vec<u64> {
        let words = stack.iter().map(|word| without_signature(*word));
        words.filter(|&word| self.is_callers(word)).collect()
    }

    fn is_callers(&self, word: u64) -> bool {
        let map = self.maps.iter().find(|map| map.has(word));
        map.is_some_and(|m| m.code && !m.is_library()) && self.follows_call(word)
    }

    fn follows_call(&self, addr: u64) -> bool {
        let mut before = [0; CALL_BYTES];
        let from = addr.saturating_sub(CALL_BYTES as u64);
        self.is_present(from)
            && self.is_present(addr - 1)
            && self.memory.read_exact_at(&mut before, from).is_ok()
            && ends_with_call(before)
    }

    /// Whether it is there without a page fault. A call that was just made is, as a rule.
    fn is_present(&self, addr: u64) -> bool {
        let mut page = [0; size_of::<u64>()];
        let at = addr / self.page_size * page.len() as u64;
        let read = self.pages.read_exact_at(&mut page, at);
        read.is_ok() && u64::from_ne_bytes(page) & PRESENT != 0
    }
}

/// A plain file, and no huge one. Symbolic links lead to what is mapped.
fn is_readable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|file| file.is_file() && file.len() <= MAX_FILE)
}

/// A process, of which no more is read than the symbols of what it has mapped.
fn source(pid: u32) -> ProcessSource {
    let mut source = ProcessSource::new(pid.into());
    source.debug_syms = false;
    source.perf_map = false;
    source
}

impl Mapping {
    fn has(&self, addr: u64) -> bool {
        (self.begin..self.end).contains(&addr)
    }

    fn is_library(&self) -> bool {
        (self.module.as_ref()).is_some_and(|name| begins_with(name, &LIBRARIES))
    }
}

fn begins_with(name: &str, any: &[&str]) -> bool {
    any.iter().any(|prefix| name.starts_with(prefix))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The file in which an address is, and how far from where the file begins: in
/// its .bss too, which has no file and follows right after.
fn module_offset(maps: &[Mapping], addr: u64) -> Option<String> {
    let at = maps.iter().position(|map| map.has(addr))?;
    let module = maps[at].module.as_ref().or_else(|| {
        let before = maps[..at].last()?;
        (before.end == maps[at].begin)
            .then_some(before.module.as_ref())
            .flatten()
    })?;
    let first = maps.iter().find(|m| m.module.as_ref() == Some(module))?;
    Some(format!("{module}+{:#x}", addr - first.begin))
}

/// Return addresses may be signed in bits that no address has (arm64, PAC).
fn without_signature(word: u64) -> u64 {
    if cfg!(target_arch = "aarch64") {
        word & ((1 << 48) - 1)
    } else {
        word
    }
}

/// True if a call instruction may end these bytes.
#[cfg(target_arch = "aarch64")]
fn ends_with_call(bytes: [u8; CALL_BYTES]) -> bool {
    let insn = u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
    // BL, and BLR of any register.
    insn & 0xfc00_0000 == 0x9400_0000 || insn & 0xffff_fc1f == 0xd63f_0000
}

/// True if a call instruction may end these bytes: E8 with four bytes of distance, or
/// FF /2, whose length depends on its second byte (Intel's manual, volume 2, CALL).
#[cfg(target_arch = "x86_64")]
fn ends_with_call(bytes: [u8; CALL_BYTES]) -> bool {
    let from_end = |n: usize| bytes[CALL_BYTES - n];
    from_end(5) == 0xe8
        || (2..=CALL_BYTES).any(|n| {
            let modrm = from_end(n - 1);
            from_end(n) == 0xff && modrm >> 3 & 7 == 2 && indirect_length(modrm) == n
        })
}

/// Bytes of opcode, ModRM, SIB and displacement.
#[cfg(target_arch = "x86_64")]
fn indirect_length(modrm: u8) -> usize {
    let (mode, register) = (modrm >> 6, modrm & 7);
    let sib = usize::from(mode != 3 && register == 4);
    let displacement = match (mode, register) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    2 + sib + displacement
}

/// The kernel's symbols by address.
struct Kernel(Vec<(u64, char, String)>);

fn is_code(kind: char) -> bool {
    matches!(kind.to_ascii_lowercase(), 't' | 'w')
}

impl Kernel {
    /// From the text of /proc/kallsyms; without the right to see addresses it has zeroes.
    fn parse(text: &str) -> Self {
        let mut symbols: Vec<(u64, char, String)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let addr = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next()?.chars().next()?;
                (addr != 0).then_some((addr, kind, words.next()?.to_string()))
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.0);
        Self(symbols)
    }

    /// The symbol at or before an address and how far, if it is of the kind wanted;
    /// none beyond the last one, where memory begins that has no symbols.
    fn symbol(&self, addr: u64, wanted: impl Fn(char) -> bool) -> Option<String> {
        let after = self.0.partition_point(|symbol| symbol.0 <= addr);
        let (begin, kind, name) = self.0.get(after.checked_sub(1)?)?;
        let (end, ..) = self.0.get(after)?;
        /// No lock and no function is that long: the gap between two regions is.
        const FAR: u64 = 1 << 20;
        if !wanted(*kind) || end - begin > FAR {
            return None;
        }
        Some(match addr - begin {
            0 => name.clone(),
            _ if is_code(*kind) => name.clone(),
            offset => format!("{name}+{offset:#x}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(begin: u64, end: u64, module: Option<&str>) -> Mapping {
        Mapping {
            begin,
            end,
            code: false,
            module: module.map(Into::into),
        }
    }

    #[test]
    fn an_address_is_reported_by_module_and_offset() {
        let maps = [
            mapping(0x1000, 0x2000, Some("prog")),
            mapping(0x2000, 0x3000, Some("prog")),
            mapping(0x3000, 0x4000, None),
            mapping(0x5000, 0x6000, None),
        ];
        let of = |addr| module_offset(&maps, addr);
        assert_eq!(of(0x1010).as_deref(), Some("prog+0x10"));
        assert_eq!(of(0x2010).as_deref(), Some("prog+0x1010"));
        assert_eq!(of(0x3040).as_deref(), Some("prog+0x2040"), ".bss");
        assert_eq!(of(0x5000), None, "memory of nobody");
        assert_eq!(of(0x4000), None);
    }

    #[test]
    fn symbols_of_the_kernel_are_reported_with_their_kind() {
        let kernel = Kernel::parse(
            "ffffffff81000000 T start\nffffffff81000100 t work\n\
             ffffffff82000000 d cgroup_mutex\nffffffff82000040 D next\n\
             0000000000000000 A hidden\nffffffffc0000000 t other [module]\nrubbish\n",
        );
        let data = |addr| kernel.symbol(addr, |kind| !is_code(kind));
        assert_eq!(data(0xffff_ffff_8200_0000).as_deref(), Some("cgroup_mutex"));
        assert_eq!(
            data(0xffff_ffff_8200_0020).as_deref(),
            Some("cgroup_mutex+0x20")
        );
        assert_eq!(data(0xffff_ffff_8100_0010), None, "code is no lock");
        assert_eq!(data(0xffff_ffff_8200_0050), None, "after it is a gap");
        assert_eq!(data(0xffff_8880_0000_0000), None, "the heap");
        assert_eq!(
            kernel.symbol(0xffff_ffff_8100_0010, is_code).as_deref(),
            Some("start")
        );
        assert_eq!(data(u64::MAX), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_are_distinguished_from_other_instructions() {
        for call in [
            [0, 0, 0xe8, 1, 2, 3, 4],
            [0, 0, 0, 0, 0, 0xff, 0xd0],
            [0, 0, 0, 0, 0x41, 0xff, 0xd4],
            [0, 0, 0, 0, 0xff, 0x50, 0x18],
            [0, 0, 0, 0xff, 0x54, 0x24, 0x08],
            [0, 0xff, 0x15, 1, 2, 3, 4],
            [0xff, 0x94, 0x24, 1, 2, 3, 4],
        ] {
            assert!(ends_with_call(call), "{call:x?}");
        }
        for other in [
            [0; 7],
            [0xe8, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0xff, 0xe0], // jmp *%rax
            [0, 0, 0, 0, 0xff, 0xd0, 0x90],
        ] {
            assert!(!ends_with_call(other), "{other:x?}");
        }
    }

    /// What is mapped is the process's to choose: here a file that nobody has read yet, and
    /// a map for perf that is a pipe without a writer, from which reading would never end.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn nothing_is_read_that_one_could_wait_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("code");
        // call *%rax, again and again; no ELF, so that there is no symbol.
        std::fs::write(&path, [0xff, 0xd0].repeat(1 << 20)).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        // SAFETY: nobody else has the file.
        let map = unsafe { memmap2::MmapOptions::new().map_exec(&file) }.unwrap();
        let at = map.as_ptr() as u64 + (1 << 20) + 16;
        let tgid = std::process::id();
        let image = Image::of(tgid.into()).unwrap();
        assert!(!image.follows_call(at), "a page that is not there");
        std::hint::black_box(map[1 << 20]);
        assert!(image.follows_call(at));

        let perf = std::env::temp_dir().join(format!("perf-{tgid}.map"));
        nix::unistd::mkfifo(&perf, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Nobody's file.
        let own = memmap2::MmapMut::map_anon(4096)
            .unwrap()
            .make_exec()
            .unwrap();
        for addr in [at, own.as_ptr() as u64 + 8] {
            let (to, from) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(move || to.send(Names::default().symbol(tgid.into(), addr)));
                let named = from.recv_timeout(std::time::Duration::from_secs(10));
                // Lets it go on if it waits there.
                let stuck = std::fs::OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(&perf);
                drop(stuck);
                assert!(named.is_ok(), "it waits for a writer");
            });
        }
        std::fs::remove_file(&perf).unwrap();
    }

    #[test]
    fn only_plain_files_are_looked_through() {
        let dir = tempfile::tempdir().unwrap();
        let (large, link) = (dir.path().join("large"), dir.path().join("link"));
        File::create(&large).unwrap().set_len(MAX_FILE).unwrap();
        std::os::unix::fs::symlink(&large, &link).unwrap();
        assert!(is_readable(&large) && is_readable(&link));
        File::create(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
        for not in [
            &large,
            &link,
            Path::new("/dev/zero"),
            dir.path(),
            Path::new("/nowhere"),
        ] {
            assert!(!is_readable(not), "{}", not.display());
        }
    }

    /// Of this very process: the words on the stack below a call lead to the caller.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_caller_is_found_on_the_stack_and_named() {
        #[inline(never)]
        fn who_waits(names: &mut Names) -> Option<String> {
            let result = waits_for_it(names);
            // Something to do after the call, so that it is one and no jump.
            std::hint::black_box(result)
        }
        #[inline(never)]
        fn waits_for_it(names: &mut Names) -> Option<String> {
            let top: *const u64;
            // SAFETY: reads the stack pointer, and touches nothing else.
            unsafe { std::arch::asm!("mov {}, rsp", out(reg) top) };
            // SAFETY: the thread's own stack, on which the harness has more than 1 KiB.
            let word = |i| unsafe { std::ptr::read_volatile(top.add(i)) };
            let stack: Vec<u64> = (0..128).map(word).collect();
            let tgid = std::process::id().into();
            let image = names.process(tgid)?;
            let callers = image.callers(&stack);
            assert!(image.callers(&[0, 1, u64::MAX, top as u64]).is_empty());
            let mut found = callers.iter().filter_map(|addr| names.symbol(tgid, *addr));
            found.find(|name| name.contains("who_waits"))
        }
        assert!(who_waits(&mut Names::default()).is_some());
    }
}
