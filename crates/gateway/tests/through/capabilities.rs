//! `docs/reference/capabilities.md` says what gateways say of their runtimes, and which check of the
//! conformance suite holds a runtime to it.

use std::fmt::Write as _;

use glovebox_protocol::capability::{Capabilities, Capability};
use glovebox_protocol::sign::SigningKey;

use crate::stage::{Kind, Stage};

/// Set, this writes the document instead of comparing it.
const WRITE: &str = "GLOVEBOX_WRITE_DOCUMENTS";

const HEAD: &str = "# Capabilities

What a runtime promises of every sandbox, as `GET /v1/info` of its gateway says it. What is not \
promised is refused when it is asked for. The conformance suite holds each runtime to what it \
promises, through a gateway (`crates/gateway/tests/through/main.rs`); in what containers are \
weaker beyond that stands in [containers](../security/containers.md).

This page is written by a test; `GLOVEBOX_WRITE_DOCUMENTS=1 cargo nextest run -p glovebox-gateway \
--test through -E 'test(capabilities)'` writes it anew.

| capability | promised is | embedded | docker | checked by |
|---|---|---|---|---|
";

/// What is promised, and what checks it.
const fn says(capability: Capability) -> (&'static str, &'static str) {
    match capability {
        Capability::MemoryLimit => (
            "memory is limited, without swap",
            "`memory_is_limited_and_running_out_is_named`",
        ),
        Capability::CpuLimit => ("processor time is limited", "`processor_time_is_limited`"),
        Capability::ProcessLimit => (
            "the number of processes is limited",
            "`processes_are_limited`",
        ),
        Capability::WorkspaceBytes => (
            "the workspace is limited in bytes",
            "`the_workspace_is_limited_in_bytes`",
        ),
        Capability::WorkspaceInodes => (
            "the workspace is limited in files",
            "`the_workspace_is_limited_in_files`",
        ),
        Capability::NoNetwork => (
            "there is no network of any kind",
            "`a_sandbox_has_no_network`",
        ),
        Capability::SeparateIds => (
            "agent and workload have ids of their own; embedded: where the machine has subordinate ids",
            "`agent_and_workload_have_ids_of_their_own`",
        ),
        Capability::KeepsWorkspace => (
            "a workspace outlives the processes of its sandbox",
            "nothing yet",
        ),
        Capability::EndsSingleExecution => (
            "ending one execution leaves the others running",
            "`ending_one_execution_leaves_the_others`",
        ),
        Capability::KeepsExecutions => (
            "an execution whose stream is cut because the gateway ended goes on, and can be looked up by its id; else it is ended then",
            "`crates/gateway/tests/killed/main.rs`",
        ),
        Capability::TemplateStart => (
            "a kernel can be a copy of a process that has the libraries loaded",
            "`a_kernel_says_how_it_was_started`",
        ),
        Capability::SecondKernel => (
            "a second kernel stands between the code and the host's",
            "nothing yet",
        ),
    }
}

async fn promised(kind: Kind) -> Capabilities {
    let key = SigningKey::generate().unwrap();
    let stage = Stage::start(kind, key.public()).await;
    let info = stage.client.info().await.unwrap();
    let two_ids = !stage.headings.contains(&"one id");
    stage.finish().await;
    // The one that depends on the machine, which the page says.
    let missing = (kind == Kind::Embedded && !two_ids).then_some(Capability::SeparateIds);
    info.capabilities.iter().chain(missing).collect()
}

#[tokio::test]
async fn the_table_of_capabilities_says_what_gateways_say() {
    let (embedded, docker) = (promised(Kind::Embedded).await, promised(Kind::Docker).await);
    let mut page = String::from(HEAD);
    for capability in Capability::ALL {
        let name = serde_json::to_value(capability).unwrap();
        let has = |all: &Capabilities| if all.has(capability) { "yes" } else { "no" };
        let (promise, check) = says(capability);
        writeln!(
            page,
            "| `{}` | {promise} | {} | {} | {check} |",
            name.as_str().unwrap(),
            has(&embedded),
            has(&docker)
        )
        .unwrap();
    }
    let path = glovebox_testkit::repository().join("docs/reference/capabilities.md");
    #[expect(
        clippy::disallowed_methods,
        reason = "only a person at a terminal sets it"
    )]
    let is_to_write = std::env::var_os(WRITE).is_some();
    if is_to_write {
        fs_err::write(&path, &page).unwrap();
    }
    let written = fs_err::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "write it anew with {WRITE}=1");
}
