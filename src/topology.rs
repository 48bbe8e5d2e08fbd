// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side knows of the machine: for each CPU its core, last-level
//! cache, node and capacity, and all CPUs in the order of their distance.
//!
//! [`Layout`] is made of plain descriptions, so that tests can build any
//! machine; [`host`] describes the one that this runs on.

use crate::apart::Cpus;
use crate::intf;

/// Full speed and full capacity.
const FULL: usize = intf::fl_consts_FL_FULL_SPEED as usize;
const GROUP_CPUS: usize = intf::fl_consts_FL_GROUP_CPUS as usize;
const MAX_GROUPS: usize = intf::fl_consts_FL_MAX_GROUPS as usize;
/// The most CPU ids that the BPF side has room for.
const MAX_CPUS: usize = intf::fl_consts_FL_MAX_CPUS as usize;
const NR_DISTANCES: usize = intf::fl_distance_FL_NR_DISTANCES as usize;

/// Why there is no layout.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// With what could not be read, and why.
    #[error("the CPU topology cannot be read: {0}; is /sys mounted?")]
    Unreadable(String),
    /// The highest possible CPU id.
    #[error("CPU ids up to {0} are possible here, and scx_freqlock has room for {MAX_CPUS}: boot with nr_cpus={MAX_CPUS}")]
    TooMany(usize),
    /// Its id; descriptions that contradict each other.
    #[error("CPU {0} is described twice or lies above the highest possible CPU id")]
    BadCpu(usize),
}

/// An online CPU. Ids of cores need to be unique within an LLC only, those of
/// LLCs within a node, and none of them need to be dense.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// As the kernel numbers CPUs.
    pub id: usize,
    /// CPUs of one core share it.
    pub core: usize,
    /// CPUs that share a last-level cache share it.
    pub llc: usize,
    /// CPUs of one NUMA node share it.
    pub node: usize,
    /// In any unit, the same for all CPUs.
    pub capacity: usize,
}

/// The machine as the BPF side sees it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// By CPU id, up to the highest possible one.
    pub cpus: Vec<intf::cpu_topo>,
    /// In which CPUs look for work, each under one last-level cache; or, with more of
    /// those than there is room for, in one node.
    pub groups: Vec<intf::cpu_group>,
    /// True if a core has more than one CPU online.
    pub smt: bool,
}

impl Layout {
    /// `nr_cpus` is the highest possible CPU id plus one; those not in `online`
    /// are marked as not present.
    pub fn new(nr_cpus: usize, online: &[Cpu]) -> Result<Self, Error> {
        if nr_cpus > MAX_CPUS {
            return Err(Error::TooMany(nr_cpus - 1));
        }
        let cores = dense(online.iter().map(|c| (c.node, c.llc, c.core)));
        let llcs = dense(online.iter().map(|c| (c.node, c.llc)));
        let nodes = dense(online.iter().map(|c| c.node));
        let largest = online.iter().map(|c| c.capacity).max().unwrap_or(0);

        let mut cpus = vec![ABSENT; nr_cpus];
        for cpu in online {
            match cpus.get_mut(cpu.id) {
                Some(slot) if slot.present == 0 => {
                    *slot = intf::cpu_topo {
                        core: index(&cores, &(cpu.node, cpu.llc, cpu.core)),
                        llc: index(&llcs, &(cpu.node, cpu.llc)),
                        node: index(&nodes, &cpu.node),
                        capacity: share(cpu.capacity, largest),
                        sibling: -1,
                        present: intf::fl_present_FL_KNOWN,
                        ..ABSENT
                    }
                }
                _ => return Err(Error::BadCpu(cpu.id)),
            }
        }

        let mut layout = Self {
            groups: group(&mut cpus),
            cpus,
            smt: false,
        };
        for cpu in 0..nr_cpus {
            let sibling = layout.at(cpu, intf::fl_distance_FL_SAME_CORE).next();
            if let Some(sibling) = sibling {
                layout.cpus[cpu].sibling = sibling as i32;
                layout.smt = true;
            }
        }
        Ok(layout)
    }

