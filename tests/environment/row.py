# SPDX-License-Identifier: BSD-2-Clause
"""What a row is: one environment, one action, and what must come out."""
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """`works`: both ends may end well. `codes`: those in the environment may instead end with one of these, and then say why
    (`reason`) in their log. `killed`: they may be ended by the kernel. The other end is judged by `peer`: it works, or it
    ends with an error of its own, in time."""
    works: bool = True
    codes: tuple = ()
    reason: str = r"\S"
    killed: bool = False
    peer_fails: bool = False


WORKS = Outcome()
RESOURCE = ("VIP_ERROR_RESOURCE",)


def refused(*codes, reason=r"\S"):
    return Outcome(works=False, codes=codes or RESOURCE, reason=reason, peer_fails=True)


def works_or(*codes, reason=r"\S", killed=False):
    return Outcome(codes=codes or RESOURCE, reason=reason, killed=killed, peer_fails=True)


# The peer goes away; its own end is not judged, only that the survivor is told.
SURVIVES = Outcome()


@dataclass(frozen=True)
class Row:
    kind: str
    environment: str
    action: str
    outcome: Outcome = WORKS
    both: tuple = ()         # words of surroundings.py for both ends; server and client add theirs
    server: tuple = ()
    client: tuple = ()
    agent: object = None     # None: starts by itself; a tuple: started first in these surroundings; a word: agents.py
    server_moment: str = ""
    client_moment: str = ""
    variables: dict = field(default_factory=dict)
    cgroup: tuple = ()       # (controller, limit): made for the row, joined by the word "cgroup"
    own_network: bool = False
    says: str = ""           # what the output of a tool must contain
    status: int = 0          # with which a tool must end
    seconds: float = 25.0    # of running time, then the row has hung

    @property
    def name(self):
        text = f"{self.kind}.{self.environment}.{self.action}"
        return re.sub(r"[^A-Za-z0-9_.:=,+-]+", "-", text)
