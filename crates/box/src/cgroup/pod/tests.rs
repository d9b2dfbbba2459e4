use super::*;

/// A folder with the files of a group, as the kernel would make it.
fn group(procs: &str, control: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("cgroup.procs"), procs).unwrap();
    fs_err::write(folder.path().join("cgroup.subtree_control"), control).unwrap();
    folder
}

#[test]
fn only_controllers_that_are_off_are_switched_on() {
    let off = group("", "");
    enable(off.path(), &[Controller::Pids]).unwrap();
    let control = off.path().join("cgroup.subtree_control");
    assert_eq!(files::read(&control).unwrap(), "+pids");
    let on = group("", "cpu memory pids\n");
    enable(on.path(), &Controller::LIMITING).unwrap();
    let control = on.path().join("cgroup.subtree_control");
    assert_eq!(files::read(&control).unwrap(), "cpu memory pids\n");
}

#[test]
fn a_delegated_group_is_emptied_into_a_leaf() {
    let delegated = group("12\n345\n", "");
    let leaf = delegated.path().join(SUPERVISOR);
    fs_err::create_dir(&leaf).unwrap();
    fs_err::write(leaf.join("cgroup.procs"), "").unwrap();
    make_room(delegated.path()).unwrap();
    // The last one that was written; the kernel's file would have both.
    assert_eq!(files::read(&leaf.join("cgroup.procs")).unwrap(), "345");
}

#[test]
fn on_version_two_only_what_was_passed_on_is_used() {
    let delegated = group("", "");
    fs_err::write(delegated.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
    let tree = Tree {
        mount: delegated.path().to_owned(),
        base: delegated.path().join("glovebox"),
        controllers: Controller::LIMITING.into(),
    };
    assert_eq!(
        usable(Version::Two, &tree, delegated.path()).unwrap(),
        [Controller::Pids, Controller::Cpu]
    );
}

#[test]
fn swap_that_is_not_accounted_for_is_missing_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout {
        version: Version::One,
        trees: vec![Tree {
            mount: folder.path().to_owned(),
            base: folder.path().join("glovebox"),
            controllers: Controller::LIMITING.into(),
        }],
    };
    let (pod, missing) = PodGroups::make(&layout, "pod", None);
    let names: Vec<_> = missing.iter().map(|missing| missing.weakness).collect();
    assert_eq!(names, [Weakness::SwapLimit]);
    pod.remove().unwrap();
}

#[test]
fn a_place_that_cannot_be_made_costs_every_limit_of_its_controllers() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout {
        version: Version::One,
        trees: vec![Tree {
            mount: folder.path().to_owned(),
            base: folder.path().join("not/prepared"),
            controllers: [Controller::Cpu, Controller::Freezer].into(),
        }],
    };
    let (pod, missing) = PodGroups::make(&layout, "pod", None);
    assert!(pod.trees.is_empty());
    let names: Vec<_> = missing.iter().map(|missing| missing.weakness).collect();
    assert_eq!(
        names,
        [
            Weakness::MemoryLimit,
            Weakness::SwapLimit,
            Weakness::ProcessLimit,
            Weakness::CpuLimit
        ]
    );
    assert!(
        missing[0].cause.contains("`memory` is not there"),
        "{missing:?}"
    );
    assert!(missing[3].cause.contains("not/prepared"), "{missing:?}");
}

#[test]
fn without_a_scope_every_limit_is_missing_for_that_reason() {
    let layout = Layout {
        version: Version::Two,
        trees: Vec::new(),
    };
    let (pod, missing) = PodGroups::make(&layout, "pod", None);
    assert!(pod.trees.is_empty());
    assert_eq!(missing.len(), 4);
    for missing in missing {
        assert!(missing.cause.contains("scope"), "{missing:?}");
    }
}
