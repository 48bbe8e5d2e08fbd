// SPDX-License-Identifier: GPL-2.0-only
//! The initramfs of a simulated machine: all files are in it, because a disk
//! would work in the host's time. The same contents give the same bytes,
//! whoever owns the files and whenever they were made; images are kept by the
//! digest of these bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cpio::newc;
use sha2::{Digest, Sha256};

/// A task's first pages are the same whatever its command, up to this length.
const SCRIPT_UNIT: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is neither a file, a folder nor a link: it cannot be in an image", .0.display())]
    Kind(PathBuf),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File { executable: bool, data: Vec<u8> },
    Link(Vec<u8>),
}

/// The files of an image by their path, without a slash at the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// Adds a file, or a folder with all that is in it. What was added before
    /// at the same place is replaced.
    pub fn add(&mut self, from: &Path, to: &str) -> Result<(), Error> {
        let unreadable = |source| Error::Read {
            path: from.into(),
            source,
        };
        let kind = fs::symlink_metadata(from).map_err(unreadable)?;
        let to = to.trim_matches('/');
        if kind.is_dir() {
            if !to.is_empty() {
                self.put(to, Entry::Folder);
            }
            for entry in from.read_dir().map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                self.add(&entry.path(), &format!("{to}/{}", name.to_string_lossy()))?;
            }
        } else if kind.is_symlink() {
            let target = fs::read_link(from).map_err(unreadable)?;
            self.put(to, Entry::Link(target.as_os_str().as_bytes().to_vec()));
        } else if kind.is_file() {
            self.put_file(
                to,
                kind.permissions().mode() & 0o111 != 0,
                fs::read(from).map_err(unreadable)?,
            );
        } else {
            return Err(Error::Kind(from.into()));
        }
        Ok(())
    }

    pub fn put_file(&mut self, to: &str, executable: bool, data: Vec<u8>) {
        self.put(to, Entry::File { executable, data });
    }

    fn put(&mut self, to: &str, entry: Entry) {
        // Every folder on the way, unless it is there (or is a link to one).
        for (slash, _) in to.match_indices('/') {
            self.entries
                .entry(to[..slash].to_string())
                .or_insert(Entry::Folder);
        }
        if entry != Entry::Folder || !self.entries.contains_key(to) {
            self.entries.insert(to.to_string(), entry);
        }
    }

    /// Can the guest run `command`, as its shell would find it?
    pub fn has_command(&self, command: &str, folder: &str, path: &[&str]) -> bool {
        let candidates = if command.starts_with('/') {
            vec![command.to_string()]
        } else if command.contains('/') {
            vec![format!("{folder}/{command}")]
        } else {
            path.iter().map(|dir| format!("{dir}/{command}")).collect()
        };
        candidates.iter().any(|file| self.is_executable(file, 16))
    }

    /// `links` bounds how many links are followed.
    fn is_executable(&self, file: &str, links: u32) -> bool {
        let mut done = String::new();
        let parts: Vec<&str> = file.split('/').filter(|part| !part.is_empty()).collect();
        for (i, part) in parts.iter().enumerate() {
            match *part {
                "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                _ if done.is_empty() => done.push_str(part),
                _ => {
                    done.push('/');
                    done.push_str(part);
                }
            }
            match self.entries.get(&done) {
                Some(Entry::Folder) => {}
                Some(Entry::File { executable, .. }) => {
                    return *executable && i + 1 == parts.len();
                }
                Some(Entry::Link(target)) if links > 0 => {
                    let target = String::from_utf8_lossy(target);
                    let base = if target.starts_with('/') {
                        ""
                    } else {
                        &done[..done.rfind('/').unwrap_or(0)]
                    };
                    let rest = parts[i + 1..].join("/");
                    return self.is_executable(&format!("{base}/{target}/{rest}"), links - 1);
                }
                _ => return false,
            }
        }
        false
    }

    /// The archive. Owners, times and inode numbers are not the host's.
    pub fn archive(&self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for (number, (path, entry)) in (1..).zip(&self.entries) {
            let (mode, data): (u32, &[u8]) = match entry {
                Entry::Folder => (0o040_755, &[]),
                Entry::File {
                    executable: true,
                    data,
                } => (0o100_755, data),
                Entry::File { data, .. } => (0o100_644, data),
                Entry::Link(target) => (0o120_777, target),
            };
            let size = u32::try_from(data.len()).map_err(|_| {
                io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} is too large"))
            })?;
            let mut writer = newc::Builder::new(path)
                .ino(number)
                .mode(mode)
                .nlink(if *entry == Entry::Folder { 2 } else { 1 })
                .write(&mut out, size);
            writer.write_all(data)?;
            writer.finish()?;
        }
        newc::trailer(&mut out)?;
        // What is appended has to begin at a multiple of four.
        out.resize(out.len().next_multiple_of(512), 0);
        Ok(out)
    }
}

