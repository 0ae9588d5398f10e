"""Files: written whole or not at all, told by their first bytes, found in packages; and errors of a full disk."""
