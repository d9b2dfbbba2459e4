//! What the server counts of itself, for Prometheus.
//!
//! Nothing of a person, a workspace or a secret is in it: every label has one of a few values that
//! stand in the code. Routes are named by their template, and what has none is `other`, so that
//! nobody can make new series by asking for new addresses. `docs/reference/metrics.md` lists all.

mod looked;
mod outcomes;

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use glovebox_protocol::event::EventBody;
use glovebox_protocol::thread::ReplyOutcome;
use http::{Method, StatusCode};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::app::gate;
use looked::Looked;

/// What the metrics are written as.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Upper bounds of requests, in seconds: from an answer out of memory to a sandbox that is made.
const REQUEST_SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Upper bounds of sweeps, in seconds: one that takes longer than the time between two is late.
const SWEEP_SECONDS: [f64; 8] = [0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// One label, with a value that stands in the code.
type Word = [(&'static str, &'static str); 1];

/// Labels of which one is a route's template.
type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

type Histograms = Family<Labels<2>, Histogram, fn() -> Histogram>;

/// Everything that is counted, and what was last seen of the rest.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels<3>, Counter>,
    request_seconds: Histograms,
    sandboxes: Family<Word, Counter>,
    denials: Family<Word, Counter>,
    replies: Family<Word, Counter>,
    executions: Family<Word, Counter>,
    previews: Family<Word, Counter>,
    sweeps: Family<Word, Counter>,
    sweep_seconds: Histogram,
    lost_lines: Counter,
    looked: Looked,
}

fn request_histogram() -> Histogram {
    Histogram::new(REQUEST_SECONDS)
}

/// A family with all its values from the start, so that the first time is seen as a change.
fn counters(label: &'static str, values: &[&'static str]) -> Family<Word, Counter> {
    let family = Family::<Word, Counter>::default();
    for value in values {
        drop(family.get_or_create(&[(label, *value)]));
    }
    family
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("glovebox"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(request_histogram),
            sandboxes: counters("outcome", &["ready", "failed"]),
            denials: counters("denial", &gate::DENIALS),
            replies: counters("outcome", &outcomes::OF_REPLIES),
            executions: counters("outcome", &outcomes::ALL),
            previews: counters("outcome", &["ready", "failed"]),
            sweeps: counters("outcome", &["done", "failed"]),
            sweep_seconds: Histogram::new(SWEEP_SECONDS),
            lost_lines: Counter::default(),
            looked: Looked::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let all = &mut self.registry;
        all.register(
            "http_requests",
            "Requests that were answered, by the template of their route",
            self.requests.clone(),
        );
        all.register(
            "http_request_duration_seconds",
            "Time until an answer began; a stream of events goes on after that",
            self.request_seconds.clone(),
        );
        all.register(
            "sandboxes_started",
            "Sandboxes that passed the gate and were asked for at a gateway",
            self.sandboxes.clone(),
        );
        all.register(
            "gate_denials",
            "What the gate refused, new sandboxes and code in one that is there, by the name of the denial",
            self.denials.clone(),
        );
        all.register(
            "replies",
            "Replies of chat that ended, by how; `abandoned` are those whose server was ended",
            self.replies.clone(),
        );
        all.register(
            "executions",
            "Executions that ended, by how; `abandoned` are those whose server was ended",
            self.executions.clone(),
        );
        all.register(
            "previews",
            "Previews that were made, or given up for a reason that is told",
            self.previews.clone(),
        );
        all.register(
            "worker_sweeps",
            "How often the worker looked through sandboxes and leases",
            self.sweeps.clone(),
        );
        all.register(
            "worker_sweep_duration_seconds",
            "How long the worker looked through them each time",
            self.sweep_seconds.clone(),
        );
        all.register(
            "log_lines_lost",
            "Lines of the log that could not be written, or were more than whoever takes them takes",
            self.lost_lines.clone(),
        );
        self.looked.register(all);
    }

    /// A request was answered. `route` is the template of its route, where it has one.
    pub(crate) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let route = route.map_or(Cow::Borrowed("other"), |route| Cow::Owned(route.to_owned()));
        let method = Cow::Borrowed(method_word(method));
        let status = Cow::Owned(status.as_str().to_owned());
        self.request_seconds
            .get_or_create(&[("method", method.clone()), ("route", route.clone())])
            .observe(took.as_secs_f64());
        let labels = [("method", method), ("route", route), ("status", status)];
        self.requests.get_or_create(&labels).inc();
    }

    /// A gateway made a sandbox, or did not.
    pub(crate) fn sandbox_started(&self, is_ready: bool) {
        let outcome = if is_ready { "ready" } else { "failed" };
        self.sandboxes.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A preview was made, or given up.
    pub(crate) fn preview_made(&self, is_ready: bool) {
        let outcome = if is_ready { "ready" } else { "failed" };
        self.previews.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// The gate refused something.
    pub(crate) fn denied(&self, name: &'static str) {
        self.denials.get_or_create(&[("denial", name)]).inc();
    }

    /// An execution ended with this event.
    pub(crate) fn executed(&self, last: &EventBody) {
        let outcome = outcomes::of(last);
        self.executions.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// An execution was found that nobody drives any more.
    pub(crate) fn abandoned(&self) {
        let label = [("outcome", outcomes::ABANDONED)];
        self.executions.get_or_create(&label).inc();
    }

    /// A reply of chat ended.
    pub(crate) fn replied(&self, outcome: ReplyOutcome) {
        let outcome = outcomes::of_reply(outcome);
        self.replies.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A reply of chat was found that nobody drives any more.
    pub(crate) fn reply_abandoned(&self) {
        let label = [("outcome", outcomes::ABANDONED)];
        self.replies.get_or_create(&label).inc();
    }

    /// The worker looked everything through, or could not.
    pub(crate) fn swept(&self, begun: Instant, is_done: bool) {
        let outcome = if is_done { "done" } else { "failed" };
        self.sweeps.get_or_create(&[("outcome", outcome)]).inc();
        self.sweep_seconds.observe(begun.elapsed().as_secs_f64());
        if is_done {
            self.looked.swept();
        }
    }

    /// So many lines of the log are lost by now.
    pub(crate) fn lost_lines(&self, count: u64) {
        // It only grows, whoever counts.
        self.lost_lines.inner().fetch_max(count, Ordering::Relaxed);
    }

    /// What was last seen of what is not counted.
    pub(crate) fn looked(&self) -> &Looked {
        &self.looked
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn written(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

/// The method, of those that the API has. Others are whatever somebody sends.
fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_makes_up_makes_no_new_series() {
        let metrics = Metrics::default();
        for made_up in ["BREW", "STEAL"] {
            let method = Method::from_bytes(made_up.as_bytes()).unwrap();
            metrics.answered(None, &method, StatusCode::NOT_FOUND, Duration::ZERO);
        }
        let text = metrics.written();
        let counted: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("glovebox_http_requests_total"))
            .collect();
        assert_eq!(
            counted,
            [r#"glovebox_http_requests_total{method="other",route="other",status="404"} 2"#]
        );
    }

    #[test]
    fn what_may_happen_is_there_before_it_does() {
        let text = Metrics::default().written();
        for series in [
            r#"glovebox_gate_denials_total{denial="quota:max_concurrent"} 0"#,
            r#"glovebox_executions_total{outcome="abandoned"} 0"#,
            r#"glovebox_worker_sweeps_total{outcome="failed"} 0"#,
        ] {
            assert!(text.contains(series), "{text}");
        }
    }
}
