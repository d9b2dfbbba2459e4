//! Runtime profiles and their proofs.

use chrono::{DateTime, Utc};
use glovebox_store::{CheckRecord, Profile, ProfileSettings};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::profiles::ProfileDetail;
use crate::http::profile_settings::ProfileSettingsView;

/// A runtime profile, in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileView {
    pub(crate) id: String,
    /// `embedded`, …
    pub(crate) runtime: String,
    pub(crate) name: String,
    /// `draft`, `active` or `disabled`.
    pub(crate) state: String,
    /// To be sent back with a change.
    pub(crate) version: i64,
    #[schema(value_type = ProfileSettingsView)]
    pub(crate) settings: ProfileSettings,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) activated_at: Option<DateTime<Utc>>,
}

impl From<Profile> for ProfileView {
    fn from(profile: Profile) -> Self {
        Self {
            id: profile.id.to_string(),
            runtime: profile.runtime,
            name: profile.name,
            state: profile.state.to_string(),
            version: profile.version,
            settings: profile.settings,
            created_at: profile.created_at,
            activated_at: profile.activated_at,
        }
    }
}

/// One look at a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckView {
    pub(crate) is_passed: bool,
    /// `checks` of a test, `results` of a canary, or `error` where there are none.
    #[schema(value_type = Object)]
    pub(crate) report: Value,
    pub(crate) taken_at: DateTime<Utc>,
}

impl From<CheckRecord> for CheckView {
    fn from(check: CheckRecord) -> Self {
        Self {
            is_passed: check.is_passed,
            report: check.report,
            taken_at: check.taken_at,
        }
    }
}

/// Somebody has read what a profile does not promise.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcknowledgementView {
    pub(crate) name: String,
    /// The address of who did.
    pub(crate) by: String,
    pub(crate) at: DateTime<Utc>,
}

/// A profile with its proofs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileDetailView {
    pub(crate) profile: ProfileView,
    pub(crate) is_default: bool,
    pub(crate) test: Option<CheckView>,
    pub(crate) canary: Option<CheckView>,
    pub(crate) acknowledgements: Vec<AcknowledgementView>,
    pub(crate) acknowledgements_required: Vec<String>,
    /// `no_recent_test`, `no_recent_canary`, `ack_required`: what stands in the way of activating.
    pub(crate) blockers: Vec<String>,
}

impl From<ProfileDetail> for ProfileDetailView {
    fn from(detail: ProfileDetail) -> Self {
        let words = |words: Vec<&'static str>| words.into_iter().map(String::from).collect();
        Self {
            profile: detail.profile.into(),
            is_default: detail.is_default,
            test: detail.test.map(CheckView::from),
            canary: detail.canary.map(CheckView::from),
            acknowledgements: detail
                .acknowledgements
                .into_iter()
                .map(|one| AcknowledgementView {
                    name: one.name,
                    by: one.by,
                    at: one.at,
                })
                .collect(),
            acknowledgements_required: words(detail.acknowledgements_required),
            blockers: words(detail.blockers),
        }
    }
}
