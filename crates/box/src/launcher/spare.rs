//! The control groups of the next box, made while nobody waits for them: Linux takes the longer to
//! make groups the more there are, and most boxes are like the one before.
//!
//! Only where control groups are of version 1, in which a box has groups in several hierarchies, and
//! in which a group can be given the name of its box afterwards.

use glovebox_protocol::limits::Limits;

use super::boxes::BoxKey;
use super::outer::say;
use super::pod::Pod;
use crate::cgroup::group::BoxGroups;
use crate::cgroup::layout::Version;
use crate::create::parent::Design;
use crate::fault::chain;

/// What the groups are called for as long as they are nobody's. No box has such a name, and always
/// the same one lets whoever compares the machine before and after see that nothing was left.
const NEXT: &str = "next";

/// Groups without a box.
#[derive(Debug)]
pub(super) struct SpareGroups {
    /// What they hold a box to.
    limits: Limits,
    groups: BoxGroups,
}

impl Pod {
    /// The groups that were made for the next box, under its name, if it is like the one before.
    pub(super) fn take_spare_groups(&mut self, design: &Design) -> Option<BoxGroups> {
        let is_like = |spare: &mut SpareGroups| spare.limits == design.kind.limits;
        // One that lacks a protection may lack one of these.
        let mut spare = (design.omissions == self.surroundings.omissions)
            .then(|| self.spare_groups.take_if(is_like))
            .flatten()?;
        match spare.groups.rename(&design.name.to_string()) {
            Ok(()) => Some(spare.groups),
            Err(error) => {
                say(format_args!("control groups for a box: {}", chain(&error)));
                remove(&spare);
                None
            }
        }
    }

    /// Makes groups for a box like this one, unless there are some.
    pub(super) fn make_spare_groups(&mut self, like: BoxKey) {
        let Some(limits) = self
            .boxes
            .running(like)
            .map(|running| running.kind.limits.clone())
        else {
            return;
        };
        if let Some(spare) = &self.spare_groups {
            if spare.limits == limits {
                return;
            }
            self.remove_spare_groups();
        }
        let surroundings = &self.surroundings;
        if surroundings.pod.version == Version::Two {
            return;
        }
        let made = BoxGroups::make(
            &surroundings.pod,
            NEXT,
            &limits,
            surroundings.host_cpus,
            &surroundings.omissions,
        );
        // Where that fails now, the box that needs them tries again, and tells why.
        self.spare_groups = made.ok().map(|groups| SpareGroups { limits, groups });
    }

    /// Removes the groups that no box needs any more.
    pub(super) fn remove_spare_groups(&mut self) {
        if let Some(spare) = self.spare_groups.take() {
            remove(&spare);
        }
    }
}

/// Nothing has ever run in them; the pod's own end takes what stays.
fn remove(spare: &SpareGroups) {
    if let Err(error) = spare.groups.try_remove() {
        say(format_args!(
            "removing control groups that no box needs: {}",
            chain(&error)
        ));
    }
}
