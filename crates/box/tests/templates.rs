//! Which template serves whom, how many there are, when they are renewed, and what happens to those
//! who wait when one fails.
#![cfg(test)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use glovebox_box::control::{BoxEnd, BoxFacts, BoxSpec, FromLauncher, Renewal, TemplateFacts};
use rustix::process::{Pid, Signal, kill_process};
use support::launcher::{Launcher, another_kernel, kernel, order, spec, tell, template_spec};
use support::oracle::{Host, moment};
use support::tree;

/// Lets the agent of a box ask for a kernel, whatever came of the last wish.
const WISH: &str = r#"{"do":"say","packet":"{\"is\":\"kernel_wanted\"}"}"#;

fn of_domain(trust_domain: &str) -> BoxSpec {
    let mut spec = template_spec();
    spec.kind.trust_domain = trust_domain.into();
    spec
}

fn signal(template: &TemplateFacts, signal: Signal) {
    kill_process(Pid::from_raw(template.pid).unwrap(), signal).unwrap();
}

/// A box with a kernel, and the number of that.
fn with_kernel(launcher: &mut Launcher, spec: BoxSpec) -> (BoxFacts, i32) {
    let facts = launcher.create(spec).unwrap();
    let pid = kernel(&facts).unwrap();
    (facts, pid)
}

fn templates(launcher: &mut Launcher) -> Vec<TemplateFacts> {
    launcher.measure().1
}

/// The one template that there is.
fn template(launcher: &mut Launcher) -> TemplateFacts {
    let all = templates(launcher);
    let [template] = &all[..] else {
        panic!("there is not one template: {all:?}");
    };
    template.clone()
}

/// Where something lies in the memory of a kernel: the same in all copies of one template, and
/// in no two templates.
fn layout((facts, pid): &(BoxFacts, i32)) -> String {
    tell(facts, *pid, "print(id(object), hash('glovebox'))")
}

#[test]
fn two_trust_domains_never_share_a_template() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let mut made = Vec::new();
    for domain in ["a", "b", "a", "b"] {
        made.push(with_kernel(&mut launcher, of_domain(domain)));
    }
    let layouts: Vec<_> = made.iter().map(layout).collect();
    assert_eq!((&layouts[0], &layouts[1]), (&layouts[2], &layouts[3]));
    assert_ne!(layouts[0], layouts[1]);
    let all = templates(&mut launcher);
    let seen: Vec<_> = all
        .iter()
        .map(|template| {
            (
                template.trust_domain.as_str(),
                template.ready,
                template.kernels,
            )
        })
        .collect();
    assert_eq!(seen, [("a", true, 2), ("b", true, 2)]);
    // Other layers are another template, too.
    let mut other = of_domain("a");
    other.kind.layers.push("trees/second".into());
    let second = data.path().join("trees/second");
    fs_err::create_dir(&second).unwrap();
    let with_others = with_kernel(&mut launcher, other);
    assert!(!layouts.contains(&layout(&with_others)));
    assert_eq!(templates(&mut launcher).len(), 3);
    let nameless = launcher.create(of_domain("")).unwrap_err();
    assert!(nameless.cause.contains("trust domain"), "{nameless}");
    assert!(launcher.close().success());
}

#[test]
fn eight_templates_are_alive_at_most_and_the_idlest_makes_room() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let domains: Vec<_> = (0..10).map(|number| format!("domain {number}")).collect();
    let mut first = None;
    for domain in &domains {
        let made = with_kernel(&mut launcher, of_domain(domain));
        assert!(templates(&mut launcher).len() <= 8);
        // One that is in use is not the idlest.
        let kept = with_kernel(&mut launcher, of_domain(&domains[0]));
        launcher.remove(kept.0.sandbox);
        match &first {
            None => first = Some(made),
            Some(_) => launcher.remove(made.0.sandbox),
        }
    }
    let alive: BTreeSet<_> = templates(&mut launcher)
        .into_iter()
        .map(|template| template.trust_domain)
        .collect();
    let expected = domains.iter().take(1).chain(&domains[3..]).cloned();
    assert_eq!(alive, expected.collect());
    // The launcher, eight templates, a box with a kernel.
    assert_eq!(Host::look(&pod).processes(), 1 + 8 + 2);
    let (facts, pid) = first.unwrap();
    assert_eq!(tell(&facts, pid, "print(1)"), "1\n");
    assert!(launcher.close().success());
    Host::settles(&pod, |host| host.processes() == 0 && host.groups() == 0);
}

