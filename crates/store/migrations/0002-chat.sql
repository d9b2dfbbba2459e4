-- Chat: models, threads with their messages and events, files that people bring, previews.

CREATE TABLE models (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    base_url TEXT NOT NULL,
    model TEXT NOT NULL,
    context_tokens BIGINT NOT NULL,
    connect_timeout_seconds BIGINT NOT NULL,
    -- How long nothing may come from the endpoint before a reply is given up.
    silence_timeout_seconds BIGINT NOT NULL,
    is_default BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL
);

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    user_id TEXT REFERENCES users (id),
    api_key_id TEXT REFERENCES api_keys (id),
    title TEXT NOT NULL,
    -- Whether a person gave it; one that was made from the first message gives way.
    is_titled BIGINT NOT NULL DEFAULT 0,
    is_shared BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 1,
    -- The number of the newest event.
    last_seq BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    active_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX threads_of_workspace ON threads (workspace_id, active_at);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id),
    user_id TEXT REFERENCES users (id),
    api_key_id TEXT REFERENCES api_keys (id),
    -- What a reply answers; nothing for what a person sent.
    reply_to TEXT REFERENCES messages (id),
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    -- Of a reply: what the model said and was told on the way, for its next turns.
    turns TEXT NOT NULL,
    state TEXT NOT NULL,
    idempotency_key TEXT,
    request_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Until then somebody drives a running reply; whoever does writes it anew again and again.
    driven_until BIGINT NOT NULL,
    -- When somebody asked for the end of a running reply.
    stop_asked_at BIGINT,
    ended_at BIGINT,
    UNIQUE (thread_id, idempotency_key)
);
CREATE INDEX messages_of_thread ON messages (thread_id, created_at);
CREATE INDEX messages_by_state ON messages (state, driven_until);

CREATE TABLE thread_events (
    thread_id TEXT NOT NULL REFERENCES threads (id),
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
);

CREATE TABLE attachments (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    user_id TEXT REFERENCES users (id),
    api_key_id TEXT REFERENCES api_keys (id),
    -- Both nothing until the message is sent; what is never sent is swept.
    thread_id TEXT REFERENCES threads (id),
    message_id TEXT REFERENCES messages (id),
    -- In the thread and in its sandbox: a second file of the same name gets a number.
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    media_type TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (thread_id, name)
);
CREATE INDEX attachments_of_message ON attachments (message_id);
CREATE INDEX attachments_by_content ON attachments (workspace_id, sha256);

CREATE TABLE knowledge_files (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    user_id TEXT REFERENCES users (id),
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    media_type TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (workspace_id, name)
);
CREATE INDEX knowledge_files_by_content ON knowledge_files (workspace_id, sha256);

-- The thread whose code runs in the sandbox, and what the sandbox is for: `code` or `preview`.
ALTER TABLE leases ADD COLUMN thread_id TEXT REFERENCES threads (id);
ALTER TABLE leases ADD COLUMN purpose TEXT NOT NULL DEFAULT 'code';
CREATE INDEX leases_of_thread ON leases (thread_id, created_at);

-- What was put into the sandbox of a thread: attachments, older artifacts, knowledge files.
CREATE TABLE staged_files (
    lease_id TEXT NOT NULL REFERENCES leases (id),
    source_id TEXT NOT NULL,
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (lease_id, source_id)
);

-- The thread that a file belongs to: its versions count on when the sandbox is replaced.
ALTER TABLE artifacts ADD COLUMN thread_id TEXT REFERENCES threads (id);
-- Whose bytes it has, where a version was restored: those of an older artifact.
ALTER TABLE artifacts ADD COLUMN bytes_of TEXT REFERENCES artifacts (id);
CREATE INDEX artifacts_of_thread ON artifacts (thread_id, name, version);
CREATE INDEX artifacts_by_content ON artifacts (workspace_id, sha256);

CREATE TABLE previews (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    sha256 TEXT NOT NULL,
    -- How it was asked to be read: a word for the type, made from content and name.
    format TEXT NOT NULL,
    -- The number of what made it: a better one makes it anew.
    renderer BIGINT NOT NULL,
    -- Where its bytes lie: what kind of file, and which.
    source_kind TEXT NOT NULL,
    source_id TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    state TEXT NOT NULL,
    -- What is there to see, or why there is nothing.
    contents TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    made_at BIGINT,
    UNIQUE (workspace_id, sha256, format, renderer)
);

CREATE TABLE preview_parts (
    preview_id TEXT NOT NULL REFERENCES previews (id),
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    PRIMARY KEY (preview_id, name)
);
