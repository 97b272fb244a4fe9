-- How many jobs of each executor are in each state ('' where none is named), changed by every commit under the lock of the
-- ledger: so that nobody has to count. Rows are few and written again and again.
CREATE TABLE job_tallies (
    state    TEXT COLLATE "C" NOT NULL,
    executor TEXT COLLATE "C" NOT NULL,
    jobs     BIGINT NOT NULL,
    PRIMARY KEY (state, executor)
) WITH (fillfactor = 20);
INSERT INTO job_tallies (state, executor, jobs)
SELECT state, coalesce(view::json -> 'spec' ->> 'executor', ''), count(*) FROM jobs GROUP BY 1, 2;
