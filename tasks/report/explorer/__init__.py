"""The explorer: one page beside a report in which a reader points at heads and tokens.

Python gathers what the page holds (explorer_contents.py) and puts it, with the page's source, into one file
(explorer_page.py): its data gzipped and in base64, which nothing in it can leave, and one script, which the page's
policy knows by its hash. The source is in page/: plain modules of JavaScript without any library, typed in JSDoc, which
`tsc --checkJs --strict` accepts. main.js has the views and what they share, state.js the address that holds what is
seen, study.js the study's tables and models, transformer.js the forward pass.
"""
