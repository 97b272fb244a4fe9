-- What plugins remember between their jobs, and the facts that their manifests ask to keep. Facts are counted for each plugin.
CREATE TABLE plugin_state (
    plugin     TEXT PRIMARY KEY,
    version    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    fact_count INTEGER NOT NULL
) STRICT;

CREATE TABLE plugin_facts (
    plugin    TEXT NOT NULL,
    number    INTEGER NOT NULL,
    fact_type TEXT NOT NULL,
    json      TEXT NOT NULL,
    PRIMARY KEY (plugin, number)
) STRICT;