/// An archive with the script that says what to run. Its length is that of any
/// other one, so that a boot does not depend on it.
pub fn script_archive(path: &str, script: &str) -> io::Result<Vec<u8>> {
    let mut data = script.as_bytes().to_vec();
    data.resize(data.len().next_multiple_of(SCRIPT_UNIT), b'\n');
    let mut tree = Tree::default();
    tree.put_file(path, false, data);
    tree.archive()
}

pub fn digest(archive: &[u8]) -> String {
    Sha256::digest(archive)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The image's file in `dir`, written if it is not there.
pub fn keep(dir: &Path, archive: &[u8], digest: &str) -> Result<PathBuf, Error> {
    let path = dir.join(format!("{digest}.cpio"));
    let unwritable = |source| Error::Write {
        path: path.clone(),
        source,
    };
    if path
        .metadata()
        .is_ok_and(|data| data.len() == archive.len() as u64)
    {
        return Ok(path);
    }
    fs::create_dir_all(dir).map_err(unwritable)?;
    // Renamed into place, so that no other run sees half of it.
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(unwritable)?;
    file.write_all(archive).map_err(unwritable)?;
    file.persist(&path)
        .map_err(|error| unwritable(error.error))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The same files, made in one order or the other.
    fn sample(reverse: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        let mut names = vec!["bash", "sed", "data"];
        if reverse {
            names.reverse();
        }
        for name in names {
            let file = root.join("usr/bin").join(name);
            fs::write(&file, name.repeat(700)).unwrap();
            let mode = if name == "data" { 0o600 } else { 0o711 };
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("bash", root.join("usr/bin/sh")).unwrap();
        symlink("../../nothing", root.join("usr/bin/broken")).unwrap();
        dir
    }

    fn tree(dir: &tempfile::TempDir) -> Tree {
        let mut tree = Tree::default();
        tree.add(dir.path(), "/").unwrap();
        tree
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let (one, other) = (sample(false), sample(true));
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::open(other.path().join("usr/bin/bash"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        let archive = tree(&one).archive().unwrap();
        assert_eq!(archive, tree(&other).archive().unwrap());
        // Readers other than us agree; this is what cpio -tv would list.
        let mut rest = archive.as_slice();
        let mut listed = Vec::new();
        loop {
            let reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry().clone();
            if entry.is_trailer() {
                break;
            }
            assert_eq!((entry.mtime(), entry.uid(), entry.gid()), (0, 0, 0));
            listed.push(format!("{:o} {}", entry.mode(), entry.name()));
            rest = reader.finish().unwrap();
        }
        assert_eq!(
            listed,
            [
                "120777 bin",
                "40755 usr",
                "40755 usr/bin",
                "100755 usr/bin/bash",
                "120777 usr/bin/broken",
                "100644 usr/bin/data",
                "100755 usr/bin/sed",
                "120777 usr/bin/sh",
            ]
        );
    }

    #[test]
    fn later_files_replace_earlier_ones_and_folders_are_made() {
        let dir = sample(false);
        let mut tree = tree(&dir);
        tree.add(&dir.path().join("usr/bin/data"), "/usr/bin/sed")
            .unwrap();
        tree.add(&dir.path().join("usr/bin/bash"), "/a/b/c")
            .unwrap();
        assert!(!tree.has_command("sed", "", &["/usr/bin"]));
        assert!(tree.entries.contains_key("a/b"));
        assert!(tree.has_command("/a/b/c", "", &[]));
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let tree = tree(&sample(false));
        let has = |command| tree.has_command(command, "/usr", &["/sbin", "/bin"]);
        for there in ["bash", "sh", "/bin/sh", "bin/sed", "./bin/../bin/sed"] {
            assert!(has(there), "{there}");
        }
        for missing in [
            "gcc",
            "data",
            "broken",
            "/usr/bin",
            "bin/bash/x",
            "/bash",
            "",
        ] {
            assert!(!has(missing), "{missing}");
        }
    }

    #[test]
    fn what_cannot_be_in_an_image_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = Tree::default().add(dir.path(), "/").unwrap_err();
        assert!(matches!(error, Error::Kind(path) if path == pipe));
        let error = Tree::default().add(&dir.path().join("x"), "/").unwrap_err();
        assert!(error.to_string().ends_with("/x"), "{error}");
    }

    #[test]
    fn scripts_of_any_content_take_the_same_room() {
        let short = script_archive("run", "true").unwrap();
        let long = script_archive("run", &"echo a\n".repeat(500)).unwrap();
        assert_eq!(short.len(), long.len());
        assert_eq!(short.len() % 512, 0);
    }

    #[test]
    fn images_are_kept_by_their_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = keep(&dir.path().join("images"), b"abc", &digest(b"abc")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert!(path
            .to_string_lossy()
            .ends_with("/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.cpio"));
        assert_eq!(
            keep(&dir.path().join("images"), b"abc", &digest(b"abc")).unwrap(),
            path
        );
    }
}
