DROP TABLE job_tallies;
