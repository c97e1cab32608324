"""The names under which the files of one analysis lie in its folder."""

CARD = "task_card.json"
PROBE, MAPPING, RESULTS, REPLAY = "probe.json", "semantic_mapping.json", "boundary_results.json", "replay_results.json"
CONCLUSION, SOURCE = "conclusion.json", "report_source.json"
REPORT_MARKDOWN, REPORT_HTML = "alignment_report.md", "alignment_report.html"
