use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::limits::Limits;

use super::*;

fn kind(trust_domain: &str) -> BoxKind {
    BoxKind {
        trust_domain: trust_domain.into(),
        start: Start::Template,
        limits: Limits::of(ResourceClass::Small),
        layers: Vec::new(),
    }
}

fn key(number: u64) -> BoxKey {
    BoxKey::of_number(number)
}

/// Makes a box of the kind that lacks most, `took` long. Gives the kind, and when it was ready.
fn refill(pools: &mut Pools, number: u64, now: Instant, took: Duration) -> (String, Instant) {
    let kind = pools.lacks(now).unwrap();
    let domain = kind.trust_domain.clone();
    pools.begin(kind, key(number), now);
    assert!(pools.lacks(now).is_err(), "one at a time");
    assert_eq!(pools.became_ready(now + took, Duration::ZERO), None);
    (domain, now + took)
}

const TOOK: Duration = Duration::from_millis(20);

#[test]
fn one_is_made_at_a_time_and_after_each_there_is_a_rest() {
    let mut pools = Pools::default();
    let start = Instant::now();
    assert_eq!(pools.keep(kind("a"), 2), []);
    let (_, ready) = refill(&mut pools, 1, start, TOOK);
    assert_eq!(pools.lacks(ready), Err(Some(ready + 4 * TOOK)));
    let (_, ready) = refill(&mut pools, 2, ready + 4 * TOOK, TOOK);
    assert_eq!(pools.lacks(ready + 4 * TOOK), Err(None));
    assert_eq!(pools.facts(ready)[0].ready, 2);
    assert_eq!(pools.facts(ready)[0].last_refill_us, 20_000);
}

#[test]
fn waiting_for_a_template_is_no_work_to_rest_from() {
    let mut pools = Pools::default();
    let start = Instant::now();
    pools.keep(kind("a"), 2);
    let wanted = pools.lacks(start).unwrap();
    pools.begin(wanted, key(1), start);
    let ready = start + Duration::from_secs(2);
    pools.became_ready(ready, Duration::from_secs(2) - TOOK);
    assert_eq!(pools.lacks(ready), Err(Some(ready + 4 * TOOK)));
}

#[test]
fn the_kind_that_lacks_most_is_next() {
    let mut pools = Pools::default();
    let mut now = Instant::now();
    pools.keep(kind("big"), 4);
    pools.keep(kind("small"), 1);
    let mut made = Vec::new();
    for number in 0..5 {
        let (domain, ready) = refill(&mut pools, number, now, TOOK);
        made.push(domain);
        now = ready + 4 * TOOK;
    }
    made[..2].sort();
    assert_eq!(made, ["big", "small", "big", "big", "big"]);
}

#[test]
fn each_is_taken_once_the_oldest_first() {
    let mut pools = Pools::default();
    let start = Instant::now();
    pools.keep(kind("a"), 2);
    let (_, ready) = refill(&mut pools, 1, start, TOOK);
    let (_, ready) = refill(&mut pools, 2, ready + 4 * TOOK, TOOK);
    assert_eq!(pools.take(&kind("b")), None);
    assert_eq!(pools.take(&kind("a")), Some(key(1)));
    assert_eq!(pools.take(&kind("a")), Some(key(2)));
    assert_eq!(pools.take(&kind("a")), None);
    let later = ready + Duration::from_secs(1);
    pools.count(&kind("a"), true, later);
    pools.count(&kind("a"), false, later);
    let facts = &pools.facts(later)[0];
    assert_eq!((facts.hits, facts.misses, facts.ready), (1, 1, 0));
    // Whoever has got one is given the machine for a moment.
    assert_eq!(pools.lacks(later), Err(Some(later + GIVEN_REST)));
}

#[test]
fn what_is_too_much_too_old_or_gone_leaves() {
    let mut pools = Pools::default();
    let mut now = Instant::now();
    pools.keep(kind("a"), 4);
    let mut moments = Vec::new();
    for number in 1..=4 {
        let (_, ready) = refill(&mut pools, number, now, TOOK);
        moments.push(ready);
        now = ready + 4 * TOOK;
    }
    assert_eq!(pools.keep(kind("a"), 3), [key(1)]);
    assert_eq!(pools.take_older_than(moments[1]), [key(2)]);
    assert_eq!(pools.age_out_these(&[key(3), key(9)]), [key(3)]);
    assert_eq!(pools.facts(now)[0].aged_out, 2);
    assert!(pools.forget(key(4), now));
    assert!(!pools.forget(key(4), now));
    assert_eq!(pools.facts(now)[0].ready, 0);
    let wanted = pools.lacks(now).unwrap();
    pools.begin(wanted, key(5), now);
    assert_eq!(pools.keep(kind("a"), 0), [key(5)]);
    assert_eq!(pools.facts(now), []);
    assert_eq!(pools.became_ready(now, Duration::ZERO), None);
}

#[test]
fn one_that_is_not_wanted_any_more_is_given_back() {
    let mut pools = Pools::default();
    let now = Instant::now();
    pools.keep(kind("a"), 2);
    let (_, ready) = refill(&mut pools, 1, now, TOOK);
    let now = ready + 4 * TOOK;
    let wanted = pools.lacks(now).unwrap();
    pools.begin(wanted, key(2), now);
    pools.keep(kind("a"), 1);
    assert_eq!(pools.became_ready(now, Duration::ZERO), Some(key(2)));
}

#[test]
fn failures_are_followed_by_longer_and_longer_rests() {
    let mut pools = Pools::default();
    let mut now = Instant::now();
    pools.keep(kind("a"), 1);
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let wanted = pools.lacks(now).unwrap();
        pools.begin(wanted, key(seconds), now);
        assert!(pools.forget(key(seconds), now));
        let until = now + Duration::from_secs(seconds);
        assert_eq!(pools.lacks(now), Err(Some(until)));
        now = until;
    }
    let (_, ready) = refill(&mut pools, 1, now, TOOK);
    assert!(pools.forget(key(1), ready));
    assert_eq!(pools.lacks(ready), Err(Some(ready + 4 * TOOK)));
}

#[test]
fn one_that_is_being_made_is_aged_out_too_and_that_is_no_failure() {
    let mut pools = Pools::default();
    let start = Instant::now();
    pools.keep(kind("a"), 2);
    let (_, ready) = refill(&mut pools, 1, start, TOOK);
    let now = ready + 4 * TOOK;
    let wanted = pools.lacks(now).unwrap();
    pools.begin(wanted, key(2), now);
    assert_eq!(pools.boxes().collect::<Vec<_>>(), [key(1), key(2)]);
    assert_eq!(pools.age_out_these(&[key(2)]), [key(2)]);
    assert!(!pools.forget(key(2), now));
    assert!(pools.lacks(now).is_ok());
    assert_eq!(pools.boxes().collect::<Vec<_>>(), [key(1)]);
}
