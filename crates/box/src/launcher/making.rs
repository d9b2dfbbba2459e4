//! Making boxes: what is done for a request, and when a first process says how far it is.

use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_protocol::agent_config::{AgentIds, Claim, Start};
use glovebox_protocol::ids::SandboxId;

use super::agent_line::AgentLine;
use super::boxes::{BoxKey, Running, SetUp, Stage, Wish};
use super::ending::{Body, Ending, Notice};
use super::events::Source;
use super::outer::say;
use super::pod::Pod;
use super::timers::Due;
use super::words::Words;
use crate::control::{BoxFacts, BoxSpec, Fault, FromLauncher};
use crate::create::parent::{Begun, Design, Unmade, begin};
use crate::create::process::end;
use crate::create::report::Progress;

/// How long a box is given to set itself up.
const SETUP_PATIENCE: Duration = Duration::from_secs(10);

/// What a box is made for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) sandbox: Option<SandboxId>,
    pub(super) hard_deadline_ms: Option<i64>,
    /// The request that is to be answered.
    pub(super) request: Option<u64>,
}

impl Wanted {
    /// For nobody yet.
    pub(super) const fn in_advance() -> Self {
        Self {
            sandbox: None,
            hard_deadline_ms: None,
            request: None,
        }
    }
}

impl Pod {
    /// Makes a box that was asked for.
    pub(super) fn create(&mut self, id: u64, spec: BoxSpec) {
        let doing = format!("making the box {}", spec.sandbox);
        if spec.kind.trust_domain.is_empty() {
            let fault = Fault::invalid(doing, "its trust domain has no name");
            self.answers.push(FromLauncher::Failed { id, fault });
            return;
        }
        if self.boxes.of_sandbox(spec.sandbox).is_some() {
            let fault = Fault::invalid(doing, "there is one with this id");
            self.answers.push(FromLauncher::Failed { id, fault });
            return;
        }
        let omissions = self.surroundings.omissions.with(&spec);
        // One that lacks a protection is made for whoever wants to see that.
        if omissions == self.surroundings.omissions && self.give_away(id, &spec) {
            return;
        }
        let wanted = Wanted {
            sandbox: Some(spec.sandbox),
            hard_deadline_ms: spec.hard_deadline_ms,
            request: Some(id),
        };
        let design = Design {
            name: spec.sandbox,
            claim: Some(self.claim(&spec)),
            kind: Rc::new(spec.kind),
            omissions,
        };
        self.begin(design, wanted);
    }

    pub(super) fn claim(&self, spec: &BoxSpec) -> Claim {
        Claim {
            sandbox: spec.sandbox,
            installation: self.surroundings.installation,
            keys: spec.keys.clone(),
            input_limits: spec.input_limits,
            idle_limit_ms: spec.idle_limit_ms,
            is_unclaimed: spec.is_unclaimed,
        }
    }

    /// Begins a box. What comes of it is told when it is known.
    pub(super) fn begin(&mut self, design: Design, wanted: Wanted) -> BoxKey {
        let key = self.boxes.next_key();
        let (name, sandbox, request) = (design.name, wanted.sandbox, wanted.request);
        let spare = self.take_spare_groups(&design);
        let taken_in = match begin(&self.surroundings, &mut self.slots, &design, spare) {
            Ok(begun) => self.take_in(key, begun, design, wanted),
            Err(unmade) => Err(unmade),
        };
        match taken_in {
            Ok(running) => {
                if let Some(set_up) = &running.set_up {
                    self.timers.at(set_up.deadline, Due::Box(key));
                }
                let stage = Stage::Runs(Box::new(running));
                self.boxes.add(key, name, sandbox, stage);
            }
            Err(unmade) => self.take_away_unmade(key, (name, sandbox), request, *unmade),
        }
        key
    }

    /// Waits from now on for what a new box has to say.
    fn take_in(
        &self,
        key: BoxKey,
        begun: Begun,
        design: Design,
        wanted: Wanted,
    ) -> Result<Running, Box<Unmade>> {
        let Begun {
            process, remains, ..
        } = begun;
        let unmade = |fault, process, remains| {
            Box::new(Unmade {
                fault,
                process: Some(process),
                remains,
            })
        };
        let events = &self.events;
        let report = events.watch(begun.report, Source::Report(key));
        let words = events.watch(begun.words, Source::Words(key));
        let line = events.watch(begun.line, Source::AgentLine(key));
        let (report, words, line) = match (report, words, line) {
            (Ok(report), Ok(words), Ok(line)) => (report, words, line),
            (Err((_, fault)), ..) | (_, Err((_, fault)), _) | (.., Err((_, fault))) => {
                return Err(unmade(fault, process, remains));
            }
        };
        let process = match events.watch(process, Source::Process(key)) {
            Ok(process) => process,
            Err((process, fault)) => return Err(unmade(fault, process, remains)),
        };
        let host = |inside| self.ids.host_user(inside).unwrap_or(u32::MAX);
        Ok(Running {
            process,
            remains,
            words: Words::new(words),
            line: AgentLine::new(line),
            kind: design.kind,
            omissions: design.omissions,
            wish: Wish::None,
            wished: None,
            waited: Duration::ZERO,
            said_ready: false,
            repetitions: 0,
            attempts: 0,
            template: None,
            facts: BoxFacts {
                sandbox: wanted.sandbox.unwrap_or(design.name),
                socket: begun.socket,
                pid: begun.host_pid,
                ids: begun.ids.inside,
                host_ids: AgentIds {
                    agent: host(begun.ids.pod.agent),
                    workload: host(begun.ids.pod.workload),
                },
                hard_deadline_ms: wanted.hard_deadline_ms,
                agent_epoch: None,
                was_ready: false,
                stages_us: Vec::new(),
            },
            set_up: Some(SetUp {
                report,
                progress: Progress::default(),
                stages: begun.stages,
                deadline: Instant::now() + SETUP_PATIENCE,
                hard_deadline_ms: wanted.hard_deadline_ms,
                request: wanted.request,
                _release: begun.release,
            }),
        })
    }

