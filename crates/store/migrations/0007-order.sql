-- The order of a thread's messages, settled by the database: their ids are made by each server by its own
-- clock. It is the number of the event that tells of the message; those of before keep the order of their
-- ids, and their numbers are below those of all events to come.

ALTER TABLE messages ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
UPDATE messages SET seq = numbered.seq FROM (SELECT id,
    ROW_NUMBER() OVER (PARTITION BY thread_id ORDER BY id) AS seq FROM messages) AS numbered
    WHERE numbered.id = messages.id;

-- In place of an index by the time of that clock.
DROP INDEX messages_of_thread;
CREATE INDEX messages_of_thread ON messages (thread_id, seq);
