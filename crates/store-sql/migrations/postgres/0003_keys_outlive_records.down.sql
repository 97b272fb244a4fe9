DROP INDEX idempotency_keys_outliving;
ALTER TABLE idempotency_keys DROP COLUMN outlives;