    /// Takes away what there is of a box that could not even be begun.
    fn take_away_unmade(
        &mut self,
        key: BoxKey,
        (name, sandbox): (SandboxId, Option<SandboxId>),
        request: Option<u64>,
        unmade: Unmade,
    ) {
        let Unmade {
            fault,
            process,
            remains,
        } = unmade;
        let process = process.and_then(|process| {
            let watched = self.events.watch(process, Source::Process(key));
            watched
                .map_err(|(process, _)| {
                    // There is no other way than to wait for it. If it does not end, its groups
                    // cannot be removed, and that is told.
                    let _ = end(&process);
                })
                .ok()
        });
        let body = Body { process, remains };
        let ending = Ending::begin(body, not_made(request, fault));
        self.boxes.add(key, name, sandbox, Stage::Ends(ending));
        self.take_away(key);
    }

    /// Listens to how a first process sets itself up.
    pub(super) fn reported(&mut self, key: BoxKey) {
        let Some(running) = self.boxes.running(key) else {
            return;
        };
        let Some(set_up) = &mut running.set_up else {
            return;
        };
        if let Err(fault) = set_up.progress.read(set_up.report.get()) {
            return self.give_up_making(key, fault);
        }
        if set_up.progress.has_begun() {
            running.remains.inside = None;
        }
        // While the rest of the box gets ready, its kernel is made.
        if set_up.progress.complete
            && running.kind.start == Start::Template
            && running.wished.is_none()
        {
            self.wish(key);
        }
        let set_up = self
            .boxes
            .running(key)
            .and_then(|box_| box_.set_up.as_mut());
        match set_up.and_then(|set_up| set_up.progress.outcome()) {
            None => {}
            Some(Ok(stages_us)) => self.made(key, stages_us),
            Some(Err(fault)) => self.give_up_making(key, fault),
        }
    }

    /// Looks whether a first process takes too long.
    pub(super) fn look_at_set_up(&mut self, key: BoxKey) {
        let set_up = self
            .boxes
            .running(key)
            .and_then(|box_| box_.set_up.as_ref());
        if set_up.is_some_and(|set_up| set_up.deadline <= Instant::now()) {
            let fault = Fault::failed(
                "waiting for the box to set itself up",
                format!("it is not done after {} s", SETUP_PATIENCE.as_secs()),
            );
            self.give_up_making(key, fault);
        }
    }

    /// A first process has become the agent.
    fn made(&mut self, key: BoxKey, stages_us: Vec<(String, u64)>) {
        let Some(running) = self.boxes.running(key) else {
            return;
        };
        let Some(mut set_up) = running.set_up.take() else {
            return;
        };
        set_up.stages.add(stages_us);
        set_up.stages.mark("setup_and_exec");
        running.facts.stages_us = set_up.stages.into_list();
        let facts = running.facts.clone();
        self.boxes.set_hard_deadline(key, set_up.hard_deadline_ms);
        if let Some(id) = set_up.request {
            if let Some(entry) = self.boxes.get_mut(key) {
                entry.told = Some(facts.clone());
            }
            self.answers.push(FromLauncher::Created { id, facts });
        }
        self.prepare_in_advance(key);
    }

    /// Takes a box away that could not be made.
    pub(super) fn give_up_making(&mut self, key: BoxKey, fault: Fault) {
        let set_up = self.boxes.running(key).and_then(|box_| box_.set_up.take());
        let request = set_up.and_then(|set_up| set_up.request);
        self.end(key, not_made(request, fault));
    }
}

/// What is told of a box that could not be made.
fn not_made(request: Option<u64>, fault: Fault) -> Vec<Notice> {
    match request {
        Some(id) => vec![Notice::NotMade { id, fault }],
        None => {
            say(format_args!("a box in advance could not be made: {fault}"));
            Vec::new()
        }
    }
}
