"""Charts of the report as inline SVG, each drawn at two widths; colours come from the page's classes."""
