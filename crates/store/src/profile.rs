//! Runtime profiles: where sandboxes run and within which limits, and the proofs for it.

use chrono::{DateTime, Utc};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::artifact::Sweep;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{CheckId, ProfileId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json, unique};
use crate::error::StoreError;
use crate::words::words;

words! {
    /// Whether sandboxes are made on a profile.
    ProfileState {
        /// Not proven yet.
        Draft = "draft",
        /// Yes.
        Active = "active",
        /// Not any more; those that run end by their limits.
        Disabled = "disabled",
    }
}

words! {
    /// What a look at a profile proves.
    CheckKind {
        /// That the runtime can do what is needed.
        Test = "test",
        /// That a sandbox reaches nothing.
        Canary = "canary",
    }
}

/// How sandboxes of a profile are made, and when they end. Stored as a document: what a newer
/// version has written beside it does not keep this one from reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileSettings {
    /// After how many seconds without use the processes of a sandbox end.
    pub idle_seconds: u32,
    /// After how many seconds a sandbox ends, used or not.
    pub hard_seconds: u32,
    /// The longest job, in seconds.
    pub max_job_seconds: u32,
    /// How long a sandbox may take to start, in seconds.
    pub start_timeout_seconds: u32,
    /// How long one execution may take when it does not say, in seconds.
    pub execution_seconds: u32,
    /// How long one execution may take at most, in seconds.
    pub max_execution_seconds: u32,
    /// The size of a workspace's folder, in MB of 1 048 576 bytes.
    pub workspace_disk_mb: u32,
    /// The class of a sandbox when it does not say.
    pub class: ResourceClass,
    /// How kernels come into being: as copies of a process that has the libraries loaded and that
    /// an organization's sandboxes share, or each by a program start of its own.
    pub start: Start,
    /// How many sandboxes are kept ready.
    pub warm_pool: u32,
    /// Which file types may leave a sandbox.
    pub artifact_types: Vec<String>,
    /// How many files one collection takes.
    pub max_artifacts: u32,
    /// How many bytes one collection takes.
    pub max_artifact_bytes: u64,
    /// How many characters of output are kept of one execution.
    pub max_output_characters: u32,
    /// How large one input file may be, in bytes.
    pub max_input_file_bytes: u64,
    /// How large all input files of a sandbox may be together, in bytes.
    pub max_input_total_bytes: u64,
    /// Whether long jobs may be started.
    pub jobs: bool,
}

impl Default for ProfileSettings {
    fn default() -> Self {
        let sweep = Sweep::default();
        Self {
            idle_seconds: 600,
            hard_seconds: 3_600,
            max_job_seconds: 28_800,
            start_timeout_seconds: 90,
            execution_seconds: 60,
            max_execution_seconds: 600,
            workspace_disk_mb: 1_024,
            class: ResourceClass::Small,
            start: Start::Template,
            warm_pool: 0,
            artifact_types: sweep.types,
            max_artifacts: sweep.max_files,
            max_artifact_bytes: sweep.max_bytes,
            max_output_characters: 50_000,
            max_input_file_bytes: 25 * 1024 * 1024,
            max_input_total_bytes: 256 * 1024 * 1024,
            jobs: false,
        }
    }
}

/// One named, complete target for sandboxes.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// What runs its sandboxes: `embedded`, `docker`, …
    pub runtime: String,
    /// Its name.
    pub name: String,
    /// Whether sandboxes are made on it.
    pub state: ProfileState,
    /// How they are made.
    pub settings: ProfileSettings,
    /// Counts up with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last activated.
    pub activated_at: Option<DateTime<Utc>>,
}

/// One look at a profile.
#[derive(Debug, Clone)]
pub struct CheckRecord {
    /// Its id.
    pub id: CheckId,
    /// What it was.
    pub kind: CheckKind,
    /// Whether everything was as it has to be.
    pub is_passed: bool,
    /// What was seen, in full.
    pub report: Value,
    /// When.
    pub taken_at: DateTime<Utc>,
}

/// Somebody has read what a profile does not promise.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    /// What: `shared_kernel`, …
    pub name: String,
    /// The address of who did.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
}

const COLUMNS: &str = "id, runtime, name, state, settings, version, created_at, activated_at";

fn read(row: &AnyRow) -> Result<Profile, StoreError> {
    Ok(Profile {
        id: row.word("id")?,
        runtime: row.text("runtime")?,
        name: row.text("name")?,
        state: row.word("state")?,
        settings: row.document("settings")?,
        version: row.number("version")?,
        created_at: row.time("created_at")?,
        activated_at: row.maybe_time("activated_at")?,
    })
}

