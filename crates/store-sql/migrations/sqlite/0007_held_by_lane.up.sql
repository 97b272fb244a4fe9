-- What is held of a lane: its limit is counted here, whoever holds it.
CREATE INDEX agenda_held ON agenda (lane) WHERE held = 1 AND lane IS NOT NULL;
