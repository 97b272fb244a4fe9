-- Where two circles have a peer with the same id, this is refused by the primary key, and nothing is changed: forget one of them first.
ALTER TABLE peers RENAME TO old_peers;
CREATE TABLE peers (
    id            TEXT PRIMARY KEY,
    display_name  TEXT NOT NULL,
    circle        TEXT NOT NULL,
    labels        TEXT NOT NULL,
    capabilities  TEXT NOT NULL,
    path          TEXT,
    backend       TEXT,
    metadata      TEXT NOT NULL,
    registered_by TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    present_on    TEXT,
    seen_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO peers (id, display_name, circle, labels, capabilities, path, backend, metadata, registered_by, registered_at, version, present_on, seen_at)
SELECT id, display_name, circle, labels, capabilities, path, backend, metadata, registered_by, registered_at, version, present_on, seen_at FROM old_peers ORDER BY id;
DROP TABLE old_peers;
CREATE INDEX peers_by_circle ON peers (circle, id);
CREATE INDEX peers_by_name ON peers (display_name, circle, id);
CREATE INDEX peers_by_folder ON peers (path, circle, id) WHERE path IS NOT NULL;
