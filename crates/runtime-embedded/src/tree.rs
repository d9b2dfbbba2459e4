//! The trees that boxes stand on: built once per machine, verified at every start.
//!
//! A box's file system is an overlay of, topmost first, the *runtime layer* (the agent and the
//! kernel, of this very version of Glovebox), an optional *office* tree, and the *root* tree
//! (Python, the toolbox, tools, libraries, fonts). [`Setup::ensure`] makes what is missing. This
//! module mounts nothing, reads no environment and prints nothing.
//!
//! The root tree is made of what the host has, plus the packages that the lock names, which pip
//! downloads and checks. It is plain files: world-readable, nothing set-user-id, no link that
//! leads out, no path of the host. Its own Python runs for the first time inside it, confined.

mod command;
mod compile;
mod confined;
mod copy;
mod elf;
mod error;
mod fonts;
mod interpreter;
mod layer;
mod libraries;
mod manifest;
mod office;
mod prefix;
mod progress;
mod python;
mod root;
mod seal;
mod settle;
mod store;
mod system;
mod tools;
mod wheels;

use std::path::PathBuf;

pub use error::SetupError;
pub use layer::Programs;
pub use office::{Office, office_of_this_machine};
pub use progress::{Progress, Silent, Step};

use store::Store;

/// The lock of the toolbox that comes with this version.
pub const LOCK: &str = include_str!("../../../sandbox/toolbox/requirements.lock");

/// The folder of trees below the data folder.
const TREES: &str = "trees";
/// The folder of runtime layers below the data folder.
const LAYERS: &str = "layers";

/// What to set up, and where.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The data folder; made if it is not there.
    pub data: PathBuf,
    /// The programs for the runtime layer.
    pub programs: Programs,
    /// The interpreter to build the root tree of; `None` looks for one.
    pub python: Option<PathBuf>,
    /// The folders to look for an interpreter in: those of `PATH`.
    pub search: Vec<PathBuf>,
    /// The packages, as pip reads them; [`LOCK`] in earnest.
    pub lock: String,
    /// Whether sandboxes get LibreOffice and poppler, where this machine has them.
    pub office: bool,
}

/// What boxes stand on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trees {
    /// Layers relative to the data folder, topmost first.
    pub layers: Vec<String>,
    /// Whether they hold what makes pages of documents; nothing where nobody asked for that.
    pub office: Option<Office>,
}

impl Setup {
    /// Makes sure of all trees; what is there and untouched costs a look at each entry (no file
    /// is read), what is missing is built.
    ///
    /// Safe to call from several processes at once: one builds, the others wait. A call that is
    /// killed leaves no half tree.
    ///
    /// # Errors
    /// When something that trees are made of is missing here, when packages cannot be downloaded,
    /// or when a tree was changed; [`SetupError::fix`] says what to do.
    pub fn ensure(&self, progress: &mut dyn Progress) -> Result<Trees, SetupError> {
        let store = Store::open(self.data.join(TREES))?;
        let ingredients = root::Ingredients {
            lock: &self.lock,
            python: self.python.as_deref(),
            search: &self.search,
        };
        let root = ingredients.ensure(&store, progress)?;
        let (tree, office) = if self.office {
            let ingredients = office::Ingredients {
                search: &self.search,
                root: &root.tree,
            };
            let (tree, office) = ingredients.ensure(&store, progress)?;
            (tree, Some(office))
        } else {
            (None, None)
        };
        let layer = layer::ensure(
            &self.programs,
            &root,
            &Store::open(self.data.join(LAYERS))?,
            progress,
        )?;
        let mut layers = vec![format!("{LAYERS}/{layer}")];
        layers.extend(tree.map(|name| format!("{TREES}/{name}")));
        layers.push(format!("{TREES}/{}", root.tree));
        Ok(Trees { layers, office })
    }
}

impl Trees {
    /// Compares every file of every layer with its manifest.
    ///
    /// # Errors
    /// When something differs; the message names the first path that does.
    pub fn verify_full(&self, data: &std::path::Path) -> Result<(), SetupError> {
        self.layers
            .iter()
            .try_for_each(|layer| seal::Beside::of(&data.join(layer)).verify())
    }
}
