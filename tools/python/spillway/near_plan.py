"""Which saved blocks are near: offloads what is used last, prefetches what is used next."""

from .library import Error

NEVER = (float("inf"), 0)


class Entry:
    """A saved block as plans see it, which may outlive the block."""

    def __init__(self, step, number, address, size):
        self.step, self.number, self.address, self.size = step, number, address, size
        self.is_live = True


class NearPlan:
    """Hints that mean to have at most `budget` bytes near.

    What is near by these books is what the hints should have made so; the space keeps to its own
    budget anyway. `steps` are the open ones, in the order in which their blocks are expected back.
    """

    def __init__(self, space, budget):
        self.space, self.budget = space, budget
        self.near = {}  # an ordered set
        self.held = 0  # bytes

    def is_near(self, entry):
        return entry in self.near

    def arrive(self, entry):
        """The block is near, or on its way."""
        if entry not in self.near:
            self.near[entry] = None
            self.held += entry.size

    def leave(self, entry):
        """The block is far, or gone."""
        if entry in self.near:
            del self.near[entry]
            self.held -= entry.size

    def make_room(self, size, steps, in_hand):
        """Offloads what is used last, until `size` more bytes fit."""
        if self.held + size > self.budget:
            self.offload_for(size, places(steps), in_hand, NEVER)

    def prefetch_ahead(self, steps, in_hand):
        """Prefetches in the order of use what fits beside what is used earlier."""
        places_of = places(steps)
        for entry, place in places_of.items():
            if entry in self.near or entry.size > self.budget:
                continue
            if not self.offload_for(entry.size, places_of, in_hand, place):
                return
            self.arrive(entry)
            self.hint("prefetch", entry)

    def offload_for(self, size, places_of, in_hand, limit):
        """Whether `size` fits now; gives up nothing that is used before `limit`."""
        if self.held + size <= self.budget:
            return True

        def place(entry):
            return places_of.get(entry, NEVER)

        last_first = sorted((e for e in self.near if e is not in_hand), key=place, reverse=True)
        freed = 0
        for count, entry in enumerate(last_first, 1):
            if limit != NEVER and place(entry) <= limit:
                break
            freed += entry.size
            if self.held + size - freed <= self.budget:
                self.offload(last_first[:count])
                return True
        if limit == NEVER:
            self.offload(last_first)
        return False

    def offload(self, entries):
        for entry in entries:
            self.leave(entry)
            self.hint("offload", entry)

    def hint(self, name, entry):
        try:
            self.space.call(name, entry.address, entry.size)
        except Error as error:
            if error.status != "NOT_ALLOCATED":  # the block has just gone
                raise


def places(steps):
    """Each live block that is expected, in the order of use: (place of its step, uses before)."""
    result = {}
    for order, step in enumerate(steps):
        for before, number in enumerate(step.expected_uses()):
            if number < len(step.entries):
                entry = step.entries[number]
                if entry.is_live and entry not in result:
                    result[entry] = (order, before)
    return result
