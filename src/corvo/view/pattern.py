r"""Patterns of `test`: regular expressions matched in time linear in the text.

Whoever may search may send a pattern, so an engine that backtracks is out of the question: a short
pattern can keep it busy for hours. Here a pattern becomes an automaton whose states are computed as
a text is read and remembered, up to a bound. What such an automaton cannot do (back-references,
look-around, word boundaries) is refused when the pattern is read.

Known: literals, `.`, classes with ranges, `\d \w \s` and their opposites, `\t \n \r`, groups,
alternatives, `* + ? {m} {m,} {m,n}` (lazy forms mean the same here), `^` and `\A` at the start of
the text, `$` at its end or before a newline that ends it, `\z` at its end.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from corvo.model import limits

Test = Callable[[str], bool]


class PatternError(ValueError):
    """The pattern is outside what is known; `at` is the place, counted from zero."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class One(Struct, frozen=True, gc=False):
    """One character of a set: single characters, ranges, and named sets."""

    singles: frozenset[str]
    ranges: tuple[tuple[str, str], ...]
    names: str
    is_negated: bool


class Anchor(Struct, frozen=True, gc=False):
    """A place: `^`, `$` or `z`."""

    sign: str


class Sequence(Struct, frozen=True, gc=False):
    """One after the other."""

    parts: tuple["Tree", ...]


class Either(Struct, frozen=True, gc=False):
    """One of several."""

    parts: tuple["Tree", ...]


class Repeat(Struct, frozen=True, gc=False):
    """Several times; no end is None."""

    part: "Tree"
    least: int
    most: int | None


Tree = One | Anchor | Sequence | Either | Repeat

