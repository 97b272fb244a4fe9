-- Who works in a folder: jobs for it are left to them.
CREATE INDEX peers_by_folder ON peers (path, circle, id) WHERE path IS NOT NULL;
