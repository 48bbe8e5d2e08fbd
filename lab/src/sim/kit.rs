// SPDX-License-Identifier: GPL-2.0-only
//! What a simulated machine is made of beside its description: QEMU, the
//! plugin, a kernel, and the contents of the image. scripts/machine puts it
//! together and lists it in a file, the kit.

use std::path::{Path, PathBuf};

use freqlock::lab_args::Arch;
use serde::Deserialize;

use super::image::{self, Tree};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no kit for {arch} at {}: run scripts/machine prepare --arch {arch}{}, or name it with --kit", path.display(), also(path))]
    Missing { arch: &'static str, path: PathBuf },
    #[error("cannot read the kit {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the kit {} is not what it should be (run scripts/machine prepare): {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    #[error("{what} is missing: the kit {} has {}; run scripts/machine prepare", kit.display(), path.display())]
    Gone {
        what: &'static str,
        kit: PathBuf,
        path: PathBuf,
    },
}

/// What a kit with another kernel than the usual one is made with.
fn also(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix("kit-")
        .map_or_else(String::new, |kernel| format!(" --also {kernel}"))
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Kit {
    #[serde(skip)]
    path: PathBuf,
    pub arch: Arch,
    pub qemu: PathBuf,
    pub qemu_version: String,
    pub plugin: PathBuf,
    pub kernel: PathBuf,
    pub kernel_version: String,
    /// What is in the image; later ones replace earlier ones.
    pub content: Vec<Content>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// A file or a folder of the host
    pub from: PathBuf,
    /// and its place in the guest.
    pub to: String,
}

impl Kit {
    pub fn load(path: &Path, arch: Arch) -> Result<Self, Error> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing {
                    arch: arch.name(),
                    path: path.into(),
                })
            }
            text => text.map_err(|source| Error::Read {
                path: path.into(),
                source,
            })?,
        };
        let wrong = |reason: String| Error::Wrong {
            path: path.into(),
            reason,
        };
        let mut kit: Self = toml::from_str(&text).map_err(|error| wrong(error.message().into()))?;
        if kit.arch != arch {
            return Err(wrong(format!("it is for {}", kit.arch.name())));
        }
        kit.path = path.into();
        for (what, file) in [
            ("QEMU", &kit.qemu),
            ("the plugin", &kit.plugin),
            ("the kernel", &kit.kernel),
        ] {
            if !file.is_file() {
                return Err(Error::Gone {
                    what,
                    kit: path.into(),
                    path: file.clone(),
                });
            }
        }
        Ok(kit)
    }

    pub fn tree(&self) -> Result<Tree, image::Error> {
        let mut tree = Tree::default();
        for content in &self.content {
            tree.add(&content.from, &content.to)?;
        }
        Ok(tree)
    }

    /// The folder for images, beside the kit.
    pub fn images(&self) -> PathBuf {
        self.path.with_file_name("images")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kit(dir: &Path, text: &str) -> Result<Kit, Error> {
        let path = dir.join("kit.toml");
        for name in ["qemu", "plugin.so", "vmlinuz", "init"] {
            std::fs::write(dir.join(name), name).unwrap();
        }
        let here = dir.to_str().unwrap();
        std::fs::write(&path, text.replace("HERE", here)).unwrap();
        Kit::load(&path, Arch::X86_64)
    }

    const WHOLE: &str = r#"
arch = "x86_64"
qemu = "HERE/qemu"
qemu_version = "10.0.13"
plugin = "HERE/plugin.so"
kernel = "HERE/vmlinuz"
kernel_version = "7.2.0"

[[content]]
from = "HERE/init"
to = "/init"
"#;

    #[test]
    fn a_kit_names_what_an_image_holds() {
        let dir = tempfile::tempdir().unwrap();
        let kit = kit(dir.path(), WHOLE).unwrap();
        let mut expected = Tree::default();
        expected.put_file("init", false, b"init".to_vec());
        assert_eq!(kit.tree().unwrap(), expected);
        assert_eq!(kit.images(), dir.path().join("images"));
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let message = |text: &str| kit(dir.path(), text).unwrap_err().to_string();
        for (from, to, hint) in [
            ("HERE/qemu", "HERE/none", "QEMU is missing"),
            ("HERE/plugin.so", "HERE/none", "the plugin is missing"),
            ("HERE/vmlinuz", "HERE/none", "the kernel is missing"),
            ("kernel_version", "version", "scripts/machine prepare"),
            ("\"x86_64\"", "\"riscv\"", "riscv"),
        ] {
            let message = message(&WHOLE.replace(from, to));
            assert!(message.contains(hint), "{message}");
        }
        for (name, hint) in [
            ("x.toml", "prepare --arch x86_64, or"),
            ("kit-newest.toml", "prepare --arch x86_64 --also newest, or"),
        ] {
            let error = Kit::load(&dir.path().join(name), Arch::X86_64).unwrap_err();
            assert!(error.to_string().contains(hint), "{error}");
        }
    }
}