_NAMED: Final[dict[str, Test]] = {
    "d": str.isdecimal,
    "w": lambda character: character.isalnum() or character == "_",
    "s": lambda character: character in " \t\n\v\f\r\x85\u2028\u2029" or character.isspace(),
}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_ANY: Final = One(frozenset("\n"), (), "", is_negated=True)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._either()
        if self._at < len(self._source):
            self._refuse("this parenthesis was not opened")
        return tree

    def _refuse(self, message: str) -> None:
        raise PatternError(message, self._at)

    @property
    def _now(self) -> str:
        return self._source[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if self._source.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _either(self) -> Tree:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._now and self._now not in "|)":
            parts.append(self._repeated())
        return Sequence(tuple(parts))

    def _repeated(self) -> Tree:
        tree = self._atom()
        is_repeated = False
        while True:
            start = self._at
            least_most = self._times()
            if least_most is None:
                return tree
            if is_repeated or isinstance(tree, Anchor):
                self._at = start
                self._refuse("nothing to repeat")
            is_repeated = True
            tree = Repeat(tree, *least_most)
            self._take("?")

    def _times(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        if self._now != "{":
            return None
        until = self._source.find("}", self._at)
        body = self._source[self._at + 1 : until] if until > 0 else ""
        low, comma, high = body.partition(",")
        for text in (low, high or "0"):
            if not (text.isascii() and text.isdigit() and len(text) <= 4):
                self._refuse("this is not a count; write \\{ for the character")
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            self._refuse("the count ends before it begins")
        if max(least, most or 0) > limits.PATTERN_REPEAT_MAX:
            self._refuse(f"at most {limits.PATTERN_REPEAT_MAX} repetitions can be counted")
        self._at = until + 1
        return least, most

    def _atom(self) -> Tree:
        character = self._now
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character in "*+?{":
            self._refuse("nothing to repeat" if character != "{" else "write \\{")
        if character == "\\":
            return self._escape()
        self._at += 1
        if character == ".":
            return _ANY
        if character in "^$":
            return Anchor(character)
        return One(frozenset(character), (), "", is_negated=False)

    def _group(self) -> Tree:
        start = self._at
        self._at += 1
        if self._now == "?" and not self._take("?:"):
            self._refuse("look-around, names and options of groups are not known")
        self._depth += 1
        if self._depth > limits.JQ_DEPTH_MAX:
            self._refuse("the pattern is nested too deep")
        tree = self._either()
        if not self._take(")"):
            self._at = start
            self._refuse("this parenthesis is not closed")
        self._depth -= 1
        # A group is one thing to repeat, also when it holds an anchor.
        return Sequence((tree,))

    def _escape(self) -> Tree:
        self._at += 1
        character = self._now
        if character in ("A", "Z", "z"):
            self._at += 1
            return Anchor({"A": "^", "Z": "$", "z": "z"}[character])
        names, single = self._escaped()
        if single:
            return One(frozenset(single), (), "", is_negated=False)
        return One(frozenset(), (), names, is_negated=False)

    def _escaped(self) -> tuple[str, str]:
        """Read what follows a backslash: the name of a set, or one character."""
        character = self._now
        if character and character in "dwsDWS":
            self._at += 1
            return character, ""
        if character in _ESCAPES:
            self._at += 1
            return "", _ESCAPES[character]
        if not character or character.isalnum():
            self._refuse("this escape is not known")
        self._at += 1
        return "", character

    def _class(self) -> Tree:
        start = self._at
        self._at += 1
        is_negated = self._take("^")
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        names = ""
        is_first = True
        while is_first or self._now != "]":
            if not self._now:
                self._at = start
                self._refuse("this class is not closed")
            if is_first and self._now == "]":
                self._refuse("an empty class; write \\] for the character")
            is_first = False
            name, low = self._class_item()
            if name:
                names += name
                continue
            if self._now == "-" and self._source[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                name, high = self._class_item()
                if name or high < low:
                    self._refuse("this range ends before it begins")
                ranges.append((low, high))
            else:
                singles.add(low)
        self._at += 1
        return One(frozenset(singles), tuple(ranges), names, is_negated)

    def _class_item(self) -> tuple[str, str]:
        if self._take("\\"):
            return self._escaped()
        character = self._now
        if character == "[" or self._source.startswith("&&", self._at):
            self._refuse("classes within classes are not known; write \\[ for the character")
        self._at += 1
        return "", character


def parse(source: str) -> Tree:
    """Read a pattern. Raises `PatternError`."""
    tree = _Reader(source).whole()
    if _size(tree) > limits.PATTERN_STATES_MAX:
        raise PatternError("the pattern is too large", 0)
    return tree


def _size(tree: Tree) -> int:
    """Count the states the automaton will have."""
    match tree:
        case Sequence(parts) | Either(parts):
            return 1 + sum(_size(part) for part in parts)
        case Repeat(part, least, most):
            return 1 + _size(part) * max(1, least + 1 if most is None else most)
        case _:
            return 1


# A node of the automaton: what it needs, and where it goes. "one" consumes a character, "at" needs
# a place, "split" goes on in two directions, "end" is the match.
_Step = tuple[str, object, int, int]
_END: Final = 0
_MATCH: Final = -1
_NO_MATCH: Final = -2
_Ending = tuple[frozenset[int] | None, str, int, bool]


class Pattern:
    """A compiled pattern. Not safe for use from two threads."""

    def __init__(self, source: str, *, ignores_case: bool) -> None:
        self._ignores_case = ignores_case
        self._steps: list[_Step] = [("end", None, 0, 0)]
        self._first = self._compile(parse(source), _END)
        self._forget()
        self._opening = self._closure([self._first], is_start=True, rest=2, ends_line=False)
        # Whether a match can only begin at the start: then states can die out for good.
        later = [
            self._closure([self._first], is_start=False, rest=n, ends_line=True) for n in (0, 1)
        ]
        self._is_anchored = not any(later)

    def _forget(self) -> None:
        self._states: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._moves: list[dict[str, int]] = []
        self._endings: dict[_Ending, frozenset[int]] = {}

    # --- from tree to automaton -------------------------------------------------------------------

    def _add(self, kind: str, value: object, target: int, other: int = 0) -> int:
        self._steps.append((kind, value, target, other))
        return len(self._steps) - 1

    def _compile(self, tree: Tree, target: int) -> int:
        """Build the states of a tree that go on at `target`, and return the first of them."""
        match tree:
            case One():
                return self._add("one", tree, target)
            case Anchor(sign):
                return self._add("at", sign, target)
            case Sequence(parts):
                for part in reversed(parts):
                    target = self._compile(part, target)
                return target
            case Either(parts):
                first = self._compile(parts[-1], target)
                for part in reversed(parts[:-1]):
                    first = self._add("split", None, self._compile(part, target), first)
                return first
            case Repeat(part, least, most):
                return self._compile_repeat(part, least, most, target)

    def _compile_repeat(self, part: Tree, least: int, most: int | None, target: int) -> int:
        first = target
        if most is None:
            loop = self._add("split", None, 0, target)
            self._steps[loop] = ("split", None, self._compile(part, loop), target)
            first = loop
        else:
            for _ in range(most - least):
                first = self._add("split", None, self._compile(part, first), target)
        for _ in range(least):
            first = self._compile(part, first)
        return first

    # --- running ----------------------------------------------------------------------------------

    def matches(self, text: str, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Say whether the pattern matches somewhere in a text.

        Raises `TimeoutError` when `is_over` says so: each character costs at most the number of
        states, but texts may be long.
        """
        size = len(text)
        ends_line = text.endswith("\n")
        start = self._ending(None, "", size, ends_line=ends_line) if size < 2 else self._opening
        if _END in start:
            return True
        number = self._number(start)
        moves = self._moves
        # Places at the end are only found at the last two positions.
        for character in text[: max(size - 2, 0)]:
            following = moves[number].get(character)
            if following is None:
                if is_over():
                    raise TimeoutError
                following = self._move(number, character)
                moves = self._moves
            if following < 0:
                return following == _MATCH
            number = following
        now = self._sets[number]
        for at in range(max(size - 2, 0), size):
            now = self._ending(now, text[at], size - at - 1, ends_line=ends_line)
            if _END in now:
                return True
        return False

    def _ending(
        self, states: frozenset[int] | None, character: str, rest: int, *, ends_line: bool
    ) -> frozenset[int]:
        """The states after one of the last characters; None is before the first one."""
        key = (states, character, rest, ends_line)
        found = self._endings.get(key)
        if found is None:
            if len(self._endings) >= limits.PATTERN_CACHE_MAX:
                self._endings.clear()
            moved = [] if states is None else self._consumed(states, character)
            found = self._endings[key] = self._closure(
                [*moved, self._first], is_start=states is None, rest=rest, ends_line=ends_line
            )
        return found

    def _number(self, states: frozenset[int]) -> int:
        number = self._states.get(states)
        if number is None:
            number = self._states[states] = len(self._sets)
            self._sets.append(states)
            self._moves.append({})
        return number

    def _move(self, number: int, character: str) -> int:
        """Compute and remember one move; negative is a match."""
        states = self._sets[number]
        moved = self._consumed(states, character)
        # Two characters and more are left: no place at the end can be here.
        following = self._closure([*moved, self._first], is_start=False, rest=2, ends_line=False)
        if _END in following or (self._is_anchored and not following):
            verdict = self._moves[number][character] = _MATCH if following else _NO_MATCH
            return verdict
        if len(self._sets) >= limits.PATTERN_CACHE_MAX or len(self._moves[number]) >= 4_096:
            # Safety: numbers are dealt anew, and the one returned is the only one in use.
            self._forget()
            return self._number(following)
        target = self._number(following)
        self._moves[number][character] = target
        return target

    def _consumed(self, states: Iterable[int], character: str) -> list[int]:
        found: list[int] = []
        for state in states:
            kind, value, target, _ = self._steps[state]
            if kind == "one" and self._is_in(value, character):
                found.append(target)
        return found

    def _closure(
        self, states: Iterable[int], *, is_start: bool, rest: int, ends_line: bool
    ) -> frozenset[int]:
        """Every state reached without a character; those that consume one, and the end."""
        seen: set[int] = set()
        found: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            kind, value, target, other = self._steps[state]
            if kind == "split":
                waiting += (target, other)
            elif kind == "at":
                is_here = is_start if value == "^" else rest == 0
                if value == "$" and rest == 1:
                    is_here = ends_line
                if is_here:
                    waiting.append(target)
            else:
                found.add(state)
        return frozenset(found)

    def _is_in(self, one: object, character: str) -> bool:
        assert isinstance(one, One)
        if _is_member(one, character):
            return not one.is_negated
        if self._ignores_case:
            for other in {character.lower(), character.upper()} - {character}:
                if len(other) == 1 and _is_member(one, other):
                    return not one.is_negated
        return one.is_negated


def _is_member(one: One, character: str) -> bool:
    if character in one.singles or any(low <= character <= high for low, high in one.ranges):
        return True
    return any(_NAMED[name.lower()](character) == name.islower() for name in one.names)