impl Store {
    /// The profile with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn profile(&self, id: ProfileId) -> Result<Option<Profile>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM profiles WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a profile"))?;
        row.as_ref().map(read).transpose()
    }

    /// All profiles, by age.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn profiles(&self) -> Result<Vec<Profile>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM profiles ORDER BY id"
        )))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing profiles"))?;
        rows.iter().map(read).collect()
    }

    /// The last look of a kind at a profile.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn last_check(
        &self,
        profile: ProfileId,
        kind: CheckKind,
    ) -> Result<Option<CheckRecord>, StoreError> {
        let row = sqlx::query(
            "SELECT id, kind, is_passed, report, taken_at FROM profile_checks \
             WHERE profile_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1",
        )
        .bind(profile.to_string())
        .bind(kind.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a check"))?;
        row.map(|row| {
            Ok(CheckRecord {
                id: row.word("id")?,
                kind: row.word("kind")?,
                is_passed: row.flag("is_passed")?,
                report: row.document("report")?,
                taken_at: row.time("taken_at")?,
            })
        })
        .transpose()
    }

    /// What has been acknowledged of a profile.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn acknowledgements(
        &self,
        profile: ProfileId,
    ) -> Result<Vec<Acknowledgement>, StoreError> {
        let rows = sqlx::query(
            "SELECT acknowledgements.name, acknowledgements.at, users.email \
             FROM acknowledgements JOIN users ON users.id = acknowledgements.user_id \
             WHERE profile_id = $1 ORDER BY acknowledgements.name",
        )
        .bind(profile.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading acknowledgements"))?;
        rows.iter()
            .map(|row| {
                Ok(Acknowledgement {
                    name: row.text("name")?,
                    by: row.text("email")?,
                    at: row.time("at")?,
                })
            })
            .collect()
    }
}

impl Transaction {
    /// The profile with this id, which nobody else changes until these changes are done.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn hold_profile(&mut self, id: ProfileId) -> Result<Option<Profile>, StoreError> {
        let select = "SELECT 1 FROM profiles WHERE id = $1 FOR NO KEY UPDATE";
        self.hold(select, &id.to_string(), "holding a profile")
            .await?;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM profiles WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("reading a profile"))?;
        row.as_ref().map(read).transpose()
    }

    /// Makes a profile that is not proven yet.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn create_profile(
        &mut self,
        runtime: &str,
        name: &str,
        settings: &ProfileSettings,
    ) -> Result<ProfileId, StoreError> {
        let id = ProfileId::new();
        sqlx::query(
            "INSERT INTO profiles (id, runtime, name, state, settings, version, created_at) \
             VALUES ($1, $2, $3, 'draft', $4, 1, $5)",
        )
        .bind(id.to_string())
        .bind(runtime)
        .bind(name)
        .bind(to_json("settings", settings)?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(unique("making a profile", "that name of a profile"))?;
        Ok(id)
    }

    /// Writes a profile back that was read at `profile.version`.
    ///
    /// # Errors
    /// When somebody else changed it since, or the name is taken.
    pub async fn update_profile(&mut self, profile: &Profile) -> Result<(), StoreError> {
        let done = sqlx::query(
            "UPDATE profiles SET name = $2, state = $3, settings = $4, activated_at = $5, \
             version = version + 1 WHERE id = $1 AND version = $6",
        )
        .bind(profile.id.to_string())
        .bind(&profile.name)
        .bind(profile.state.as_str())
        .bind(to_json("settings", &profile.settings)?)
        .bind(profile.activated_at.map(crate::database::to_ms))
        .bind(profile.version)
        .execute(&mut *self.inner)
        .await
        .map_err(unique("changing a profile", "that name of a profile"))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Conflict {
                what: "the profile",
            });
        }
        Ok(())
    }

    /// Keeps what a look at a profile has seen.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn keep_check(
        &mut self,
        profile: ProfileId,
        kind: CheckKind,
        is_passed: bool,
        report: &Value,
    ) -> Result<CheckId, StoreError> {
        let id = CheckId::new();
        sqlx::query(
            "INSERT INTO profile_checks (id, profile_id, kind, is_passed, report, taken_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id.to_string())
        .bind(profile.to_string())
        .bind(kind.as_str())
        .bind(i64::from(is_passed))
        .bind(to_json("report", report)?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("keeping a check"))?;
        Ok(id)
    }

    /// Keeps that somebody has read what a profile does not promise.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn acknowledge(
        &mut self,
        profile: ProfileId,
        name: &str,
        user: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO acknowledgements (profile_id, name, user_id, at) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (profile_id, name) DO NOTHING",
        )
        .bind(profile.to_string())
        .bind(name)
        .bind(user.to_string())
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("keeping an acknowledgement"))?;
        Ok(())
    }
}
