//! The runtime of container engines.
