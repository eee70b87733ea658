"""python -m fairlease run -- COMMAND"""

import sys

from .run import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["run"]:
        sys.exit("usage: python -m fairlease run [--signal NAME] [--notice NAME] [--hold SECONDS] [--no-count] -- COMMAND [ARGUMENT ...]")
    sys.exit(main(sys.argv[2:]))
