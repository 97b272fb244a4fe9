-- What is held of a lane: its limit is counted here, whoever holds it. What is pinned to a node (`at:<node>:<lane>`) counts with the rest.
DROP INDEX agenda_held;
CREATE INDEX agenda_held ON agenda (
    (CASE WHEN substr(lane, 1, 3) = 'at:' THEN substr(lane, 4 + instr(substr(lane, 4), ':')) ELSE lane END)
) WHERE held = 1 AND lane IS NOT NULL;
