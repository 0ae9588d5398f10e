"""The claims in reports/claims, and what they make of studies in a warehouse."""

from claimed_studies import Tables

from headstream.tasks.results.claim_files import Claim, read_claims
from headstream.tasks.results.claims import decide
from headstream.tasks.results.tables import write_table

CLAIMS = {claim.claim_id: claim for claim in read_claims()}


def row_of(connection, claim: Claim, study: str) -> dict:
    return decide(connection, [claim], study)[0][0]


def fill(connection, folder, *studies: Tables) -> None:
    """Inserts the studies' rows, those of a table together."""
    for name in dict.fromkeys(name for study in studies for name in study):
        rows = [row for study in studies for row in study[name]]
        path = write_table(folder, name, rows)
        connection.execute(f"INSERT INTO {name} BY NAME FROM read_parquet(?)", [str(path)])
