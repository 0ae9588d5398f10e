"""Models from elsewhere, read and proved; models of the store, written for other tools."""
