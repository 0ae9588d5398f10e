"""The form of names in a study: as patterns, and in words for errors and references."""

STUDY_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
VARIANT_NAME = r"^[a-z0-9][a-z0-9_.-]{0,31}$"
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$"
PACKAGE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
PATH = r"^[^\x00]+$"
DELIMITER = r"""^[^"\r\n\x00 ]$"""

IN_WORDS = {
    STUDY_NAME: "1 to 64 of a-z, 0-9, _ and -, a letter or digit first",
    VARIANT_NAME: "1 to 32 of a-z, 0-9, _, . and -, a letter or digit first",
    MODEL_NAME: "1 to 32 of letters, 0-9, _, . and -, a letter or digit first",
    PACKAGE_NAME: "a package's name",
    PATH: "a path, without NUL",
    DELIMITER: "one character, but no space, quotation mark or line end",
}