#[test]
fn more_than_eight_who_ask_at_once_are_served_one_after_the_other() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    for id in 0..10 {
        launcher.begin(id, &of_domain(&format!("domain {id}")));
    }
    for _ in 0..10 {
        match launcher.hear() {
            FromLauncher::Created { facts, .. } => assert!(kernel(&facts).is_ok()),
            other => panic!("the launcher said {other:?}"),
        }
    }
    assert_eq!(templates(&mut launcher).len(), 8);
    assert!(launcher.close().success());
}

#[test]
fn a_template_is_renewed_after_so_many_kernels() {
    let data = tree::data();
    let renewal = Renewal {
        template_kernels: 3,
        ..Renewal::default()
    };
    let mut launcher = Launcher::start_renewing(data.path(), renewal);
    let pod = launcher.pod();
    let first = with_kernel(&mut launcher, template_spec());
    let old = template(&mut launcher);
    let mut seen = BTreeSet::new();
    for _ in 0..12 {
        let made = with_kernel(&mut launcher, template_spec());
        seen.insert(layout(&made));
        launcher.remove(made.0.sandbox);
        for one in templates(&mut launcher) {
            // The old one goes on until the new one is ready.
            assert!(one.ready || one.kernels == 0, "{one:?}");
        }
    }
    while templates(&mut launcher).len() > 1 {
        moment();
    }
    assert!(template(&mut launcher).pid != old.pid);
    assert!(seen.len() > 1, "{seen:?}");
    assert_eq!(tell(&first.0, first.1, "print(1)"), "1\n");
    launcher.remove(first.0.sandbox);
    Host::settles(&pod, |host| host.processes() == 2);
    assert!(launcher.close().success());
}

#[test]
fn a_template_is_renewed_after_a_time() {
    let data = tree::data();
    let renewal = Renewal {
        template_ms: 300,
        ..Renewal::default()
    };
    let mut launcher = Launcher::start_renewing(data.path(), renewal);
    with_kernel(&mut launcher, template_spec());
    let old = templates(&mut launcher).remove(0).pid;
    while templates(&mut launcher).iter().any(|one| one.pid == old) {
        moment();
    }
    with_kernel(&mut launcher, template_spec());
    assert!(launcher.close().success());
}

/// The freezer of the group of a template of this launcher, on version 1 of control groups, where
/// what is frozen cannot be killed.
fn freezer(launcher: &Launcher, template: &TemplateFacts) -> Option<PathBuf> {
    let group = fs_err::read_to_string(format!("/proc/{}/cgroup", template.pid)).ok()?;
    let frozen = group.lines().find(|line| line.contains(":freezer:"))?;
    let name = Path::new(frozen).file_name()?.to_owned();
    let pod = launcher.pod();
    let pods = pod
        .bases
        .iter()
        .filter_map(|base| fs_err::read_dir(base).ok());
    let mut pods = pods.flatten().flatten();
    // Other launchers have templates of the same name.
    pods.find_map(|folder| {
        let ours = folder.file_name().to_str()?.ends_with(&pod.run);
        let file = folder.path().join(&name).join("freezer.state");
        Some(file).filter(|file| ours && file.exists())
    })
}

#[test]
fn a_template_that_outlives_its_end_is_taken_away_when_it_goes_after_all() {
    let data = tree::data();
    let renewal = Renewal {
        template_ms: 8000,
        ..Renewal::default()
    };
    let mut launcher = Launcher::start_renewing(data.path(), renewal);
    with_kernel(&mut launcher, template_spec());
    let old = templates(&mut launcher).remove(0);
    let Some(freezer) = freezer(&launcher, &old) else {
        return;
    };
    fs_err::write(&freezer, "FROZEN").unwrap();
    while templates(&mut launcher)
        .iter()
        .any(|one| one.pid == old.pid)
    {
        moment();
    }
    // It is given so long to end, and then no more is expected of it.
    let given_up = Instant::now() + Duration::from_secs(11);
    while Instant::now() < given_up {
        moment();
    }
    assert!(freezer.exists());
    fs_err::write(&freezer, "THAWED").unwrap();
    while freezer.exists() {
        moment();
    }
    with_kernel(&mut launcher, template_spec());
    assert!(launcher.close().success());
}

