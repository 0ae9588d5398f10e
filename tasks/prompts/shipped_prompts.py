"""The prompt sets that ship: templates, and the words that are drawn into them.

Of each set more pairs are drawn than are measured, since a tokenizer may read two words as different numbers of tokens.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from headstream.tasks.prompts.prompt_pair import PromptPair

DRAWN = 2000  # candidates for the pairs of a set
REPEATS = "repeats"  # random tokens of a model's own vocabulary, which no template has

HE = (
    "John",
    "Tom",
    "James",
    "Dan",
    "Paul",
    "Mark",
    "David",
    "Peter",
    "Michael",
    "Robert",
    "William",
    "Henry",
    "Charles",
)
SHE = ("Mary", "Anna", "Sarah", "Emma", "Laura", "Alice", "Kate", "Jane", "Susan", "Helen", "Lucy", "Julia", "Rachel")
PLACES = ("store", "park", "office", "station", "library", "beach", "museum", "school")
THINGS = ("drink", "book", "letter", "key", "ring", "map", "phone", "gift")

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "China": "Beijing",
    "Russia": "Moscow", "Egypt": "Cairo", "Greece": "Athens", "Poland": "Warsaw", "Austria": "Vienna",
    "Ireland": "Dublin", "Norway": "Oslo", "Sweden": "Stockholm", "Cuba": "Havana", "Peru": "Lima", "Iran": "Tehran",
    "Portugal": "Lisbon", "Hungary": "Budapest", "Finland": "Helsinki",
}  # fmt: skip
NOUNS = {
    "key": "keys", "dog": "dogs", "teacher": "teachers", "car": "cars", "picture": "pictures", "child": "children",
    "window": "windows", "letter": "letters", "farmer": "farmers", "painter": "painters", "doctor": "doctors",
    "author": "authors", "tree": "trees", "lawyer": "lawyers",
}  # fmt: skip
PLACED = ("near the {}", "behind the {}", "beside the {}", "next to the {}")
EVENTS = ("war", "project", "strike", "journey", "trial", "reign", "drought", "festival")
ARGUMENTS = ("path", "name", "value", "index", "key", "text", "data", "node", "item", "size", "line", "word")
FUNCTIONS = ("read", "find", "load", "check", "update", "merge", "print", "count")


class PromptSet(NamedTuple):
    """A set that ships: what it is about, and how a pair of it is drawn."""

    about: str
    draw: Callable[[Random], PromptPair] | None  # None: drawn from a model's tokens


def _ioi(random: Random) -> PromptPair:
    first, second = random.sample(HE + SHE, 2)
    again, once = (first, second) if random.random() < 0.5 else (second, first)
    place, thing = random.choice(PLACES), random.choice(THINGS)
    form = random.choice(
        (
            "When {a} and {b} went to the {place}, {again} gave a {thing} to",
            "Then {a} and {b} met at the {place}. After a while {again} handed a {thing} to",
            "{a} and {b} worked near the {place} all day. In the evening {again} showed a {thing} to",
            "Since {a} and {b} were friends from the {place}, {again} decided to send a {thing} to",
            "After {a} and {b} left the {place}, {again} returned the {thing} to",
            "While {a} and {b} waited at the {place}, {again} offered a {thing} to",
            "{a} and {b} argued in the {place} for an hour, and then {again} passed the {thing} to",
            "As soon as {a} and {b} reached the {place}, {again} threw a {thing} to",
        )
    )
    words = {"a": first, "b": second, "place": place, "thing": thing}
    prompt, corrupt = form.format(again=again, **words), form.format(again=once, **words)
    return PromptPair(prompt, corrupt, (f" {once}",), (f" {again}",), form)


def _greater_than(random: Random) -> PromptPair:
    century, year = random.randint(11, 19), random.randint(12, 88)
    form = random.choice(
        (
            "The {event} lasted from the year {century}{year:02} to the year {century}",
            "The {event} began in {century}{year:02} and came to its end in {century}",
            "It was in {century}{year:02} that the {event} started, and it was over in {century}",
            "From {century}{year:02} on there was a {event}, which went on until {century}",
            "Records of the {event} run from {century}{year:02} to {century}",
            "The {event}, begun in {century}{year:02}, was not finished before {century}",
            "Between the years {century}{year:02} and {century}",
            "The first {event} was in {century}{year:02} and the last one in {century}",
        )
    )
    words = {"event": random.choice(EVENTS), "century": century}
    later, earlier = ([f"{other:02}" for other in years] for years in (range(year + 1, 100), range(2, year + 1)))
    prompt, corrupt = form.format(year=year, **words), form.format(year=1, **words)
    return PromptPair(prompt, corrupt, tuple(later), tuple(earlier), form)


def _agreement(random: Random) -> PromptPair:
    head, other = random.sample(sorted(NOUNS), 2)
    place = random.choice(PLACED)
    form = random.choice(
        (
            "The {} {}",
            "I think that the {} {}",
            "Yesterday we heard that the {} {}",
            "It seems the {} {}",
            "As everybody knows, the {} {}",
            "They told us why the {} {}",
            "Look how the {} {}",
            "In the end, the {} {}",
        )
    )
    many = form.format(NOUNS[head], place.format(other))
    one = form.format(head, place.format(NOUNS[other]))
    plural, singular = (" are", " were", " have"), (" is", " was", " has")
    if random.random() < 0.5:
        return PromptPair(many, one, plural, singular, form)
    return PromptPair(one, many, singular, plural, form)


def _pronouns(random: Random) -> PromptPair:
    he, she = random.choice(HE), random.choice(SHE)
    form = random.choice(
        (
            "{} was tired after the long walk, so",
            "{} is a good doctor, isn't",
            "{} came home late because",
            "Everybody likes {}, since",
            "{} said nothing all evening, but then",
            "{} is glad that",
            "I asked {} whether",
            "{} did not come, although",
        )
    )
    own, other = ((he, " he"), (she, " she"))[:: random.choice((1, -1))]
    return PromptPair(form.format(own[0]), form.format(other[0]), (own[1],), (other[1],), form)


def _capitals(random: Random) -> PromptPair:
    country, other = random.sample(sorted(CAPITALS), 2)
    form = random.choice(
        (
            "The capital of {} is",
            "The capital city of {} is called",
            "Q: What is the capital of {}? A:",
            "She works for the government of {}, in the capital,",
            "Of all the cities of {} we liked the capital best:",
            "The president of {} lives in the capital,",
            "Every road in {} leads to the capital,",
            "The parliament of {} meets in",
        )
    )
    return PromptPair(
        form.format(country), form.format(other), (f" {CAPITALS[country]}",), (f" {CAPITALS[other]}",), form
    )


def _closing(random: Random) -> PromptPair:
    outer, inner, name = random.choice(FUNCTIONS), random.choice(ARGUMENTS), random.choice(ARGUMENTS)
    before = ("", "x = ", "    return ", "if ", "print(x)\n", "for x in ", "self.x = ", "assert ")
    form = random.choice(before) + "{o}{a}{i}{b}{n}"
    words = {"o": outer, "i": inner, "n": name}
    square, round_ = form.format(a="(", b="[", **words), form.format(a="[", b="(", **words)
    if random.random() < 0.5:
        return PromptPair(square, round_, ("]",), (")",), form)
    return PromptPair(round_, square, (")",), ("]",), form)


def _parameters(random: Random) -> PromptPair:
    function = random.choice(FUNCTIONS)
    own, other, second = random.sample(ARGUMENTS, 3)
    form = random.choice(
        (
            "def {f}({p}, {s}):\n    if {s}:\n        return",
            "def {f}(self, {p}):\n    self.{s} =",
            "def {f}({p}):\n    {s} = len(",
            "def {f}({p}, {s}=None):\n    for x in",
            "def {f}({p}):\n    print(",
            "def {f}({s}, {p}):\n    {s} = str(",
            "def {f}(self, {p}, {s}):\n    return",
            "class A:\n    def {f}(self, {p}):\n        self.x =",
        )
    )
    space = "" if form.endswith("(") else " "
    prompt, corrupt = (form.format(f=function, p=each, s=second) for each in (own, other))
    return PromptPair(prompt, corrupt, (space + own,), (space + other,), form)


SHIPPED: Mapping[str, PromptSet] = {
    REPEATS: PromptSet("random tokens that come again: what followed the last one before", None),
    "ioi": PromptSet("of two names, one comes again: the other is to follow", _ioi),
    "greater-than": PromptSet("a span of years begins: its end is a later one", _greater_than),
    "agreement": PromptSet("a verb agrees with its subject, whatever noun stands between", _agreement),
    "pronouns": PromptSet("a name is taken up by he or she", _pronouns),
    "capitals": PromptSet("the capital of a country", _capitals),
    "closing": PromptSet("code: the bracket that was opened last is closed", _closing),
    "parameters": PromptSet("code: the name of a function's parameter is used", _parameters),
}


def drawn_pairs(name: str, seed: int) -> list[PromptPair]:
    """Candidates for the pairs of a set that ships, all different, the same for the same seed."""
    draw = SHIPPED[name].draw
    return [] if draw is None else list(dict.fromkeys(_draws(draw, Random(f"{name} {seed}"))))


def _draws(draw: Callable[[Random], PromptPair], random: Random) -> Iterator[PromptPair]:
    for _ in range(DRAWN):
        yield draw(random)
