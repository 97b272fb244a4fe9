-- Where two circles have a peer with the same id, this is refused by the primary key, and nothing is changed: forget one of them first.
ALTER TABLE peers DROP CONSTRAINT peers_pkey, ADD PRIMARY KEY (id);
