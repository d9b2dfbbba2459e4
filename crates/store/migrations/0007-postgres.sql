-- A server of before that still runs would go on with messages that have no number. It is refused, so that
-- somebody notices; SQLite has one server, which makes this step itself.
ALTER TABLE messages ALTER COLUMN seq DROP DEFAULT;
