-- How long a whole reply may take, code and all.
ALTER TABLE models ADD COLUMN reply_timeout_seconds BIGINT NOT NULL DEFAULT 1800;

-- For whom a task is done: those for whom one was taken longest ago come first. Empty for what is
-- done for all.
ALTER TABLE tasks ADD COLUMN share TEXT NOT NULL DEFAULT '';

-- For whom a task was taken when: the numbers of a queue count up.
CREATE TABLE task_turns (
    queue TEXT NOT NULL,
    share TEXT NOT NULL,
    turn BIGINT NOT NULL,
    PRIMARY KEY (queue, share)
);
