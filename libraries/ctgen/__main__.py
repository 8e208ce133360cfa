"""`python -m ctgen`: see `ctgen.command`."""

import sys

from ctgen.command import main

sys.exit(main())
