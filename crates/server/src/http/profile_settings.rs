//! The settings of a profile: as they are shown, and what is to be changed of them.

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_store::ProfileSettings;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::put;
use super::views::ClassName;

/// How sandboxes of a profile are made, and when they end.
#[derive(Debug, ToSchema)]
#[schema(as = ProfileSettings)]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) struct ProfileSettingsView {
    /// After how many seconds without use the processes of a sandbox end.
    idle_seconds: u32,
    /// After how many seconds a sandbox ends, used or not.
    hard_seconds: u32,
    /// The longest job, in seconds.
    max_job_seconds: u32,
    /// How long a sandbox may take to start, in seconds.
    start_timeout_seconds: u32,
    /// How long one execution may take when it does not say, in seconds.
    execution_seconds: u32,
    /// How long one execution may take at most, in seconds.
    max_execution_seconds: u32,
    /// The size of a workspace's folder, in MB of 1 048 576 bytes.
    workspace_disk_mb: u32,
    /// The class of a sandbox when it does not say.
    class: ClassName,
    start: StartName,
    /// How many sandboxes are kept ready.
    warm_pool: u32,
    /// Which file types may leave a sandbox.
    artifact_types: Vec<String>,
    /// How many files one collection takes.
    max_artifacts: u32,
    /// How many bytes one collection takes.
    max_artifact_bytes: u64,
    /// How many characters of output are kept of one execution.
    max_output_characters: u32,
    /// How large one input file may be, in bytes.
    max_input_file_bytes: u64,
    /// How large all input files of a sandbox may be together, in bytes.
    max_input_total_bytes: u64,
    /// Whether long jobs may be started.
    jobs: bool,
}

/// How kernels come into being.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) enum StartName {
    /// As copies of a process that has the libraries loaded and that an organization's sandboxes
    /// share.
    Template,
    /// Each by a program start of its own.
    Fresh,
}

/// What is to be changed of a profile's settings. What is left out, or null, stays as it is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChangeProfileSettings {
    #[schema(minimum = 10, maximum = 86400)]
    idle_seconds: Option<u32>,
    /// No less than `idle_seconds`.
    #[schema(minimum = 60, maximum = 604800)]
    hard_seconds: Option<u32>,
    #[schema(minimum = 1, maximum = 604800)]
    max_job_seconds: Option<u32>,
    #[schema(minimum = 1, maximum = 600)]
    start_timeout_seconds: Option<u32>,
    /// No more than `max_execution_seconds`.
    #[schema(minimum = 1, maximum = 600)]
    execution_seconds: Option<u32>,
    #[schema(minimum = 1, maximum = 600)]
    max_execution_seconds: Option<u32>,
    #[schema(minimum = 64, maximum = 16384)]
    workspace_disk_mb: Option<u32>,
    #[schema(value_type = Option<ClassName>)]
    class: Option<ResourceClass>,
    #[schema(value_type = Option<StartName>)]
    start: Option<Start>,
    #[schema(maximum = 100)]
    warm_pool: Option<u32>,
    /// All of them, each once.
    artifact_types: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 1000)]
    max_artifacts: Option<u32>,
    #[schema(maximum = 17179869184_i64)]
    max_artifact_bytes: Option<u64>,
    #[schema(maximum = 10000000)]
    max_output_characters: Option<u32>,
    /// No more than `max_input_total_bytes`.
    #[schema(maximum = 17179869184_i64)]
    max_input_file_bytes: Option<u64>,
    #[schema(maximum = 17179869184_i64)]
    max_input_total_bytes: Option<u64>,
    jobs: Option<bool>,
}

impl ChangeProfileSettings {
    /// Writes what is to be changed into settings that are there.
    pub(crate) fn apply(self, settings: &mut ProfileSettings) {
        // Taken apart, so that a setting that is forgotten here does not compile.
        let Self {
            idle_seconds,
            hard_seconds,
            max_job_seconds,
            start_timeout_seconds,
            execution_seconds,
            max_execution_seconds,
            workspace_disk_mb,
            class,
            start,
            warm_pool,
            artifact_types,
            max_artifacts,
            max_artifact_bytes,
            max_output_characters,
            max_input_file_bytes,
            max_input_total_bytes,
            jobs,
        } = self;
        put(&mut settings.idle_seconds, idle_seconds);
        put(&mut settings.hard_seconds, hard_seconds);
        put(&mut settings.max_job_seconds, max_job_seconds);
        put(&mut settings.start_timeout_seconds, start_timeout_seconds);
        put(&mut settings.execution_seconds, execution_seconds);
        put(&mut settings.max_execution_seconds, max_execution_seconds);
        put(&mut settings.workspace_disk_mb, workspace_disk_mb);
        put(&mut settings.class, class);
        put(&mut settings.start, start);
        put(&mut settings.warm_pool, warm_pool);
        put(&mut settings.artifact_types, artifact_types);
        put(&mut settings.max_artifacts, max_artifacts);
        put(&mut settings.max_artifact_bytes, max_artifact_bytes);
        put(&mut settings.max_output_characters, max_output_characters);
        put(&mut settings.max_input_file_bytes, max_input_file_bytes);
        put(&mut settings.max_input_total_bytes, max_input_total_bytes);
        put(&mut settings.jobs, jobs);
    }
}
