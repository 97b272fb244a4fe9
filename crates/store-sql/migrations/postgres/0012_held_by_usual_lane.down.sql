DROP INDEX agenda_held;
CREATE INDEX agenda_held ON agenda (lane) WHERE held = 1 AND lane IS NOT NULL;
