# SPDX-License-Identifier: Apache-2.0
"""Steps of SciCode (arXiv:2407.13168) whose code its authors give to every model, and do not count.

They do what the authors' own code does (eval/data of scicode-bench/SciCode): later tests rely on its names, and on the
order in which it draws random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

_GRID = '''\
class Maxwell:
    """A grid over an octant, the fields on it, and the time."""

    def __init__(self, n_grid, x_out):
        self.n_grid = n_grid
        self.n_vars = 7
        self.t = 0.0
        self.delta = float(x_out) / (n_grid - 2.0)
        line = np.linspace(-0.5 * self.delta, x_out + 0.5 * self.delta, n_grid)
        self.x = line[:, None, None]
        self.y = line[None, :, None]
        self.z = line[None, None, :]
        self.r = np.sqrt(self.x**2 + self.y**2 + self.z**2)
        shape = (n_grid, n_grid, n_grid)
        self.E_x, self.E_y, self.E_z = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.A_x, self.A_y, self.A_z = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.phi = np.zeros(shape)
        self.constraint = np.zeros(shape)
'''
_BLOCKS = '''\
class Block:
    """A part of the chain: its length, the size of its basis, and its operators by name."""

    def __init__(self, length, basis_size, operator_dict):
        self.length = length
        self.basis_size = basis_size
        self.operator_dict = operator_dict

    def print_all(self):
        print(self.length)
        print(self.basis_size)
        for name, operator in self.operator_dict.items():
            dense = operator if isinstance(operator, np.ndarray) else operator.toarray()
            print(f"{name}:\\n{dense}\\n")


class EnlargedBlock(Block):
    """A block with one more site."""
'''
_SEQUENCE = '''\
def generate_dna(N, PWM):
    """A random sequence of N letters with a motif drawn from PWM put into it: (place, sequence, reverse complement)."""
    place = random.randint(0, N - 1)
    letters = "ACGT"
    plain = "".join(random.choices(letters, weights=[0.25] * 4, k=N))
    motif = "".join(
        random.choices(letters, weights=[PWM[letter][column] for letter in letters], k=1)[0]
        for column in range(len(PWM["A"]))
    )
    turned = plain[::-1].translate(str.maketrans("ACGT", "TGCA"))
    return place, plain[:place] + motif + plain[place:], turned[: N - place] + motif + turned[N - place :]
'''
GIVEN: Mapping[str, str] = {"13.6": _GRID, "62.1": _BLOCKS, "76.3": _SEQUENCE}
"""Number of the step → its code."""
