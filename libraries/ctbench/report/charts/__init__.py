"""Charts of a report: models made from records. Templates draw them as static SVG."""
