//! Sets trees up for real: from this machine's Python and the package index.
//!
//! What needs the whole toolbox looks at the tree that all test suites share. What breaks, kills
//! or rebuilds makes trees of its own, of one small package.

#[cfg(test)]
mod office;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod small;
