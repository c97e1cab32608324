"""The template of a report source, as people begin one by hand."""

from pathlib import Path

from msprobe_files.errors import DumpError

from dump_analysis.artefacts import io
from dump_analysis.wording import Language

_FOLDER = Path(__file__).parent.parent.parent.parent / "references" / "templates"


def write(path: Path, language: Language) -> None:
    """Write the template of a language. Raises DumpError where there is a file already, or the skill folder is not whole."""
    if path.exists():
        raise DumpError(f"Cannot write {path}: it is there already. Choose another name, or edit what it holds.")
    template = _FOLDER / f"alignment_report_source.{language}.json"
    try:
        data = template.read_bytes()
    except OSError:
        raise DumpError(f"Cannot write {path}: {template.name} is not in references/templates. Copy the whole skill folder.") from None
    io.write_bytes(path, data)
