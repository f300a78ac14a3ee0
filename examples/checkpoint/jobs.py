"""A long search that goes on where it was, whatever happens to the worker."""

from typing import TypedDict

from corvo_sdk import Context, Corvo

app = Corvo("search")


class Place(TypedDict):
    """Where the search stands: all there is to know to go on."""

    exponent: int
    found: list[int]


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def is_mersenne(exponent: int) -> bool:
    """Say whether 2**exponent - 1 is prime, by the test of Lucas and Lehmer."""
    number = (1 << exponent) - 1
    rest = 4
    for _ in range(exponent - 2):
        rest = (rest * rest - 2) % number
    return exponent == 2 or rest == 0  # the test is for odd exponents


# The lease is short so that the job of a worker that was killed comes back soon; the worker renews
# it all the time, however long the search takes. Nothing but computing: in a process of its own.
@app.task(queue="search", retries=10, lease="3s", process=True, unique=True)
def mersenne(ctx: Context, until: int) -> list[int]:
    """Find the exponents below `until` that give a Mersenne prime."""
    place: Place = ctx.checkpoint_value or {"exponent": 2, "found": []}
    ctx.log.info("attempt %d begins at exponent %d", ctx.attempt, place["exponent"])
    for exponent in range(place["exponent"], until):
        ctx.raise_if_cancelled()  # SIGTERM to the worker: give the job back with its checkpoint
        if is_prime(exponent) and is_mersenne(exponent):
            place["found"].append(exponent)
        if exponent % 50 == 0:
            place["exponent"] = exponent + 1
            ctx.checkpoint(place)  # returns when it is on the server's disk
            ctx.progress(exponent, until)
    return place["found"]
