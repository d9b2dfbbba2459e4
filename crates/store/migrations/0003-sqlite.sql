-- `REPLACE` and `INSERT OR REPLACE` take a row away without asking the triggers on DELETE: they are
-- refused before they find it. A row that names no rowid has none yet.
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (
    SELECT 1 FROM audit WHERE id = NEW.id OR (NEW.rowid > 0 AND rowid = NEW.rowid)
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
