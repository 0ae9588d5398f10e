"""The objects of study and their mathematics: no files, no database, no Prefect."""
