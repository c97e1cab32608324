"""Write the golden files of `test_rendered_golden.py` as they are rendered now."""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "skills/accuracy/rl-consistency-dump-analysis/scripts")]


def main() -> None:
    """Every case in every language, as HTML and as Markdown."""
    from report_cases import CASES, LANGUAGES, without_assets

    with tempfile.TemporaryDirectory() as folder:
        for case, make in CASES.items():
            for language in LANGUAGES:
                rendered = make().rendered(Path(folder) / f"{case}-{language}", language)
                name = HERE / "golden" / f"{case}.{language}"
                name.with_name(f"{name.name}.md").write_text(rendered.markdown, encoding="utf-8")
                name.with_name(f"{name.name}.html").write_text(without_assets(rendered.html), encoding="utf-8")


if __name__ == "__main__":
    main()
