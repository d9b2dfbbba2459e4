-- The end of sandboxes, and what is forgotten after a time. What is swept again and again has an
-- index that holds only the rows that a sweep is about.

-- Of a suspended sandbox: whether its processes are known to have ended.
ALTER TABLE leases ADD COLUMN is_quiet BIGINT NOT NULL DEFAULT 0;
-- When somebody began to collect for the last time what is in the sandbox.
ALTER TABLE leases ADD COLUMN last_collected_at BIGINT;
-- When what was run in an ended sandbox was forgotten.
ALTER TABLE leases ADD COLUMN forgotten_at BIGINT;

-- In place of an index over all leases.
DROP INDEX leases_by_state;
CREATE INDEX leases_live ON leases (id) WHERE state <> 'ended';
CREATE INDEX leases_to_forget ON leases (ended_at) WHERE state = 'ended' AND forgotten_at IS NULL;
CREATE INDEX executions_running ON executions (id) WHERE state = 'running';
-- In place of an index over all messages.
DROP INDEX messages_by_state;
CREATE INDEX messages_running ON messages (id) WHERE state = 'running';
CREATE INDEX threads_deleted ON threads (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sign_in_attempts_by_time ON sign_in_attempts (at);
-- What refers to an execution, a lease or a thread is looked for whenever one of them is deleted.
CREATE INDEX artifacts_of_execution ON artifacts (execution_id);
