//! Ids: which host ids a pod has, and which pair of them a box has that no other box has.

pub(crate) mod pod;
pub(crate) mod slots;
pub(crate) mod subordinate;