#[test]
fn a_template_that_ends_is_started_again_and_who_waits_is_served() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let first = with_kernel(&mut launcher, template_spec());
    let old = template(&mut launcher);
    signal(&old, Signal::STOP);
    // One is what it is busy with, and one waits behind that.
    let made = [template_spec(), template_spec()].map(|spec| launcher.create(spec).unwrap());
    signal(&old, Signal::KILL);
    for facts in &made {
        kernel(facts).unwrap();
    }
    assert_ne!(template(&mut launcher).pid, old.pid);
    assert_eq!(tell(&first.0, first.1, "print(1)"), "1\n");
    assert!(launcher.close().success());
}

#[test]
fn a_template_that_does_not_answer_is_ended_after_the_box_that_may_have_stopped_it() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    with_kernel(&mut launcher, template_spec());
    let old = template(&mut launcher);
    signal(&old, Signal::STOP);
    let suspect = launcher.create(template_spec()).unwrap();
    let behind = launcher.create(template_spec()).unwrap();
    let (sandbox, end) = (
        suspect.sandbox,
        BoxEnd::AgentKilled {
            signal: 9,
            out_of_memory: false,
        },
    );
    assert_eq!(launcher.hear(), FromLauncher::Ended { sandbox, end });
    kernel(&behind).unwrap();
    assert_ne!(template(&mut launcher).pid, old.pid);
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_is_removed_while_its_kernel_is_made_harms_nobody() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let first = with_kernel(&mut launcher, template_spec());
    let old = template(&mut launcher);
    signal(&old, Signal::STOP);
    let gone = launcher.create(template_spec()).unwrap();
    let behind = launcher.create(template_spec()).unwrap();
    launcher.remove(gone.sandbox);
    signal(&old, Signal::CONT);
    kernel(&behind).unwrap();
    assert_eq!(template(&mut launcher).pid, old.pid);
    launcher.remove(first.0.sandbox);
    launcher.remove(behind.sandbox);
    Host::settles(&pod, |host| host.processes() == 2);
    assert!(launcher.close().success());
}

#[test]
fn an_agent_gets_one_kernel_for_each_that_it_asks_for_and_may_ask_for_one_at_a_time() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (facts, first) = with_kernel(&mut launcher, template_spec());
    let mut seen = BTreeSet::from([first]);
    for _ in 0..5 {
        assert!(seen.insert(another_kernel(&facts).unwrap()));
    }
    assert_eq!(template(&mut launcher).kernels, 6);
    let one = template(&mut launcher);
    signal(&one, Signal::STOP);
    for _ in 0..3 {
        assert_eq!(order(&facts, WISH), "sent");
    }
    launcher.list();
    signal(&one, Signal::CONT);
    // The first was a wish, the others were not.
    assert!(seen.insert(kernel(&facts).unwrap()));
    assert!(seen.insert(another_kernel(&facts).unwrap()));
    assert_eq!(template(&mut launcher).kernels, 8);
    // Somebody who goes on with it is not listened to for long.
    signal(&one, Signal::STOP);
    let sent = (0..200).take_while(|_| {
        launcher.list();
        order(&facts, WISH) == "sent"
    });
    assert!(sent.count() < 80);
    signal(&one, Signal::CONT);
    // Others have not noticed.
    with_kernel(&mut launcher, template_spec());
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_starts_its_kernels_itself_gets_none() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let reason = another_kernel(&facts).unwrap_err();
    assert!(reason.contains("itself"), "{reason}");
    assert_eq!(templates(&mut launcher), []);
    // Somebody who goes on asking is not listened to for long.
    let sent = (0..200).take_while(|_| {
        launcher.list();
        order(&facts, WISH) == "sent"
    });
    assert!(sent.count() < 80);
    assert!(launcher.close().success());
}
