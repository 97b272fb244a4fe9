DROP TABLE plugin_facts;
DROP TABLE plugin_state;
