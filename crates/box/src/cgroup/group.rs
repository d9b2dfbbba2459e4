//! The groups of one box: `agent` and `work` below one for the whole, in every hierarchy.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use glovebox_protocol::agent_config::OomEvents;
use glovebox_protocol::limits::Limits;
use rustix::fs::{Mode, OFlags};

use super::clear::try_remove;
use super::layout::{Controller, Version};
use super::limits::{Role, Setting, settings};
use super::pod::{PodGroups, enable};
use super::{CgroupError, files, on};
use crate::mutation::{Mutation, Omissions};

pub(super) const AGENT: &str = "agent";
pub(super) const WORK: &str = "work";

/// The file through which a process moves itself into a group by writing `0`.
///
/// Version 1 has one for single threads beside the one for processes. A process with one thread
/// that goes through it spares the kernel a lock on all processes of the machine, which takes
/// about 10 ms after a pause.
pub(super) const V1_DOOR: &str = "tasks";
const V2_DOOR: &str = "cgroup.procs";

/// The groups of one box.
#[derive(Debug)]
pub(crate) struct BoxGroups {
    version: Version,
    trees: Vec<BoxTree>,
}

#[derive(Debug)]
struct BoxTree {
    /// The folder of the whole box.
    whole: PathBuf,
    controllers: Vec<Controller>,
}

impl BoxGroups {
    /// Makes the groups with their limits. On failure nothing is left.
    ///
    /// # Errors
    /// The first folder or file that could not be made or written.
    pub(crate) fn make(
        pod: &PodGroups,
        name: &str,
        limits: &Limits,
        host_cpus: u32,
        omissions: &Omissions,
    ) -> Result<Self, CgroupError> {
        let mut groups = Self {
            version: pod.version,
            trees: Vec::new(),
        };
        let made = groups
            .make_folders(pod, name)
            .and_then(|()| groups.fill(limits, host_cpus, omissions));
        match made {
            Ok(()) => Ok(groups),
            // Nothing runs in them yet. What made this necessary is what has to be known.
            Err(error) => match groups.try_remove() {
                Ok(()) => Err(error),
                Err(second) => Err(CgroupError::LeftBehind {
                    first: Box::new(error),
                    second: Box::new(second),
                }),
            },
        }
    }

    /// Gives the groups another name. Only version 1 can do that.
    ///
    /// # Errors
    /// The first folder that keeps its name.
    pub(crate) fn rename(&mut self, name: &str) -> Result<(), CgroupError> {
        for tree in &mut self.trees {
            let renamed = tree.whole.with_file_name(name);
            rustix::fs::rename(&tree.whole, &renamed)
                .map_err(|error| on("renaming the control group", &tree.whole)(error.into()))?;
            tree.whole = renamed;
        }
        Ok(())
    }

    /// Makes the box's folder in every hierarchy, and keeps account of those that were made.
    fn make_folders(&mut self, pod: &PodGroups, name: &str) -> Result<(), CgroupError> {
        for tree in &pod.trees {
            let whole = tree.folder.join(name);
            files::make_folder(&whole).map_err(on("making the control group", &whole))?;
            self.trees.push(BoxTree {
                whole,
                controllers: tree.controllers.clone(),
            });
        }
        Ok(())
    }

    fn fill(
        &self,
        limits: &Limits,
        host_cpus: u32,
        omissions: &Omissions,
    ) -> Result<(), CgroupError> {
        for tree in &self.trees {
            if self.version == Version::Two {
                enable(&tree.whole, &tree.controllers)?;
            }
            for (role, folder) in [
                (Role::Whole, tree.whole.clone()),
                (Role::Agent, tree.whole.join(AGENT)),
                (Role::Work, tree.whole.join(WORK)),
            ] {
                if role != Role::Whole {
                    files::make_folder(&folder).map_err(on("making the control group", &folder))?;
                }
                let settings = tree.controllers.iter().flat_map(|controller| {
                    settings(
                        self.version,
                        *controller,
                        role,
                        limits,
                        host_cpus,
                        omissions,
                    )
                });
                write_settings(&folder, settings)?;
            }
        }
        Ok(())
    }

