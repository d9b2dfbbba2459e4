//! Figures, and the two forms in which they are given: a line of JSON each, and a table.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::statistics::Samples;

/// One measured figure, in the form that `target/bench.jsonl` has.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    /// The goal that it belongs to, such as `G2`.
    goal: &'static str,
    /// Its name with the unit at the end.
    name: String,
    /// Nothing where it could not be measured.
    value: Option<f64>,
    /// What was measured beside us, with its version.
    peer: Option<String>,
    peer_value: Option<f64>,
    /// How many measurements are in `value`.
    runs: usize,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_measured: Option<String>,
    #[serde(skip)]
    bound: Option<Bound>,
}

/// What a figure is held to.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl Figure {
    /// A figure without goal or peer; `name` is without the goal in front.
    pub(crate) fn new(goal: &'static str, name: &str, value: f64, runs: usize) -> Self {
        Self {
            goal,
            name: format!("{goal}.{name}"),
            value: Some(rounded(value)),
            peer: None,
            peer_value: None,
            runs,
            not_measured: None,
            bound: None,
        }
    }

    /// One that cannot be measured on this machine, and why.
    pub(crate) fn not_measured(goal: &'static str, name: &str, why: &str) -> Self {
        Self {
            value: None,
            not_measured: Some(why.into()),
            ..Self::new(goal, name, 0.0, 0)
        }
    }

    /// The median of a row of measurements.
    pub(crate) fn median(goal: &'static str, name: &str, samples: &Samples) -> Self {
        Self::new(goal, name, samples.median(), samples.count())
    }

    /// Sets what was measured beside us in the same run.
    pub(crate) fn beside(mut self, peer: &str, value: f64) -> Self {
        self.peer = Some(peer.into());
        self.peer_value = Some(rounded(value));
        self
    }

    /// Sets the goal: no more than this.
    pub(crate) const fn at_most(mut self, bound: f64) -> Self {
        self.bound = Some(Bound::AtMost(bound));
        self
    }

    /// Sets the goal: no less than this.
    pub(crate) const fn at_least(mut self, bound: f64) -> Self {
        self.bound = Some(Bound::AtLeast(bound));
        self
    }

    /// How many times better we are than the peer; under 1 is worse.
    fn ratio(&self) -> Option<f64> {
        let (value, peer) = (self.value?, self.peer_value?);
        let (better, worse) = if self.name.ends_with("_per_s") {
            (value, peer)
        } else {
            (peer, value)
        };
        (worse > 0.0).then(|| better / worse)
    }

    /// The goal that it belongs to.
    pub(crate) const fn goal(&self) -> &'static str {
        self.goal
    }

    /// Its name, the goal in front.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is as good as its goal, where it has one and was measured.
    pub(crate) fn is_met(&self) -> Option<bool> {
        Some(self.bound?.is_met(self.value?))
    }

    /// What it was measured beside, with its version.
    pub(crate) fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// Its name, value, goal, whether that is met, ratio, runs and peer, as [`TITLES`] has them.
    pub(crate) fn cells(&self) -> [String; 7] {
        let bound = match self.bound {
            Some(Bound::AtMost(bound)) => format!("≤ {}", short(bound)),
            Some(Bound::AtLeast(bound)) => format!("≥ {}", short(bound)),
            None => String::new(),
        };
        let met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let peer = match (&self.peer, self.peer_value, &self.not_measured) {
            (.., Some(why)) => format!("not measured: {why}"),
            (Some(peer), Some(value), _) => format!("{} ({peer})", short(value)),
            _ => String::new(),
        };
        [
            self.name.clone(),
            self.value.map(short).unwrap_or_default(),
            bound,
            met.into(),
            self.ratio()
                .map(|ratio| format!("{}×", short(ratio)))
                .unwrap_or_default(),
            self.runs.to_string(),
            peer,
        ]
    }
}

/// What stands above the columns of a table of figures.
pub(crate) const TITLES: [&str; 7] = ["figure", "value", "goal", "met", "ratio", "runs", "peer"];

/// All figures as a table. The ratio says how many times better than the peer we are.
pub(crate) fn table(figures: &[Figure]) -> String {
    let rows: Vec<_> = std::iter::once(TITLES.map(String::from))
        .chain(figures.iter().map(Figure::cells))
        .collect();
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0);
            // Writing to a `String` cannot fail.
            let _ = match column {
                0 | 3 => write!(text, "{cell:<width$}  "),
                6 => write!(text, "{cell}"),
                _ => write!(text, "{cell:>width$}  "),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Writes a line of JSON for each figure.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_lines(path: &Path, figures: &[Figure]) -> Result<()> {
    let mut lines = String::new();
    for figure in figures {
        lines.push_str(&serde_json::to_string(figure).context("writing a figure as JSON")?);
        lines.push('\n');
    }
    fs_err::write(path, lines)?;
    Ok(())
}

/// Four places are more than any of this is exact to.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn short(value: f64) -> String {
    let places = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_line_in_the_agreed_form() {
        let figure = Figure::new("G2", "fresh_bare_ms", 41.23, 30)
            .beside("bwrap 1", 10.0)
            .at_most(60.0);
        assert_eq!(
            serde_json::to_string(&figure).unwrap(),
            r#"{"goal":"G2","name":"G2.fresh_bare_ms","value":41.23,"peer":"bwrap 1","peer_value":10.0,"runs":30}"#
        );
    }

    #[test]
    fn what_cannot_be_measured_says_why() {
        let figure = Figure::not_measured("G8", "a_ms", "no engine answers").at_most(10.0);
        assert_eq!(figure.is_met(), None);
        let text = table(&[figure]);
        assert!(text.contains("not measured: no engine answers"), "{text}");
    }

    #[test]
    fn the_ratio_is_over_one_where_we_are_better() {
        let time = Figure::new("G2", "a_ms", 10.0, 1).beside("p", 40.0);
        let speed = Figure::new("G7", "a_mb_per_s", 10.0, 1).beside("p", 40.0);
        assert_eq!(time.ratio(), Some(4.0));
        assert_eq!(speed.ratio(), Some(0.25));
    }

    #[test]
    fn a_missed_goal_shows() {
        let text = table(&[
            Figure::new("G2", "a_ms", 10.0, 1).at_most(9.0),
            Figure::new("G6", "a_mb_per_s", 10.0, 1).at_least(9.0),
        ]);
        assert!(text.lines().nth(1).unwrap().contains("NO"), "{text}");
        assert!(text.lines().nth(2).unwrap().contains("yes"), "{text}");
    }
}
