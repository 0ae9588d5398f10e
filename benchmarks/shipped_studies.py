"""How long the three studies that the claims rest on take together, from an empty home.

python -m benchmarks.shipped_studies
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.study import run_seconds

STUDIES = ("quick", "heads", "architecture")


def main() -> dict[str, str]:
    """Run them one after another, and print and return how long that took."""
    minutes = 0.0
    with TemporaryDirectory() as home:
        for study in STUDIES:
            own = run_seconds(Path(home), study)[0] / 60
            print(f"run {study}: {own:.1f} min", flush=True)
            minutes += own
    print(f"all three: {minutes:.0f} min")
    return {"shipped": f"{minutes:.0f} min"}


if __name__ == "__main__":
    main()
