//! Waiting for many descriptors at once. What a wait costs depends on how many have something to
//! say, not on how many there are.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::boxes::BoxKey;
use super::templates::TemplateKey;
use crate::control::Fault;

/// How many are taken from one wait. The others come with the next.
const AT_A_TIME: usize = 64;

/// Where in the number of a source its kind stands, in bits; below it is the number of a box or
/// a template.
const KIND: u32 = 56;

/// What a descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The runtime has said something, or takes more.
    Runtime,
    /// A runtime wants to come in.
    Door,
    /// The outer process has ended, or wants us to.
    Outer,
    /// The first process of a box has ended.
    Process(BoxKey),
    /// It says how far it is with setting itself up.
    Report(BoxKey),
    /// The agent has said something on its standard error.
    Words(BoxKey),
    /// The agent has said something to the launcher.
    AgentLine(BoxKey),
    /// A template has said something.
    TemplateLine(TemplateKey),
    /// A template has ended.
    TemplateProcess(TemplateKey),
}

impl Source {
    const fn number(self) -> u64 {
        let (kind, number) = match self {
            Self::Runtime => (0, 0),
            Self::Outer => (1, 0),
            Self::Process(key) => (2, key.number()),
            Self::Report(key) => (3, key.number()),
            Self::Words(key) => (4, key.number()),
            Self::AgentLine(key) => (5, key.number()),
            Self::TemplateLine(key) => (6, key.number()),
            Self::TemplateProcess(key) => (7, key.number()),
            Self::Door => (8, 0),
        };
        kind << KIND | number
    }

    fn of_number(number: u64) -> Option<Self> {
        let rest = number & ((1 << KIND) - 1);
        let (key, template) = (BoxKey::of_number(rest), TemplateKey::of_number(rest));
        Some(match number >> KIND {
            0 => Self::Runtime,
            1 => Self::Outer,
            2 => Self::Process(key),
            3 => Self::Report(key),
            4 => Self::Words(key),
            5 => Self::AgentLine(key),
            6 => Self::TemplateLine(template),
            7 => Self::TemplateProcess(template),
            8 => Self::Door,
            _ => return None,
        })
    }
}

/// Everything that is waited for.
#[derive(Debug, Clone)]
pub(super) struct Events(Rc<OwnedFd>);

impl Events {
    /// Nothing yet.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Rc::new(epoll::create(CreateFlags::CLOEXEC)?)))
    }

    /// Waits for something to read, or the end, on a descriptor from now on.
    ///
    /// # Errors
    /// When the kernel has no room for more; gives the descriptor back.
    pub(super) fn watch<T: AsFd>(&self, what: T, source: Source) -> Result<Watched<T>, (T, Fault)> {
        match self.watch_for_good(&what, source) {
            Ok(()) => Ok(Watched {
                what,
                events: self.clone(),
            }),
            Err(error) => Err((what, Fault::exhausted("watching a box", error))),
        }
    }

    /// The same for one that belongs to somebody else, until [`Self::leave_alone`] or the end.
    ///
    /// # Errors
    /// When the kernel has no room for more.
    pub(super) fn watch_for_good(&self, what: impl AsFd, source: Source) -> io::Result<()> {
        let data = EventData::new_u64(source.number());
        Ok(epoll::add(&*self.0, what, data, EventFlags::IN)?)
    }

    /// Waits for a descriptor no more.
    pub(super) fn leave_alone(&self, what: impl AsFd) {
        // If it could not be taken off, it was not on the list.
        let _ = epoll::delete(&*self.0, what);
    }

    /// Waits for room to write as well, or not any more.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn also_for_room(
        &self,
        what: impl AsFd,
        source: Source,
        wanted: bool,
    ) -> io::Result<()> {
        let room = if wanted {
            EventFlags::OUT
        } else {
            EventFlags::empty()
        };
        let data = EventData::new_u64(source.number());
        Ok(epoll::modify(&*self.0, what, data, EventFlags::IN | room)?)
    }

    /// Waits until something has happened, or until a moment has come.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn wait(&self, until: Instant) -> io::Result<Vec<Source>> {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        // Waits to the microsecond; waiting in the list itself is rounded up to whole
        // milliseconds on the oldest kernels.
        match poll(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(&left)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = Vec::with_capacity(AT_A_TIME);
        let at_once = Timespec::default();
        match epoll::wait(
            &*self.0,
            rustix::buffer::spare_capacity(&mut happened),
            Some(&at_once),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(happened
            .iter()
            .filter_map(|event: &epoll::Event| Source::of_number(event.data.u64()))
            .collect())
    }
}

/// Something that is waited for until this is dropped.
///
/// It has to be taken off the list by its owner. A template that is just being started has a copy
/// of every descriptor of ours until it closes what is not its own; the first process of a box
/// shares our table until it takes a copy of the lower part of it, out of which it closes the
/// rest. What is open in a copy would not leave the list when it is closed here. For the same
/// reason no process but the launcher may drop one of these.
#[derive(Debug)]
pub(super) struct Watched<T: AsFd> {
    what: T,
    events: Events,
}

impl<T: AsFd> Watched<T> {
    /// What is waited for.
    pub(super) const fn get(&self) -> &T {
        &self.what
    }
}

impl<T: AsFd> Drop for Watched<T> {
    fn drop(&mut self) {
        // If it could not be taken off, what it says leads to a box that is gone, and is passed
        // over.
        let _ = epoll::delete(&*self.events.0, &self.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::time::Duration;

    #[test]
    fn every_source_has_a_number_that_leads_back_to_it() {
        let key = BoxKey::of_number((1 << KIND) - 1);
        for source in [
            Source::Runtime,
            Source::Outer,
            Source::Door,
            Source::Process(key),
            Source::Report(key),
            Source::Words(key),
            Source::AgentLine(key),
            Source::TemplateLine(TemplateKey::of_number(7)),
            Source::TemplateProcess(TemplateKey::of_number(7)),
        ] {
            assert_eq!(Source::of_number(source.number()), Some(source));
        }
        assert_eq!(Source::of_number(u64::MAX), None);
    }

    #[test]
    fn what_is_dropped_is_heard_no_more_also_where_another_process_holds_it() {
        let events = Events::new().unwrap();
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let copy = read.try_clone().unwrap();
        let source = Source::Words(BoxKey::of_number(7));
        let watched = events.watch(read, source).ok().unwrap();
        rustix::io::write(&write, b"x").unwrap();
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(events.wait(soon()).unwrap(), [source]);
        drop(watched);
        assert_eq!(events.wait(soon()).unwrap(), []);
        drop(copy);
    }
}
