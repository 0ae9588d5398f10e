"""How long the three studies that the claims rest on take together, from an empty home.

python -m benchmarks.shipped_studies
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

STUDIES = ("quick", "heads", "architecture")


def main() -> dict[str, str]:
    """Run them one after another, and print and return how long that took."""
    began = time.perf_counter()
    with TemporaryDirectory() as home:
        for study in STUDIES:
            begun = time.perf_counter()
            command = [str(Path(sys.executable).parent / "headstream"), "run", study]
            subprocess.run(command, env={**os.environ, "HEADSTREAM_HOME": home}, check=True, capture_output=True)
            print(f"run {study}: {(time.perf_counter() - begun) / 60:.1f} min", flush=True)
    minutes = (time.perf_counter() - began) / 60
    print(f"all three: {minutes:.0f} min")
    return {"shipped": f"{minutes:.0f} min"}


if __name__ == "__main__":
    main()
