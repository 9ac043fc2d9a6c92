"""What the programs of this folder share: their flags, and where their results go."""

import pathlib
import sys

# Importing this file puts tools/bench on sys.path for `figures`, so programs import it first.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import figures  # noqa: E402
import flags  # noqa: E402
import measured_run  # noqa: E402


def run(compare, description, add_flags):
    """Calls `compare(program, options)`, which prints tables, and writes what it returns."""
    parser = flags.make_parser(description)
    add_flags(parser.add_argument)
    parser.add_argument("--json", type=pathlib.Path, help="write everything here too")
    parser.add_argument("--program", default=measured_run.PROGRAM,
                        help="the spillway program (default: %(default)s)")
    options = parser.parse_args()
    program = measured_run.find_program(options.program)
    figures.expect_writable(options.json)
    try:
        result = compare(program, options)
        result["circumstances"] = measured_run.circumstances(program)
    except measured_run.Failure as failure:
        sys.exit(f"{sys.argv[0]}: {failure}")
    figures.write_json(options.json, result)
