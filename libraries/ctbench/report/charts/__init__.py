"""Charts of a report: what they show (models, made from records) and how they are drawn (static SVG)."""
