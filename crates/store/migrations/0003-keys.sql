-- A key that acts as somebody who was taken out of the workspace is revoked with the membership from
-- now on. Those that were only without effect since then are revoked here, as of their last use.
UPDATE api_keys SET revoked_at = COALESCE(used_at, created_at)
WHERE revoked_at IS NULL AND user_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM memberships WHERE memberships.user_id = api_keys.user_id
    AND memberships.workspace_id = api_keys.workspace_id
);
