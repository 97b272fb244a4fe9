DROP TABLE shared_keys;
DROP TABLE nodes;
