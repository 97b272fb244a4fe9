-- A key may outlive its record. Only such keys are forgotten by time, so only they are in the index.
ALTER TABLE idempotency_keys ADD COLUMN outlives BIGINT NOT NULL DEFAULT 0;
UPDATE idempotency_keys SET outlives = 1
 WHERE NOT EXISTS (SELECT 1 FROM agenda WHERE agenda.record_id = idempotency_keys.record_id);
CREATE INDEX idempotency_keys_outliving ON idempotency_keys (keep_until, principal, route, key) WHERE outlives = 1;
