"""The explorer: one page beside a report in which a reader points at heads and tokens.

Python gathers what the page holds (explorer_contents.py) and puts it, with the page's source, into one file
(explorer_page.py): its data gzipped and in base64, which nothing in it can leave, and one script, which the page's
policy knows by its hash. The source is in page/: plain modules of JavaScript without any library, typed in JSDoc. Each
NAME_view.js is a view; page.js says what a view is and has what all of them share, main.js opens them, state.js holds
the address that says what is seen, study.js the study's tables and models, transformer.js the forward pass.

`make lint` checks page/ with ESLint, Prettier and TypeScript, which package.json pins; `npm run format` formats it.
"""
