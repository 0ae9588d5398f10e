"""What is said of a study: its report's page, answer, sentences and figures, and comparisons of studies."""
