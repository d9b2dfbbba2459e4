-- Types that both databases have. Ids are lowercase UUIDs as text, times whole milliseconds since
-- 1970 (UTC), truths 0 and 1, documents JSON as text.

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    sealed TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT,
    is_system_admin BIGINT NOT NULL DEFAULT 0,
    is_disabled BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    token_hash TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (user_id);

CREATE TABLE sign_in_attempts (
    subject TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX sign_in_attempts_of_subject ON sign_in_attempts (subject, at);

CREATE TABLE profiles (
    id TEXT PRIMARY KEY,
    runtime TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    settings TEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    activated_at BIGINT
);

CREATE TABLE profile_checks (
    id TEXT PRIMARY KEY,
    profile_id TEXT NOT NULL REFERENCES profiles (id),
    kind TEXT NOT NULL,
    is_passed BIGINT NOT NULL,
    report TEXT NOT NULL,
    taken_at BIGINT NOT NULL
);
CREATE INDEX profile_checks_of_profile ON profile_checks (profile_id, kind, taken_at);

CREATE TABLE acknowledgements (
    profile_id TEXT NOT NULL REFERENCES profiles (id),
    name TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    at BIGINT NOT NULL,
    PRIMARY KEY (profile_id, name)
);

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    profile_id TEXT REFERENCES profiles (id),
    created_at BIGINT NOT NULL
);

CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    organization_id TEXT REFERENCES organizations (id),
    profile_id TEXT REFERENCES profiles (id),
    code_execution BIGINT NOT NULL DEFAULT 0,
    quotas TEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL
);

CREATE TABLE memberships (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    user_id TEXT REFERENCES users (id),
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_of_workspace ON api_keys (workspace_id);

CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    profile_id TEXT NOT NULL REFERENCES profiles (id),
    user_id TEXT REFERENCES users (id),
    api_key_id TEXT REFERENCES api_keys (id),
    state TEXT NOT NULL,
    class TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    active_at BIGINT NOT NULL,
    idle_limit_ms BIGINT NOT NULL,
    hard_deadline BIGINT NOT NULL,
    ended_at BIGINT,
    ended_why TEXT,
    ended_detail TEXT
);
CREATE INDEX leases_of_workspace ON leases (workspace_id, created_at);
CREATE INDEX leases_by_state ON leases (state, hard_deadline);

CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    lease_id TEXT NOT NULL REFERENCES leases (id),
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    idempotency_key TEXT,
    request_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Until then somebody drives it; whoever does writes it anew again and again.
    driven_until BIGINT NOT NULL,
    ended_at BIGINT,
    UNIQUE (lease_id, idempotency_key)
);
CREATE INDEX executions_of_lease ON executions (lease_id, created_at);

CREATE TABLE events (
    execution_id TEXT NOT NULL REFERENCES executions (id),
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (execution_id, seq)
);

CREATE TABLE artifacts (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    lease_id TEXT NOT NULL REFERENCES leases (id),
    execution_id TEXT NOT NULL REFERENCES executions (id),
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    media_type TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (lease_id, name, version)
);
CREATE INDEX artifacts_of_workspace ON artifacts (workspace_id, created_at);

CREATE TABLE denials (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX denials_of_workspace ON denials (workspace_id, at);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    taken_until BIGINT,
    last_error TEXT,
    UNIQUE (queue, kind, subject)
);
CREATE INDEX tasks_due ON tasks (queue, due_at);

CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT,
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_id TEXT,
    object TEXT NOT NULL,
    workspace_id TEXT,
    fields TEXT NOT NULL,
    request_id TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at, id);
