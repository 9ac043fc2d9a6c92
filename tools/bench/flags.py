"""The command line of a benchmark: its parser, and what several have in common."""

import argparse
import pathlib


def make_parser(description, epilog=None):
    """A parser that leaves the lines of both texts as they are."""
    return argparse.ArgumentParser(description=description, epilog=epilog,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def word_list(text):
    return [word for word in text.split(",") if word]


def whole_numbers(text):
    return [int(word) for word in text.split(",")]


def expect_networks(parser, networks, example):
    """Ends with a sentence unless all `networks` are NET:BATCH."""
    for text in networks:
        if not text.partition(":")[2].isdigit():
            parser.error(f"'{text}' in --networks is not NET:BATCH, such as {example}")


def expect_folder(parser, folder):
    """Ends with a sentence unless there is the folder of --folder."""
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}; name one with --folder")


def words_of(options):
    """For JSON."""
    return {key: str(value) if isinstance(value, pathlib.Path) else value
            for key, value in vars(options).items()}
