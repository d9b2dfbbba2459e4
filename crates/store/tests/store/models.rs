//! Models, their default and their keys.

use glovebox_protocol::ids::ModelId;
use glovebox_store::{MasterKey, Model, ModelSettings, Store, StoreError};

use crate::support::{Database, on_both};

on_both! {
    the_first_model_is_the_default_until_another_is
    a_model_is_changed_by_whoever_read_it_last
    a_models_key_goes_with_it
}

fn settings(name: &str) -> ModelSettings {
    ModelSettings {
        name: name.into(),
        base_url: "https://api.example.com/v1".into(),
        model: "small-1".into(),
        context_tokens: 32_768,
        connect_timeout_seconds: 10,
        silence_timeout_seconds: 120,
        reply_timeout_seconds: 1_800,
    }
}

async fn create(store: &Store, name: &str) -> Result<ModelId, StoreError> {
    let mut changes = store.begin().await?;
    let id = changes.create_model(&settings(name)).await?;
    changes.commit().await?;
    Ok(id)
}

async fn the_first_model_is_the_default_until_another_is(database: Database) {
    let store = &database.store;
    assert!(store.default_model().await.unwrap().is_none());
    let first = create(store, "one").await.unwrap();
    let second = create(store, "two").await.unwrap();
    let default = async || store.default_model().await.unwrap().unwrap().id;
    assert_eq!(default().await, first);
    let taken = create(store, "one").await.unwrap_err();
    assert!(matches!(taken, StoreError::Taken { .. }), "{taken}");

    let mut changes = store.begin().await.unwrap();
    changes.make_default_model(second).await.unwrap();
    changes.commit().await.unwrap();
    assert_eq!(default().await, second);
    let all = store.models().await.unwrap();
    assert_eq!(all.iter().filter(|model| model.is_default).count(), 1);

    // The default goes last.
    let delete = async |id| {
        let mut changes = store.begin().await.unwrap();
        let is_gone = changes.delete_model(id).await.unwrap();
        changes.commit().await.unwrap();
        is_gone
    };
    assert!(!delete(second).await);
    assert!(delete(first).await);
    assert!(!delete(first).await);
    assert!(delete(second).await);
    assert!(store.models().await.unwrap().is_empty());
}

async fn a_model_is_changed_by_whoever_read_it_last(database: Database) {
    let store = &database.store;
    let id = create(store, "one").await.unwrap();
    let mut model = store.model(id).await.unwrap().unwrap();
    assert_eq!(model.settings, settings("one"));
    assert_eq!((model.version, model.has_api_key), (1, false));
    model.settings.context_tokens = 8_192;
    let write = async |model: &Model| {
        let mut changes = store.begin().await.unwrap();
        let written = changes.update_model(model).await;
        changes.commit().await.unwrap();
        written
    };
    write(&model).await.unwrap();
    let conflict = write(&model).await.unwrap_err();
    assert!(
        matches!(conflict, StoreError::Conflict { .. }),
        "{conflict}"
    );
    let model = store.model(id).await.unwrap().unwrap();
    assert_eq!((model.version, model.settings.context_tokens), (2, 8_192));
}

async fn a_models_key_goes_with_it(database: Database) {
    let store = &database.store;
    let key = MasterKey::random().unwrap();
    let id = create(store, "one").await.unwrap();
    let name = Model::secret_name(id);
    let mut changes = store.begin().await.unwrap();
    changes.put_secret(&key, &name, b"secret").await.unwrap();
    changes.commit().await.unwrap();
    assert!(store.model(id).await.unwrap().unwrap().has_api_key);
    let mut changes = store.begin().await.unwrap();
    assert!(changes.delete_model(id).await.unwrap());
    changes.commit().await.unwrap();
    assert!(store.secret(&key, &name).await.unwrap().is_none());
}
