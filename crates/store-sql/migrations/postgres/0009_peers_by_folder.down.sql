DROP INDEX peers_by_folder;
