//! What the driver finds when it looks at its engine.

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use glovebox_protocol::gateway::{Check, CheckStatus, ImageInfo};
use glovebox_runtime::{Examined, RuntimeError};

use crate::driver::Inner;
use crate::engine::EngineError;
use crate::image;

/// The ids of all checks, in order. The last one comes once for each image.
pub const CHECKS: [&str; 6] = [
    "engine.version",
    "engine.cgroups",
    "engine.limits",
    "engine.seccomp",
    "engine.user_namespaces",
    "engine.image",
];

impl Inner {
    pub(crate) async fn examine(&self, images: &[String]) -> Result<Examined, RuntimeError> {
        let info = self.engine.info().await;
        let info = info.map_err(|error| error.while_doing("looking at the container engine"))?;
        let mut checks = of_engine(&info);
        let mut present = Vec::new();
        for reference in images {
            let found = match self.engine.image(reference).await {
                Ok(found) => Some(found),
                Err(EngineError::Missing(_)) => None,
                Err(error) => {
                    return Err(error.while_doing(format!("looking for the image {reference}")));
                }
            };
            checks.push(match &found {
                Some(found) => match image::check(reference, found) {
                    Ok(()) => pass("engine.image", format!("the image {reference} is present")),
                    Err(mismatch) => fail("engine.image", mismatch.to_string(), image::FIX),
                },
                None => fail(
                    "engine.image",
                    format!("the engine has no image {reference}"),
                    image::FIX,
                ),
            });
            present.extend(found.map(|found| ImageInfo {
                reference: reference.clone(),
                protocol: image::protocol(&found),
                digest: found.id,
            }));
        }
        Ok(Examined {
            checks,
            images: present,
        })
    }
}

fn of_engine(info: &SystemInfo) -> Vec<Check> {
    let has = |value: Option<bool>| value == Some(true);
    let version = info
        .server_version
        .as_deref()
        .unwrap_or("of no known version");
    let options = info.security_options.as_deref().unwrap_or_default();
    let option = |name: &str| options.iter().any(|option| option.contains(name));
    let lacking: Vec<_> = [
        ("memory", has(info.memory_limit)),
        ("swap", has(info.swap_limit)),
        ("processes", has(info.pids_limit)),
        ("processor time", has(info.cpu_cfs_quota)),
    ]
    .into_iter()
    .filter_map(|(what, can)| (!can).then_some(what))
    .collect();
    vec![
        pass("engine.version", format!("Docker {version} answers")),
        match info.cgroup_version {
            Some(SystemInfoCgroupVersionEnum::_1) => {
                pass("engine.cgroups", "control groups are of version 1".into())
            }
            Some(SystemInfoCgroupVersionEnum::_2) => {
                pass("engine.cgroups", "control groups are of version 2".into())
            }
            _ => fail(
                "engine.cgroups",
                "the engine says nothing of control groups".into(),
                "use an engine that can limit its containers",
            ),
        },
        if lacking.is_empty() {
            pass("engine.limits", "all limits can be set".into())
        } else {
            fail(
                "engine.limits",
                format!("the engine cannot limit {}", lacking.join(", ")),
                "give the kernel these controllers (for swap: the kernel option swapaccount=1)",
            )
        },
        if option("seccomp") {
            pass("engine.seccomp", "system calls can be filtered".into())
        } else {
            fail(
                "engine.seccomp",
                "the engine cannot filter system calls".into(),
                "use a kernel and an engine with seccomp",
            )
        },
        if option("userns") || option("rootless") {
            pass(
                "engine.user_namespaces",
                "ids in containers are nobody's outside".into(),
            )
        } else {
            Check {
                id: "engine.user_namespaces".into(),
                status: CheckStatus::Warn,
                message: "ids in containers are ids of the host".into(),
                fix: Some("consider the daemon's option userns-remap".into()),
            }
        },
    ]
}

fn pass(id: &str, message: String) -> Check {
    Check {
        id: id.into(),
        status: CheckStatus::Pass,
        message,
        fix: None,
    }
}

fn fail(id: &str, message: String, fix: &str) -> Check {
    Check {
        id: id.into(),
        status: CheckStatus::Fail,
        message,
        fix: Some(fix.into()),
    }
}
