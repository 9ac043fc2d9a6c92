"""Flags that several benchmarks take."""


def word_list(text):
    return [word for word in text.split(",") if word]


def expect_networks(parser, networks, example):
    """Ends with a sentence unless all `networks` are NET:BATCH."""
    for text in networks:
        if not text.partition(":")[2].isdigit():
            parser.error(f"'{text}' in --networks is not NET:BATCH, such as {example}")
