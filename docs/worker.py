#!/usr/bin/env python3
"""A worker for rehydrate in another language: rehydrate ocr RELEASE --ocr docs/worker.py

It recognises nothing. It answers each picture with its size and its share of ink, as words side by side: put a real
engine into recognise, its name into ENGINE, and the digest of its model into model_sha256. docs/ocr.md has
the protocol; `ocr conform docs/worker.py` checks it. Only the standard library is used, and nothing is written.
"""
import hashlib
import json
import sys

PROTOCOL = 6

# What datasets are published under. Whoever changes any of it has every picture read again.
ENGINE = {
    "name": "picture sizes 1.0",
    "model": "none",
    "model_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
    "parameters": "ink below 128",
}


def recognise(width, height, pixels, psm):
    """Yield (text, confidence from 0 to 100, left, top, right, bottom) for each word.

    pixels are the grey bytes of the picture, row by row, 0 black. psm is 13 for one line of text, black on white,
    and 11 for a whole picture.
    """
    if width < 60:
        return  # no room for the words below
    ink = 100 * (len(pixels) - len(pixels.translate(None, bytes(range(128))))) // len(pixels)
    what = "LINE" if psm == 13 else "PICTURE"
    words = f"THIS {what} IS {width} WIDE AND {height} HIGH WITH {ink} PERCENT INK".split()
    step = width // len(words)
    for i, text in enumerate(words):
        yield text, 95, i * step, 0, (i + 1) * step - 1, height


def word(text, confidence, left, top, right, bottom):
    box = {"Min": {"X": left, "Y": top}, "Max": {"X": right, "Y": bottom}}
    # An engine with a layout of its own numbers its blocks, paragraphs and lines here.
    return {"Text": text, "Confidence": confidence, "Box": box, "Block": 0, "Par": 0, "Line": 0}


def answer(request, pictures):
    """Answer a request whose pixels have been read; an error costs its image, not the worker."""
    try:
        words = [[word(*w) for w in recognise(size["X"], size["Y"], pixels, request["Mode"]["PSM"])]
                 for size, pixels in zip(request["Sizes"], pictures)]
        return {"id": request["ID"], "words": words}
    except Exception as error:
        return {"id": request["ID"], "error": str(error) or type(error).__name__}


def main():
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the messages

    def say(message):
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    if sys.argv[1:2] == ["doctor"]:  # rehydrate doctor --ocr docs/worker.py
        say({"checks": [{"name": "engine", "ok": True, "found": ENGINE["name"]}]})
        return
    say({"protocol": PROTOCOL, "engine": ENGINE})
    while line := requests.readline():  # until the supervisor closes it
        request = json.loads(line)
        pictures = [requests.read(size["X"] * size["Y"]) for size in request["Sizes"]]
        say(answer(request, pictures))


if __name__ == "__main__":
    main()
