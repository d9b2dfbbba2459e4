use super::*;
use crate::probe::trial::{GroupTrial, Trial};

const EVERYTHING: [What; 8] = [
    What::Namespaces,
    What::Mounts,
    What::Groups,
    What::Tmpfs,
    What::Overlay,
    What::Proc,
    What::Landlock,
    What::Seccomp,
];

fn good() -> Trials {
    Trials {
        uid: 1000,
        gid: 1000,
        kernel: "6.1.0-17-amd64".into(),
        landlock_abi: 6,
        two_ids: true,
        ids_fault: None,
        groups: GroupTrial {
            version: 2,
            missing: Vec::new(),
        },
        steps: EVERYTHING.map(|what| Trial { what, error: None }).into(),
    }
}

fn bad(trials: &Trials, files: &[(&str, &str)]) -> Vec<(String, Status, Option<String>)> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    all(trials, &Host::below(root.path()))
        .into_iter()
        .filter(|check| check.status != Status::Pass)
        .map(|check| (check.id, check.status, check.fix))
        .collect()
}

#[test]
fn a_good_machine_passes_everything() {
    assert_eq!(bad(&good(), &[]), []);
}

#[test]
fn apparmor_is_named_where_it_is_what_forbids_mounts() {
    let mut trials = good();
    trials.steps.truncate(2);
    trials.steps[1].error = Some("Permission denied".into());
    let file = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    let found = bad(&trials, &[(file, "1\n")]);
    assert_eq!(found[0].0, "user-namespaces");
    assert!(found[0].2.as_ref().unwrap().contains("AppArmor"));
    let ids: Vec<_> = found.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(
        ids,
        ["user-namespaces", "tmpfs", "overlay", "proc", "seccomp"]
    );
}

#[test]
fn every_missing_limit_is_a_failure_with_its_name_and_a_fix() {
    let mut trials = good();
    trials.groups = GroupTrial {
        version: 1,
        missing: vec![
            (Weakness::MemoryLimit, "not prepared".into()),
            (Weakness::SwapLimit, "no memsw".into()),
        ],
    };
    let found = bad(&trials, &[]);
    assert_eq!(found[0].2.as_deref(), Some("sudo glovebox doctor --fix"));
    assert!(found[1].2.as_ref().unwrap().contains("swapaccount"));
    assert!(found.iter().all(|(_, status, _)| *status == Status::Fail));
}

#[test]
fn what_only_could_be_better_is_a_warning() {
    let mut trials = good();
    trials.two_ids = false;
    let found = bad(
        &trials,
        &[
            (
                "proc/sys/kernel/core_pattern",
                "|/usr/share/apport/apport %p\n",
            ),
            ("sys/kernel/mm/ksm/run", "1\n"),
        ],
    );
    let ids: Vec<_> = found.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(ids, ["subordinate-ids", "core-pattern", "ksm"]);
    assert!(
        found
            .iter()
            .all(|(_, status, fix)| *status == Status::Warn && fix.is_some())
    );
}

#[test]
fn an_old_kernel_and_one_without_landlock_fail_by_name() {
    let mut trials = good();
    trials.kernel = "5.10.0".into();
    trials.landlock_abi = 0;
    let root = tempfile::tempdir().unwrap();
    let names: Vec<_> = all(&trials, &Host::below(root.path()))
        .into_iter()
        .filter_map(|check| check.weakness)
        .collect();
    assert_eq!(names, [Weakness::OldKernel, Weakness::Landlock]);
}
