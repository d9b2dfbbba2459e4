//! How many callers come from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts callers by address. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    most: usize,
    unlimited: Vec<IpAddr>,
    callers: Mutex<HashMap<IpAddr, usize>>,
}

/// One caller, counted as long as this lives; nobody where it does not count.
#[derive(Debug)]
pub(super) struct Counted(Option<(Addresses, IpAddr)>);

impl Addresses {
    /// At most so many from one address, but for those that may send any number.
    pub(super) fn new(most: usize, unlimited: Vec<IpAddr>) -> Self {
        let inner = Inner {
            most,
            unlimited,
            callers: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Counts one more, unless there are enough.
    pub(super) fn admit(&self, from: IpAddr) -> Option<Counted> {
        let from = from.to_canonical();
        if self.inner.unlimited.contains(&from) {
            return Some(Counted(None));
        }
        let place = place(from);
        let mut callers = self.callers();
        let there = callers.entry(place).or_default();
        if *there >= self.inner.most {
            return None;
        }
        *there += 1;
        Some(Counted(Some((self.clone(), place))))
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // Counts have no state in which they could be left half changed.
        self.inner
            .callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some((addresses, place)) = self.0.take() {
            let mut callers = addresses.callers();
            if let Some(there) = callers.get_mut(&place) {
                *there -= 1;
                if *there == 0 {
                    callers.remove(&place);
                }
            }
        }
    }
}

/// What counts as one address: of version 6 a network of 64 bits, which is what one machine is given
/// at least.
fn place(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            const NETWORK: u128 = !0 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn one_address_keeps_nobody_else_out() {
        let addresses = Addresses::new(2, vec![at("10.0.0.9")]);
        let first = addresses.admit(at("10.0.0.1")).unwrap();
        let _second = addresses.admit(at("::ffff:10.0.0.1")).unwrap();
        assert!(addresses.admit(at("10.0.0.1")).is_none());
        assert!(addresses.admit(at("10.0.0.2")).is_some());
        drop(first);
        assert!(addresses.admit(at("10.0.0.1")).is_some());
        let proxied: Vec<_> = (0..9).map(|_| addresses.admit(at("10.0.0.9"))).collect();
        assert!(proxied.iter().all(Option::is_some));
    }

    #[test]
    fn one_network_of_version_6_is_one_address_and_nothing_is_kept_of_who_is_gone() {
        let addresses = Addresses::new(1, Vec::new());
        let one = addresses.admit(at("2001:db8::1")).unwrap();
        assert!(addresses.admit(at("2001:db8::2")).is_none());
        assert!(addresses.admit(at("2001:db8:0:1::1")).is_some());
        drop(one);
        assert!(addresses.callers().is_empty());
    }
}
