"""Words that the layouts place themselves: headings, column heads, buttons."""

from dump_analysis.report.said import Voice
from dump_analysis.wording import TABLE, render

_LABELS = (
    "h_conclusion", "h_where", "h_findings", "h_growth", "h_tokens", "h_causes", "h_rounds", "h_table", "h_open", "h_inputs", "h_read",
    "rail_where", "rail_findings", "rail_growth", "rail_tokens", "rail_causes", "rail_rounds", "rail_open", "rail_inputs", "rail_read",
    "page_sections", "page_skip", "page_theme", "page_todo", "page_copy", "page_lives",
    "tag_rounding", "card_for", "card_against", "card_decide", "card_fix", "card_details", "card_rounding",
    "fact_where", "col_point", "col_unequal", "col_largest", "col_direction", "col_explained", "col_boundary", "col_state", "col_max",
    "col_rel", "col_finding", "col_cause", "col_verdict", "col_because", "col_what", "col_why", "col_decides", "col_axis", "col_status",
    "col_evidence", "col_distance", "col_train_smaller", "col_train_larger", "col_layer", "col_place", "growth_from",
    "filter_label", "filter_hint", "filter_show", "filter_none", "filter_clear", "filter_more", "filter_full",
    "open_statuses", "open_decides", "open_metrics", "open_limits", "in_alignment", "in_axes", "in_files", "in_again", "read_answer",
)  # fmt: skip


def labels(voice: Voice) -> dict[str, str]:
    """Each label by its kind, in the language of the report. Raises KeyError for one that the table lacks."""
    assert all(kind in TABLE for kind in _LABELS)
    return {kind: render(kind, {}, voice.language) for kind in _LABELS}
