-- Titles as they are looked for: in one Unicode form and in small letters of every script, written by
-- the program, as SQLite's LOWER knows those of English only. It has to do for titles of before.

ALTER TABLE threads ADD COLUMN folded_title TEXT NOT NULL DEFAULT '';
UPDATE threads SET folded_title = LOWER(title);
