// SPDX-License-Identifier: GPL-2.0-only
//! The contexts that the BPF side has, and where they stand there.

use super::entry::{Context, Contexts};
use super::file::{Error, DEFAULT_FILE};
use crate::foreign;
use crate::intf;
use crate::knobs::Tunables;
use crate::mode::Mode;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const BANK_RULES: usize = intf::fl_consts_FL_MAX_CONTEXTS as usize;
const BANK_POLICIES: usize = intf::fl_consts_FL_MAX_POLICIES as usize / 2;

/// A file's contexts, in one of the two banks of the BPF side. New ones go to the other,
/// so that decisions under way have whole ones.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    /// None: the default one, if it is there.
    named: Option<PathBuf>,
    contexts: Contexts,
    bank: usize,
    changes: u32,
    /// Modes that are tried, or were found better than the given one, by the number of
    /// the context; 0 for tasks in none.
    chosen: BTreeMap<u32, Mode>,
}

impl InForce {
    /// Reads the file of this name, or the default one.
    pub fn start(named: Option<&Path>) -> Result<Self, Error> {
        let mut new = Self {
            named: named.map(Into::into),
            ..Self::default()
        };
        new.contexts = new.read()?;
        Ok(new)
    }

    /// Reads the file again; after an error all is as before.
    pub fn reload(&mut self) -> Result<(), Error> {
        self.contexts = self.read()?;
        self.bank = 1 - self.bank;
        // Their numbers are those of the contexts before.
        self.chosen.clear();
        self.touch();
        Ok(())
    }

    /// Every task is to look again: values changed that hold for all.
    pub fn touch(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// These modes are in force rather than the given ones. Policies get them where they
    /// stand, which needs no new look at any task.
    pub fn choose(&mut self, chosen: BTreeMap<u32, Mode>) {
        self.chosen = chosen;
    }

    /// The mode that is in force rather than the given one, if it is another one.
    pub fn chosen(&self, number: u32) -> Option<Mode> {
        self.chosen.get(&number).copied()
    }

    fn read(&self) -> Result<Contexts, Error> {
        match Contexts::load(self.path()) {
            Err(Error::Read { source, .. })
                if self.named.is_none() && source.kind() == ErrorKind::NotFound =>
            {
                Ok(Contexts::default())
            }
            contexts => contexts,
        }
    }

    /// The file that contexts are read from; the default one may be missing.
    pub fn path(&self) -> &Path {
        self.named.as_deref().unwrap_or(DEFAULT_FILE.as_ref())
    }

    /// How many contexts there are.
    pub fn len(&self) -> usize {
        self.contexts.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.contexts.0.is_empty()
    }

    /// A context by its number, from 1.
    pub fn get(&self, number: u32) -> Option<&Context> {
        self.contexts.0.get((number as usize).checked_sub(1)?)
    }

    /// The number of the context of this name.
    pub fn number_of(&self, name: &str) -> Option<u32> {
        let named = |context: &Context| context.name.as_ref().is_some_and(|n| n.raw() == name);
        let place = self.contexts.0.iter().position(named)?;
        Some(place as u32 + 1)
    }

    /// The word that says to the BPF side what is in force (bpf/policy/context.h).
    pub fn version(&self) -> u32 {
        let nr = self.len() as u32; // at most FL_MAX_CONTEXTS
        self.changes << intf::fl_consts_FL_VERSION_CHANGES
            | nr << intf::fl_consts_FL_VERSION_NR
            | self.bank as u32
    }

    /// Every rule, with its place on the BPF side.
    pub fn rules(&self) -> impl Iterator<Item = (usize, intf::fl_rule)> + '_ {
        let first = self.bank * BANK_RULES;
        let rules = self.contexts.0.iter().map(|context| context.rule.encode());
        (first..).zip(rules)
    }

    /// Every policy, that of tasks in no context first, with its place on the BPF side.
    pub fn policies(&self, base: Tunables) -> impl Iterator<Item = (usize, Tunables)> + '_ {
        let numbers = 0..=self.len() as u32; // at most FL_MAX_CONTEXTS
        numbers.map(move |number| (self.policy_at(number), self.policy(number, &base)))
    }

    /// All knobs as the tasks of this context have them, 0 for those in none.
    pub fn policy(&self, number: u32, base: &Tunables) -> Tunables {
        let mut policy = self.get(number).map_or(*base, |context| context.over(base));
        if let Some(mode) = self.chosen(number) {
            policy.mode = mode as u64;
        }
        policy
    }

    /// Where the policy of the context of this number stands; 0 is none.
    pub fn policy_at(&self, number: u32) -> usize {
        self.bank * BANK_POLICIES + number as usize
    }
}

/// One line, for the log and for the client.
impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.named, self.len()) {
            (None, 0) => write!(f, "contexts: none, by {DEFAULT_FILE}"),
            (_, nr) => write!(f, "contexts: {nr}, by {}", foreign::path(self.path())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[[context]]\nmatch = { command = \"a\" }\nmode = \"nest\"\n";

    #[test]
    fn a_bad_file_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("contexts.toml");
        std::fs::write(&path, ONE).unwrap();
        let mut in_force = InForce::start(Some(&path)).unwrap();
        let before = (in_force.version(), in_force.contexts.clone());
        for bad in ["[[context]]\n", "[[context", "\u{0}"] {
            std::fs::write(&path, bad).unwrap();
            in_force.reload().unwrap_err();
            assert_eq!((in_force.version(), in_force.contexts.clone()), before);
        }
        std::fs::remove_file(&path).unwrap();
        in_force.reload().unwrap_err();
        assert_eq!((in_force.version(), in_force.contexts.clone()), before);
    }

    #[test]
    fn new_contexts_go_to_the_other_bank() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("contexts.toml");
        std::fs::write(&path, ONE).unwrap();
        let mut in_force = InForce::start(Some(&path)).unwrap();
        let base = Tunables::new(Mode::Off);
        let mut versions = Vec::new();
        for bank in [0, 1, 0] {
            let policies: Vec<_> = in_force.policies(base).collect();
            assert_eq!(policies[0], (bank * BANK_POLICIES, base));
            assert_eq!(policies[1].0, in_force.policy_at(1));
            assert_eq!(policies[1].1, Tunables::new(Mode::Nest));
            let places: Vec<_> = in_force.rules().map(|(at, _)| at).collect();
            assert_eq!(places, [bank * BANK_RULES]);
            assert!(!versions.contains(&in_force.version()));
            versions.push(in_force.version());
            in_force.choose(BTreeMap::from([(1, Mode::Auto)]));
            let policies: Vec<_> = in_force.policies(base).collect();
            assert_eq!(policies[0].1, base);
            assert_eq!(policies[1].1, Tunables::new(Mode::Auto));
            in_force.reload().unwrap();
        }
    }
}
