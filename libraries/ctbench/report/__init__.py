"""Reports of runs: the page, files for other programs and lines of the console, made from records alone."""