    /// Leaves these CPUs alone: they are in no group, and in the order of none.
    pub fn isolate(&mut self, isolated: &Cpus) {
        for (id, cpu) in self.cpus.iter_mut().enumerate() {
            if cpu.present != 0 && isolated.contains(&id) {
                cpu.present = intf::fl_present_FL_ISOLATED;
                cpu.group = ABSENT.group;
                cpu.place = ABSENT.place;
            }
        }
        self.groups = group(&mut self.cpus);
    }

    /// All CPUs that are not isolated, those nearest to `cpu` first; none if it is not present.
    pub fn order(&self, cpu: usize) -> intf::cpu_order {
        let mut order = intf::cpu_order {
            first: [0; NR_DISTANCES + 1],
            nr: 0,
            cpu: [0; MAX_CPUS],
        };
        for distance in 0..NR_DISTANCES {
            order.first[distance] = order.nr;
            for other in self.at(cpu, distance as u32) {
                if !is_shared(&self.cpus[other]) {
                    continue;
                }
                order.cpu[order.nr as usize] = other as u16;
                order.nr += 1;
            }
        }
        order.first[NR_DISTANCES] = order.nr;
        order
    }

    /// Whether some CPUs are bigger than others.
    pub fn capacity_differs(&self) -> bool {
        self.cpus
            .iter()
            .any(|c| c.present != 0 && c.capacity < FULL as u32)
    }

    /// Ids of the CPUs that are present.
    pub fn present(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.cpus.len()).filter(|&cpu| self.cpus[cpu].present != 0)
    }

    /// Those of them that are not isolated.
    pub fn shared(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.cpus.len()).filter(|&cpu| is_shared(&self.cpus[cpu]))
    }

    /// Whether some are.
    pub fn isolates(&self) -> bool {
        self.shared().count() < self.present().count()
    }

    /// How far apart two CPUs are, of `enum fl_distance`.
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        let (here, there) = (&self.cpus[a], &self.cpus[b]);
        if a == b {
            intf::fl_distance_FL_SAME_CPU
        } else if there.core == here.core {
            intf::fl_distance_FL_SAME_CORE
        } else if there.llc == here.llc {
            intf::fl_distance_FL_SAME_LLC
        } else if there.node == here.node {
            intf::fl_distance_FL_SAME_NODE
        } else {
            intf::fl_distance_FL_FAR
        }
    }

    /// The CPUs at this distance from `cpu`. They begin after `cpu` and wrap
    /// around, so that neighbours do not all take from the same victim first.
    fn at(&self, cpu: usize, distance: u32) -> impl Iterator<Item = usize> + '_ {
        let nr = self.cpus.len();
        let present = |cpu: usize| self.cpus[cpu].present != 0;
        (0..nr)
            .map(move |step| (cpu + step) % nr)
            .filter(move |&other| {
                present(cpu) && present(other) && self.distance(cpu, other) == distance
            })
    }
}

/// Should it come, then far from all others and as fast as any until it is looked at.
const ABSENT: intf::cpu_topo = intf::cpu_topo {
    core: u32::MAX,
    llc: u32::MAX,
    node: u32::MAX,
    capacity: FULL as u32,
    sibling: -1,
    present: intf::fl_present_FL_ABSENT,
    group: MAX_GROUPS as u32,
    place: 0,
};

/// Present, and not isolated.
fn is_shared(cpu: &intf::cpu_topo) -> bool {
    cpu.present != intf::fl_present_FL_ABSENT && cpu.present != intf::fl_present_FL_ISOLATED
}

/// Puts the CPUs that are not isolated into groups.
fn group(cpus: &mut [intf::cpu_topo]) -> Vec<intf::cpu_group> {
    let by_llc = made_of(cpus, |cpu| (cpu.node, cpu.llc));
    let sets = match by_llc.len() {
        0..=MAX_GROUPS => by_llc,
        _ => made_of(cpus, |cpu| (cpu.node, 0)),
    };
    let node_of = |set: &[usize]| cpus[set[0]].node;
    let nodes: Vec<u32> = sets.iter().map(|set| node_of(set)).collect();
    let mut groups = Vec::with_capacity(sets.len());
    for (id, set) in sets.iter().enumerate() {
        let mut group = intf::cpu_group {
            first: nodes.partition_point(|&node| node < nodes[id]) as u16,
            end: nodes.partition_point(|&node| node <= nodes[id]) as u16,
            nr: set.len() as u16,
            cpu: [0; GROUP_CPUS],
        };
        for (place, &cpu) in set.iter().enumerate() {
            group.cpu[place] = cpu as u16;
            cpus[cpu].group = id as u32;
            cpus[cpu].place = place as u32;
        }
        groups.push(group);
    }
    groups
}

