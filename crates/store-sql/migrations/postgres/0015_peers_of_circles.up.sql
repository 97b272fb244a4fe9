-- An id names a peer within its circle: the same id in another circle is another peer.
ALTER TABLE peers DROP CONSTRAINT peers_pkey, ADD PRIMARY KEY (id, circle);
