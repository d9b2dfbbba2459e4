//! The knowledge base of a workspace: files that members read and code opens by name.

use bytes::Bytes;
use futures_util::Stream;
use glovebox_protocol::ids::KnowledgeFileId;
use glovebox_store::{
    Access, Actor, Entry, KnowledgeFile, NewKnowledgeFile, StoreError, UploadedName,
};

use super::App;
use super::threads::{ChatError, needs_write};
use super::uploads::too_large;

impl App {
    /// Adds a file to the knowledge base. Replaces nothing. `announced` is how long the caller says
    /// that it is.
    ///
    /// # Errors
    /// When the caller may not write, the file is too large, or there is one of that name.
    pub async fn add_knowledge<E>(
        &self,
        access: &Access,
        actor: &Actor,
        name: &str,
        announced: Option<u64>,
        parts: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<KnowledgeFile, ChatError> {
        let name = self.new_knowledge_name(access, name).await?;
        let limit = self.file_limits(access).await?.file_bytes;
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(too_large(limit));
        }
        self.may_upload(access, announced).await?;
        let id = KnowledgeFileId::new();
        let receiving = self.receive(id.into(), name.as_str(), limit, parts);
        let (received, upload) = receiving.await?;
        let new = received.kept_as(id, name);
        let (app, access_of, actor) = (self.clone(), access.clone(), actor.clone());
        let keep = async move { app.keep_knowledge(&access_of, &actor, &new).await };
        self.keep_received(id.into(), upload, keep).await?;
        self.knowledge_file(access, id).await
    }

    async fn new_knowledge_name(
        &self,
        access: &Access,
        name: &str,
    ) -> Result<UploadedName, ChatError> {
        needs_write(access)?;
        let name = UploadedName::of(name);
        let before = self.store().knowledge_file_named(access, name.as_str());
        match before.await? {
            Some(_) => Err(ChatError::NameTaken),
            None => Ok(name),
        }
    }

    async fn keep_knowledge(
        &self,
        access: &Access,
        actor: &Actor,
        new: &NewKnowledgeFile,
    ) -> Result<(), ChatError> {
        let mut changes = self.begin_upload(access, new.bytes).await?;
        match changes.create_knowledge_file(access, new).await {
            Err(StoreError::Taken { .. }) => return Err(ChatError::NameTaken),
            made => made?,
        }
        changes
            .record(
                actor,
                entry("knowledge.create", access, new.id, new.name.as_str()),
            )
            .await?;
        changes.commit().await?;
        Ok(())
    }

    /// A file of the knowledge base that the caller may read.
    ///
    /// # Errors
    /// When there is none.
    pub async fn knowledge_file(
        &self,
        access: &Access,
        id: KnowledgeFileId,
    ) -> Result<KnowledgeFile, ChatError> {
        let found = self.store().knowledge_file_of(access, id).await?;
        found.ok_or(ChatError::NotFound("knowledge file"))
    }

    /// Takes a file out of the knowledge base.
    ///
    /// # Errors
    /// When there is none, or the caller may not write.
    pub async fn delete_knowledge(
        &self,
        access: &Access,
        actor: &Actor,
        id: KnowledgeFileId,
    ) -> Result<(), ChatError> {
        let found = self.knowledge_file(access, id).await?;
        needs_write(access)?;
        let mut changes = self.store().begin().await?;
        if !changes.delete_knowledge_file(access, id).await? {
            return Err(ChatError::NotFound("knowledge file"));
        }
        changes
            .record(actor, entry("knowledge.delete", access, id, &found.name))
            .await?;
        self.throw_away_with(changes, id.into()).await?;
        Ok(())
    }
}

fn entry<'a>(
    action: &'static str,
    access: &Access,
    id: KnowledgeFileId,
    name: &'a str,
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "knowledge_file",
        object_id: Some(id.to_string()),
        object: name,
        workspace: Some(access.workspace()),
        fields: &[],
    }
}