/// The CPUs of each key, in the order of keys, in parts of a group's size.
fn made_of(
    cpus: &[intf::cpu_topo],
    key: impl Fn(&intf::cpu_topo) -> (u32, u32),
) -> Vec<Vec<usize>> {
    let mut present: Vec<usize> = (0..cpus.len())
        .filter(|&cpu| is_shared(&cpus[cpu]))
        .collect();
    present.sort_by_key(|&cpu| key(&cpus[cpu]));
    present
        .chunk_by(|&a, &b| key(&cpus[a]) == key(&cpus[b]))
        .flat_map(|set| set.chunks(GROUP_CPUS).map(<[usize]>::to_vec))
        .collect()
}

/// The bytes of an order as a BPF map holds it.
pub fn order_bytes(order: &intf::cpu_order) -> Vec<u8> {
    order
        .first
        .iter()
        .chain([&order.nr])
        .flat_map(|word| word.to_ne_bytes())
        .chain(order.cpu.iter().flat_map(|cpu| cpu.to_ne_bytes()))
        .collect()
}

/// The machine that this runs on, as far as it is online.
pub fn host() -> Result<Layout, Error> {
    let unreadable = |e: &dyn std::fmt::Display| Error::Unreadable(e.to_string());
    let path = "/sys/devices/system/cpu/possible";
    let possible = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    let possible = scx_utils::read_cpulist(possible.trim()).map_err(|e| unreadable(&e))?;
    let nr_cpus = possible.last().map_or(0, |last| last + 1);

    let topology = scx_utils::Topology::new().map_err(|e| unreadable(&e))?;
    // The kernel's own capacities where it has them, else the best guess.
    let exact = topology
        .all_cpus
        .values()
        .all(|cpu| cpu.kernel_cpu_capacity.is_some());
    let online: Vec<Cpu> = topology
        .all_cpus
        .values()
        .map(|cpu| Cpu {
            id: cpu.id,
            core: cpu.core_id,
            llc: cpu.llc_id,
            node: cpu.node_id,
            capacity: cpu
                .kernel_cpu_capacity
                .filter(|_| exact)
                .unwrap_or(cpu.cpu_capacity),
        })
        .collect();
    Layout::new(nr_cpus, &online)
}

/// The distinct keys in order: the position of a key is its dense id.
fn dense<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<K> {
    let mut keys: Vec<K> = keys.collect();
    keys.sort();
    keys.dedup();
    keys
}

fn index<K: Ord>(keys: &[K], key: &K) -> u32 {
    keys.partition_point(|k| k < key) as u32
}

