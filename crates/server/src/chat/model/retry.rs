//! When a question is asked again. Only before the first byte of an answer: what was said once is
//! never said twice.

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;

use super::error::ModelError;

/// How often a question is asked at most.
pub(super) const ATTEMPTS: u32 = 3;

/// The pause before the second attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause that somebody waits through who wants a reply.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How long to wait before the attempt after this one, counted from 1; nothing where another makes
/// no sense. `jitter` from 0 to 255 keeps many who failed at once from coming back at once.
pub(super) fn pause(error: &ModelError, attempt: u32, jitter: u8) -> Option<Duration> {
    if attempt >= ATTEMPTS || !is_passing(error) {
        return None;
    }
    let asked = match error {
        ModelError::Refused(refusal) => refusal.retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    if asked > LONGEST_PAUSE {
        return None;
    }
    let pause = FIRST_PAUSE * 2_u32.pow(attempt.saturating_sub(1));
    let pause = pause + pause / 2 * u32::from(jitter) / 255;
    Some(pause.max(asked))
}

/// Whether what went wrong may be over in a moment.
fn is_passing(error: &ModelError) -> bool {
    match error {
        ModelError::Connect { .. } | ModelError::Broken(_) | ModelError::Cut => true,
        ModelError::Refused(refusal) => {
            error.code() == "model_busy" && refusal.status.as_u16() == 429
                || matches!(
                    refusal.status.as_u16(),
                    408 | 425 | 500 | 502 | 503 | 504 | 529
                ) && !refusal.is_context()
        }
        _ => false,
    }
}

/// How long an endpoint asks us to wait.
pub(super) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1_000.0).ok();
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some((at.to_utc() - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::error::Refusal;
    use super::*;

    fn refused(status: u16, said: &str, retry_after: Option<u64>) -> ModelError {
        ModelError::Refused(Box::new(Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            model: "m".into(),
            said: Some(said.into()),
            retry_after: retry_after.map(Duration::from_secs),
        }))
    }

    #[test]
    fn what_may_pass_is_tried_again_and_nothing_else() {
        for (error, again) in [
            (refused(429, "slow down", None), true),
            (refused(429, "insufficient_quota", None), false),
            (refused(503, "", None), true),
            (refused(500, "", None), true),
            (refused(500, "maximum context length", None), false),
            (refused(529, "overloaded", None), true),
            (refused(401, "", None), false),
            (refused(404, "", None), false),
            (refused(400, "", None), false),
            (ModelError::Cut, true),
            (ModelError::Silent { seconds: 1 }, false),
            (ModelError::TooLong { limit_bytes: 1 }, false),
        ] {
            assert_eq!(pause(&error, 1, 0).is_some(), again, "{error}");
            assert!(pause(&error, ATTEMPTS, 0).is_none());
        }
    }

    #[test]
    fn pauses_grow_and_follow_the_endpoint() {
        let ms = Duration::from_millis;
        assert_eq!(pause(&ModelError::Cut, 1, 0), Some(ms(500)));
        assert_eq!(pause(&ModelError::Cut, 2, 0), Some(ms(1_000)));
        assert_eq!(pause(&ModelError::Cut, 1, 255), Some(ms(750)));
        assert_eq!(pause(&refused(429, "", Some(7)), 1, 0), Some(ms(7_000)));
        assert_eq!(pause(&refused(429, "", Some(0)), 1, 0), Some(ms(500)));
        assert_eq!(pause(&refused(429, "", Some(600)), 1, 0), None);
    }

    #[test]
    fn the_endpoints_wish_is_read_in_each_form() {
        let now = DateTime::parse_from_rfc2822("Mon, 30 Nov 2026 10:00:00 GMT").unwrap();
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, now.to_utc()).map(|wait| wait.as_millis())
        };
        assert_eq!(read("retry-after", "3"), Some(3_000));
        assert_eq!(read("retry-after", "0.5"), Some(500));
        assert_eq!(read("retry-after-ms", "250"), Some(250));
        assert_eq!(
            read("retry-after", "Mon, 30 Nov 2026 10:00:09 GMT"),
            Some(9_000)
        );
        assert_eq!(
            read("retry-after", "Mon, 30 Nov 2026 09:00:00 GMT"),
            Some(0)
        );
        for bad in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(read("retry-after", bad), None, "{bad}");
        }
    }
}
