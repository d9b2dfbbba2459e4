//! Medians and percentiles of a row of measurements. Knows nothing of what was measured.

/// A row of measurements, smallest first, at least one.
#[derive(Debug, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Takes measurements in any order.
    ///
    /// # Errors
    /// When there are none, or one is no number.
    pub(crate) fn new(mut samples: Vec<f64>) -> anyhow::Result<Self> {
        anyhow::ensure!(!samples.is_empty(), "nothing was measured");
        anyhow::ensure!(
            samples.iter().all(|sample| sample.is_finite()),
            "a measurement is no number"
        );
        samples.sort_by(f64::total_cmp);
        Ok(Self(samples))
    }

    /// The middle one, or the mean of the middle two.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 {
            self.0[middle]
        } else {
            f64::midpoint(self.0[middle - 1], self.0[middle])
        }
    }

    /// The smallest one that at least `percent` of a hundred do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The largest one.
    pub(crate) fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_row_is_between_the_middle_two() {
        assert_eq!(
            Samples::new(vec![4.0, 1.0, 3.0, 2.0]).unwrap().median(),
            2.5
        );
        assert_eq!(Samples::new(vec![9.0, 1.0, 3.0]).unwrap().median(), 3.0);
    }

    #[test]
    fn a_percentile_is_one_of_the_measurements() {
        let row = Samples::new((1..=200).map(f64::from).collect()).unwrap();
        assert_eq!(row.percentile(99), 198.0);
        assert_eq!(row.percentile(50), 100.0);
        let one = Samples::new(vec![7.0]).unwrap();
        assert_eq!((one.percentile(99), one.max(), one.count()), (7.0, 7.0, 1));
    }

    #[test]
    fn an_empty_row_is_refused() {
        assert!(Samples::new(Vec::new()).is_err());
        assert!(Samples::new(vec![f64::NAN]).is_err());
    }
}
