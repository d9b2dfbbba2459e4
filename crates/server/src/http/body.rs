//! Bodies: what JSON has to be beyond being JSON, what is to be changed by one, and what files are
//! in the document.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What is read from a JSON object and from nothing else. By itself serde takes an array for a
/// struct too, its fields in the order of the code, and that order is no part of the API.
#[derive(Debug, Default)]
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfFields(PhantomData))
    }
}

/// A file's bytes.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) struct FileBytes(Vec<u8>);

/// Reads a field that is there, null included, so that null is told from a field that was left out.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Writes a value where one was given.
pub(crate) fn put<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

struct OfFields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OfFields<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(JsonObject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        kill: bool,
    }

    #[test]
    fn an_object_is_taken_and_an_array_is_not() {
        let read = serde_json::from_str::<JsonObject<Wanted>>;
        assert!(read(r#"{"kill": true}"#).unwrap().0.kill);
        // The control: without the wrapper it would be.
        assert!(serde_json::from_str::<Wanted>("[true]").unwrap().kill);
        for bad in ["[true]", "true", "null", "{}", r#"{"kill": true, "x": 1}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
