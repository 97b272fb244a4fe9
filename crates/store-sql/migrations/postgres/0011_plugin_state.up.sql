-- What plugins remember between their jobs, and the facts that their manifests ask to keep. Facts are counted for each plugin.
CREATE TABLE plugin_state (
    plugin     TEXT COLLATE "C" PRIMARY KEY,
    version    BIGINT NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    fact_count BIGINT NOT NULL
);

CREATE TABLE plugin_facts (
    plugin    TEXT COLLATE "C" NOT NULL,
    number    BIGINT NOT NULL,
    fact_type TEXT COLLATE "C" NOT NULL,
    json      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (plugin, number)
);
