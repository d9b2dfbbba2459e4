//! What the settings of a profile may be, and what changed of them.

use std::ops::RangeInclusive;

use glovebox_store::{ProfileSettings, StoreError};

use super::profiles::ProfileError;

/// The largest size that can be set: that of the largest workspace folder.
const MAX_BYTES: u64 = 16_384 << 20;

/// The numbers among the settings, with what each may be. Beyond that one is a slip.
fn numbers(settings: &ProfileSettings) -> [(&'static str, u64, RangeInclusive<u64>); 13] {
    [
        ("idle_seconds", settings.idle_seconds.into(), 10..=86_400),
        ("hard_seconds", settings.hard_seconds.into(), 60..=604_800),
        (
            "max_job_seconds",
            settings.max_job_seconds.into(),
            1..=604_800,
        ),
        (
            "start_timeout_seconds",
            settings.start_timeout_seconds.into(),
            1..=600,
        ),
        (
            "max_execution_seconds",
            settings.max_execution_seconds.into(),
            1..=600,
        ),
        (
            "execution_seconds",
            settings.execution_seconds.into(),
            1..=600,
        ),
        (
            "workspace_disk_mb",
            settings.workspace_disk_mb.into(),
            64..=16_384,
        ),
        ("warm_pool", settings.warm_pool.into(), 0..=100),
        ("max_artifacts", settings.max_artifacts.into(), 1..=1_000),
        (
            "max_artifact_bytes",
            settings.max_artifact_bytes,
            0..=MAX_BYTES,
        ),
        (
            "max_output_characters",
            settings.max_output_characters.into(),
            0..=10_000_000,
        ),
        (
            "max_input_file_bytes",
            settings.max_input_file_bytes,
            0..=MAX_BYTES,
        ),
        (
            "max_input_total_bytes",
            settings.max_input_total_bytes,
            0..=MAX_BYTES,
        ),
    ]
}

/// Refuses values with which nothing could work.
pub(super) fn check(settings: &ProfileSettings) -> Result<(), ProfileError> {
    for (setting, value, range) in numbers(settings) {
        if !range.contains(&value) {
            let why = match range.into_inner() {
                (0, most) => format!("is at most {most}"),
                (least, most) => format!("is from {least} to {most}"),
            };
            return Err(ProfileError::Setting { setting, why });
        }
    }
    let known = glovebox_protocol::artifact::Sweep::DEFAULT_TYPES;
    let mut types = settings.artifact_types.clone();
    types.sort_unstable();
    types.dedup();
    let types_are_known = types.iter().all(|one| known.contains(&one.as_str()));
    let rules = [
        (
            "hard_seconds",
            settings.hard_seconds >= settings.idle_seconds,
            "is no less than idle_seconds",
        ),
        (
            "execution_seconds",
            settings.execution_seconds <= settings.max_execution_seconds,
            "is from 1 to max_execution_seconds",
        ),
        (
            "artifact_types",
            types_are_known,
            "are among pptx, xlsx, docx, pdf, csv, tsv, json, txt, md, html, png, jpg, jpeg, gif, webp, svg",
        ),
        (
            "artifact_types",
            types.len() == settings.artifact_types.len(),
            "hold each type once",
        ),
        (
            "max_input_file_bytes",
            settings.max_input_file_bytes <= settings.max_input_total_bytes,
            "is no more than max_input_total_bytes",
        ),
    ];
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        None => Ok(()),
        Some((setting, _, why)) => Err(ProfileError::Setting {
            setting,
            why: why.into(),
        }),
    }
}

/// The names of the settings in which two differ.
pub(super) fn changed(
    before: &ProfileSettings,
    after: &ProfileSettings,
) -> Result<Vec<String>, StoreError> {
    let document = |settings: &ProfileSettings| {
        serde_json::to_value(settings).map_err(|source| StoreError::Document {
            column: "settings",
            source,
        })
    };
    let (before, after) = (document(before)?, document(after)?);
    let fields = after.as_object().into_iter().flatten();
    Ok(fields
        .filter(|(name, value)| before.get(name.as_str()) != Some(*value))
        .map(|(name, _)| format!("settings.{name}"))
        .collect())
}
