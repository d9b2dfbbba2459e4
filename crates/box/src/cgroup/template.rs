//! The group of one template: a leaf of the pod's in every hierarchy.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

use glovebox_protocol::limits::Limits;
use rustix::fs::OFlags;

use super::clear::{remove, try_remove};
use super::group::{V1_DOOR, open_door, open_folder, write_settings};
use super::layout::Version;
use super::limits::{Role, settings};
use super::pod::PodGroups;
use super::{CgroupError, files, on};
use crate::mutation::Omissions;

const GIB: u64 = 1024 * 1024 * 1024;

/// What a template may use. Its pages stay charged to it when they are shared with copies.
const LIMITS: Limits = Limits {
    // More than any host has: the host's number counts.
    cpu_millis: u32::MAX,
    memory_bytes: 2 * GIB,
    processes: 32,
    workspace_bytes: 0,
    workspace_inodes: 0,
    tmp_bytes: 0,
    shm_bytes: 0,
    open_files: 0,
    file_size_bytes: 0,
};

/// The group of one template.
#[derive(Debug)]
pub(crate) struct TemplateGroup {
    version: Version,
    folders: Vec<PathBuf>,
}

impl TemplateGroup {
    /// Makes it with its limits. On failure nothing is left.
    ///
    /// # Errors
    /// The first folder or file that could not be made or written.
    pub(crate) fn make(
        pod: &PodGroups,
        name: &str,
        host_cpus: u32,
        omissions: &Omissions,
    ) -> Result<Self, CgroupError> {
        let mut group = Self {
            version: pod.version,
            folders: Vec::new(),
        };
        match group.fill(pod, name, host_cpus, omissions) {
            Ok(()) => Ok(group),
            // Nothing runs in it yet. What made this necessary is what has to be known.
            Err(error) => match group.try_remove() {
                Ok(()) => Err(error),
                Err(second) => Err(CgroupError::LeftBehind {
                    first: Box::new(error),
                    second: Box::new(second),
                }),
            },
        }
    }

    fn fill(
        &mut self,
        pod: &PodGroups,
        name: &str,
        host_cpus: u32,
        omissions: &Omissions,
    ) -> Result<(), CgroupError> {
        for tree in &pod.trees {
            let folder = tree.folder.join(name);
            files::make_folder(&folder).map_err(on("making the control group", &folder))?;
            self.folders.push(folder.clone());
            let (version, role) = (pod.version, Role::Work);
            let settings = tree.controllers.iter().flat_map(|controller| {
                settings(version, *controller, role, &LIMITS, host_cpus, omissions)
            });
            write_settings(&folder, settings)?;
        }
        Ok(())
    }

    /// On version 2, the group as a descriptor, into which the template can be cloned.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn clone_target(&self) -> Result<Option<OwnedFd>, CgroupError> {
        match (self.version, self.folders.first()) {
            (Version::Two, Some(folder)) => open_folder(folder, OFlags::RDONLY).map(Some),
            _ => Ok(None),
        }
    }

    /// On version 1, the doors through which the template goes itself.
    ///
    /// # Errors
    /// When a door cannot be opened.
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        if self.version == Version::Two {
            return Ok(Vec::new());
        }
        self.folders
            .iter()
            .map(|folder| open_door(&folder.join(V1_DOOR)))
            .collect()
    }

    /// Kills whatever is left and removes it, by `deadline`.
    ///
    /// # Errors
    /// When processes stay, or a folder cannot be removed.
    pub(crate) fn remove(&self, deadline: Instant) -> Result<(), CgroupError> {
        let mut result = Ok(());
        for folder in &self.folders {
            let removed = remove(self.version, folder, deadline);
            result = result.and(removed);
        }
        result
    }

    /// Kills whatever is left and removes it, as far as that can be done without waiting.
    ///
    /// # Errors
    /// When processes stay, or a folder cannot be removed. What [`CgroupError::is_passing`] is to
    /// be tried again a moment later.
    pub(crate) fn try_remove(&self) -> Result<(), CgroupError> {
        let mut result = Ok(());
        for folder in &self.folders {
            let removed = try_remove(self.version, folder);
            result = result.and(removed);
        }
        result
    }
}