    /// On version 2, the agent's group as a descriptor, into which a process can be cloned.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn clone_target(&self) -> Result<Option<OwnedFd>, CgroupError> {
        match (self.version, self.trees.first()) {
            (Version::Two, Some(tree)) => {
                open_folder(&tree.whole.join(AGENT), OFlags::RDONLY).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// On version 1, the doors of the agent's groups, through which the box's first process goes
    /// while it still has the launcher's id.
    ///
    /// # Errors
    /// When a door cannot be opened.
    pub(crate) fn agent_doors(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        if self.version == Version::Two {
            return Ok(Vec::new());
        }
        self.trees
            .iter()
            .map(|tree| open_door(&tree.whole.join(AGENT).join(V1_DOOR)))
            .collect()
    }

    /// The doors of the workload's groups, as they have to be opened by the agent.
    ///
    /// Version 1 lets a process through a door only when the door was opened under the process's
    /// own id: the file becomes the agent's, and the agent opens it itself. Version 2 looks at
    /// what the opener may do, and the opener's own view of the tree: opened here.
    ///
    /// # Errors
    /// When a door cannot be opened or given away.
    pub(crate) fn work_doors(&self, agent: u32) -> Result<Vec<Door>, CgroupError> {
        self.trees
            .iter()
            .map(|tree| {
                let folder = tree.whole.join(WORK);
                if self.version == Version::Two {
                    return open_door(&folder.join(V2_DOOR)).map(Door::Open);
                }
                let door = folder.join(V1_DOOR);
                rustix::fs::chown(&door, Some(rustix::fs::Uid::from_raw(agent)), None)
                    .map_err(|error| on("giving the agent", &door)(error.into()))?;
                open_folder(&folder, OFlags::PATH).map(Door::Closed)
            })
            .collect()
    }

    /// The ways into the workload's groups for the copy of a template. Version 1 lets a process
    /// through a door that was opened under the process's id: the template's is the launcher's.
    ///
    /// # Errors
    /// When a way cannot be opened.
    pub(crate) fn template_doors(&self, omissions: &Omissions) -> Result<WorkDoors, CgroupError> {
        if omissions.omits(Mutation::WorkCgroup) {
            return Ok(WorkDoors::Doors(Vec::new()));
        }
        match (self.version, self.trees.first()) {
            (Version::Two, Some(tree)) => {
                open_folder(&tree.whole.join(WORK), OFlags::RDONLY).map(WorkDoors::Folder)
            }
            _ => self
                .trees
                .iter()
                .map(|tree| open_door(&tree.whole.join(WORK).join(V1_DOOR)))
                .collect::<Result<_, _>>()
                .map(WorkDoors::Doors),
        }
    }

    /// The file in which the kernel counts what it has killed in the workload's group because
    /// memory had run out; `None` where memory is not limited.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn oom_events(&self) -> Result<Option<File>, CgroupError> {
        self.oom_file(WORK)
            .map(|path| {
                fs_err::File::open(&path)
                    .map(|file| file.into_parts().0)
                    .map_err(on("opening", &path))
            })
            .transpose()
    }

    /// How often the kernel killed in the agent's group because memory had run out.
    pub(crate) fn agent_oom_kills(&self) -> u64 {
        self.oom_file(AGENT)
            .and_then(|path| files::read(&path).ok())
            .map_or(0, |text| OomEvents::kills(text.as_bytes()))
    }

    fn oom_file(&self, leaf: &str) -> Option<PathBuf> {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.trees
            .iter()
            .find(|tree| tree.controllers.contains(&Controller::Memory))
            .map(|tree| tree.whole.join(leaf).join(file))
    }

    /// Kills whatever is left and removes the groups, as far as that can be done without waiting.
    /// One that stays is no reason to leave the others.
    ///
    /// # Errors
    /// When processes stay, or a folder cannot be removed. What [`CgroupError::is_passing`] is to
    /// be tried again a moment later.
    pub(crate) fn try_remove(&self) -> Result<(), CgroupError> {
        let mut result = Ok(());
        for tree in &self.trees {
            let removed = try_remove(self.version, &tree.whole);
            result = result.and(removed);
        }
        result
    }
}

/// The ways into the workload's groups for a process that has the launcher's id.
#[derive(Debug)]
pub(crate) enum WorkDoors {
    /// One for each hierarchy, open for writing; none where there are no groups.
    Doors(Vec<OwnedFd>),
    /// The folder of the one hierarchy.
    Folder(OwnedFd),
}

/// A way into the workload's group of one hierarchy.
#[derive(Debug)]
pub(crate) enum Door {
    /// Open for writing.
    Open(OwnedFd),
    /// The folder; the door in it is to be opened by whoever goes through.
    Closed(OwnedFd),
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Open(fd) | Self::Closed(fd) => fd.as_fd(),
        }
    }
}

impl Door {
    /// Opens the door under the ids that the caller has now.
    ///
    /// # Errors
    /// What `open` says.
    pub(crate) fn open(self) -> std::io::Result<OwnedFd> {
        match self {
            Self::Open(fd) => Ok(fd),
            Self::Closed(folder) => Ok(rustix::fs::openat(
                folder,
                V1_DOOR,
                OFlags::WRONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?),
        }
    }
}

/// Writes what makes a group's limits hold.
pub(super) fn write_settings(
    folder: &Path,
    settings: impl Iterator<Item = Setting>,
) -> Result<(), CgroupError> {
    for setting in settings {
        let path = folder.join(setting.file);
        match files::write(&path, &setting.value) {
            Err(error) if setting.optional && error.kind() == std::io::ErrorKind::NotFound => {}
            other => other.map_err(on("setting", &path))?,
        }
    }
    Ok(())
}

pub(super) fn open_door(path: &Path) -> Result<OwnedFd, CgroupError> {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| on("opening", path)(error.into()))
}

pub(super) fn open_folder(folder: &Path, how: OFlags) -> Result<OwnedFd, CgroupError> {
    rustix::fs::open(
        folder,
        how | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| on("opening", folder)(error.into()))
}

#[cfg(test)]
mod tests;
