//! What the settings of a profile may be, and what changed of them.

use glovebox_store::{ProfileSettings, StoreError};

use super::profiles::ProfileError;

/// Refuses values with which nothing could work.
pub(super) fn check(settings: &ProfileSettings) -> Result<(), ProfileError> {
    let known = glovebox_protocol::artifact::Sweep::DEFAULT_TYPES;
    let types_are_known = settings
        .artifact_types
        .iter()
        .all(|one| known.contains(&one.as_str()));
    let rules: [(&'static str, bool, &str); 9] = [
        (
            "idle_seconds",
            (10..=86_400).contains(&settings.idle_seconds),
            "is from 10 to 86400",
        ),
        (
            "hard_seconds",
            (60..=604_800).contains(&settings.hard_seconds)
                && settings.hard_seconds >= settings.idle_seconds,
            "is from 60 to 604800, and no less than idle_seconds",
        ),
        (
            "start_timeout_seconds",
            (1..=600).contains(&settings.start_timeout_seconds),
            "is from 1 to 600",
        ),
        (
            "max_execution_seconds",
            (1..=600).contains(&settings.max_execution_seconds),
            "is from 1 to 600",
        ),
        (
            "execution_seconds",
            (1..=settings.max_execution_seconds).contains(&settings.execution_seconds),
            "is from 1 to max_execution_seconds",
        ),
        (
            "workspace_disk_mb",
            (64..=16_384).contains(&settings.workspace_disk_mb),
            "is from 64 to 16384",
        ),
        (
            "max_artifacts",
            (1..=1_000).contains(&settings.max_artifacts),
            "is from 1 to 1000",
        ),
        (
            "artifact_types",
            types_are_known,
            "are among pptx, xlsx, docx, pdf, csv, tsv, json, txt, md, html, png, jpg, jpeg, gif, webp, svg",
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