/// A capacity in 1..=1024 of the largest; 1024 where none is known.
fn share(capacity: usize, largest: usize) -> u32 {
    (capacity * FULL)
        .checked_div(largest)
        .map_or(FULL, |s| s.max(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of equal CPUs, hardware threads numbered as Linux does on
    /// x86: first one of every core, then the second ones.
    fn machine(nodes: usize, llcs: usize, cores: usize, smt: usize) -> Vec<Cpu> {
        let nr_cores = nodes * llcs * cores;
        (0..nr_cores * smt)
            .map(|id| {
                let core = id % nr_cores;
                Cpu {
                    id,
                    core: core % cores,
                    llc: core / cores % llcs,
                    node: core / cores / llcs,
                    capacity: 777,
                }
            })
            .collect()
    }

    fn layout(online: &[Cpu]) -> Layout {
        let nr = online.iter().map(|c| c.id + 1).max().unwrap_or(0);
        Layout::new(nr, online).unwrap()
    }

    fn nearest(order: &intf::cpu_order, distance: u32) -> &[u16] {
        let d = distance as usize;
        &order.cpu[order.first[d] as usize..order.first[d + 1] as usize]
    }

    #[test]
    fn ids_are_dense_and_global() {
        let layout = layout(&machine(2, 2, 3, 2));
        let max = |f: fn(&intf::cpu_topo) -> u32| layout.cpus.iter().map(f).max();
        assert_eq!(layout.cpus.len(), 24);
        assert_eq!(max(|c| c.core), Some(11));
        assert_eq!(max(|c| c.llc), Some(3));
        assert_eq!(max(|c| c.node), Some(1));
        assert!(layout.cpus.iter().all(|c| c.capacity == 1024));
    }

    #[test]
    fn distances_are_core_llc_node_far() {
        let layout = layout(&machine(2, 2, 2, 2));
        let order = layout.order(5);
        assert_eq!(nearest(&order, intf::fl_distance_FL_SAME_CPU), [5]);
        assert_eq!(nearest(&order, intf::fl_distance_FL_SAME_CORE), [13]);
        assert_eq!(nearest(&order, intf::fl_distance_FL_SAME_LLC), [12, 4]);
        assert_eq!(
            nearest(&order, intf::fl_distance_FL_SAME_NODE),
            [6, 7, 14, 15]
        );
        assert_eq!(
            nearest(&order, intf::fl_distance_FL_FAR),
            [8, 9, 10, 11, 0, 1, 2, 3]
        );
        assert_eq!(order.nr, 16);
    }

    #[test]
    fn every_order_holds_every_cpu_once() {
        for online in [
            machine(1, 1, 4, 1),
            machine(2, 3, 4, 2),
            machine(4, 1, 1, 1),
        ] {
            let layout = layout(&online);
            for cpu in 0..online.len() {
                let order = layout.order(cpu);
                let mut seen = order.cpu[..order.nr as usize].to_vec();
                assert_eq!(seen[0] as usize, cpu);
                seen.sort();
                assert!(seen.iter().map(|&c| c as usize).eq(0..online.len()));
            }
        }
    }

    #[test]
    fn neighbours_begin_with_different_victims() {
        let layout = layout(&machine(1, 1, 8, 1));
        let mut firsts: Vec<u16> = (0..8).map(|cpu| layout.order(cpu).cpu[1]).collect();
        assert_eq!(firsts, [1, 2, 3, 4, 5, 6, 7, 0]);
        firsts.sort();
        firsts.dedup();
        assert_eq!(firsts.len(), 8);
    }

    #[test]
    fn holes_and_offline_cpus_are_absent() {
        let mut online = machine(1, 1, 4, 2);
        online.retain(|c| c.id != 1 && c.id != 4);
        let layout = Layout::new(12, &online).unwrap();
        assert_eq!(layout.cpus.len(), 12);
        assert!(layout.present().eq([0, 2, 3, 5, 6, 7]));
        // 0 and 4 share a core, and so do 1 and 5: their siblings are offline.
        assert_eq!(layout.cpus[0].sibling, -1);
        assert_eq!(layout.cpus[5].sibling, -1);
        assert_eq!(layout.cpus[2].sibling, 6);
        assert!(layout.smt);
        assert_eq!(layout.order(4).nr, 0);
        let order = layout.order(3);
        assert_eq!(order.cpu[..order.nr as usize], [3, 7, 5, 6, 0, 2]);
    }

    #[test]
    fn groups_are_llcs_and_hold_every_cpu_once() {
        let mut online = machine(2, 3, 4, 2);
        online.retain(|c| c.id != 9);
        let layout = layout(&online);
        assert_eq!(layout.groups.len(), 6);
        for cpu in layout.present() {
            let at = &layout.cpus[cpu];
            let group = &layout.groups[at.group as usize];
            assert_eq!(group.cpu[at.place as usize] as usize, cpu);
            for other in layout.present() {
                let other = &layout.cpus[other];
                assert_eq!(other.group == at.group, other.llc == at.llc);
                let near = (group.first as u32..group.end as u32).contains(&other.group);
                assert_eq!(near, other.node == at.node);
            }
        }
        assert_eq!(layout.cpus[9].group, MAX_GROUPS as u32);
    }

    #[test]
    fn large_caches_and_very_many_of_them_fit() {
        let one = layout(&machine(1, 1, 100, 2));
        assert_eq!(one.groups.len(), 4);
        let many = layout(&machine(2, 256, 2, 1));
        assert_eq!(many.groups.len(), 16);
        let ids = |node| {
            let cpus = many.cpus.iter().filter(move |c| c.node == node);
            cpus.map(|c| c.group)
                .collect::<std::collections::BTreeSet<u32>>()
        };
        assert!(ids(0).iter().eq(&Vec::from_iter(0..8)));
        assert!(ids(1).iter().eq(&Vec::from_iter(8..16)));
    }

    #[test]
    fn isolated_cpus_are_in_no_group_and_no_order() {
        let mut layout = layout(&machine(1, 2, 2, 2));
        layout.isolate(&[1, 7, 99].into());
        assert!(layout.present().eq(0..8));
        assert!(layout.shared().eq([0, 2, 3, 4, 5, 6]));
        for cpu in 0..8 {
            let order = layout.order(cpu);
            let mut seen = order.cpu[..order.nr as usize].to_vec();
            seen.sort();
            assert_eq!(seen, [0, 2, 3, 4, 5, 6], "of CPU {cpu}");
        }
        // From where a task leaves such a CPU, its sibling is the nearest.
        assert_eq!(layout.order(7).cpu[0], 3);
        assert_eq!(layout.cpus[7].group, MAX_GROUPS as u32);
        assert_eq!(layout.cpus[3].sibling, 7);
        let in_groups: Vec<&[u16]> = (layout.groups.iter())
            .map(|group| &group.cpu[..group.nr as usize])
            .collect();
        assert_eq!(in_groups, [&[0, 4, 5][..], &[2, 3, 6]]);
    }

    #[test]
    fn siblings_pair_up_only_with_smt() {
        let smt = layout(&machine(1, 2, 2, 2));
        assert!(smt.smt);
        let siblings: Vec<i32> = smt.cpus.iter().map(|c| c.sibling).collect();
        assert_eq!(siblings, [4, 5, 6, 7, 0, 1, 2, 3]);
        let plain = layout(&machine(2, 1, 4, 1));
        assert!(!plain.smt);
        assert!(plain.cpus.iter().all(|c| c.sibling == -1));
    }

    #[test]
    fn capacity_is_a_share_of_the_largest() {
        let mut online = machine(1, 1, 4, 1);
        for (cpu, capacity) in online.iter_mut().zip([446, 446, 871, 0]) {
            cpu.capacity = capacity;
        }
        let capacities: Vec<u32> = layout(&online).cpus.iter().map(|c| c.capacity).collect();
        assert_eq!(capacities, [524, 524, 1024, 1]);
        for cpu in &mut online {
            cpu.capacity = 0;
        }
        assert!(layout(&online).cpus.iter().all(|c| c.capacity == 1024));
    }

    #[test]
    fn impossible_descriptions_are_refused() {
        let twice = [machine(1, 1, 2, 1), machine(1, 1, 2, 1)].concat();
        assert!(matches!(Layout::new(4, &twice), Err(Error::BadCpu(0))));
        assert!(matches!(
            Layout::new(1, &machine(1, 1, 2, 1)),
            Err(Error::BadCpu(1))
        ));
        assert!(matches!(Layout::new(1025, &[]), Err(Error::TooMany(1024))));
    }

    #[test]
    fn bytes_have_the_layout_of_the_struct() {
        let order = layout(&machine(1, 1, 4, 1)).order(2);
        let bytes = order_bytes(&order);
        assert_eq!(bytes.len(), std::mem::size_of::<intf::cpu_order>());
        let at = std::mem::offset_of!(intf::cpu_order, cpu);
        assert_eq!(bytes[at..at + 2], 2u16.to_ne_bytes());
        let at = std::mem::offset_of!(intf::cpu_order, nr);
        assert_eq!(bytes[at..at + 4], 4u32.to_ne_bytes());
    }
}
