DROP INDEX agenda_held;
