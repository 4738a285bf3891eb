# SPDX-License-Identifier: Apache-2.0
"""Words, codes and running text to hide needles in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from random import Random

_ADJECTIVES = (
    "amber ancient bitter bold brave brief bright brisk broad calm careful cheap clean clever clumsy coastal cold "
    "colourful common cosy crisp curious curly damp dark dear deep dim distant dry dull dusty eager early easy "
    "elegant empty faint fair famous fancy fast fierce firm flat fond foreign fragile frank fresh friendly frosty "
    "full gentle glad glossy golden grand grateful green grey handy happy hard harsh heavy hidden high hollow "
    "honest huge humble icy ideal idle jolly joyful keen kind large late lazy lean light little lively local "
    "lonely long loud loyal lucky mellow merry mild modern modest narrow neat nervous new nimble noble noisy "
    "northern odd old open orange pale patient plain pleasant polite proud pure purple quick quiet rapid rare "
    "ready red rich ripe rough round royal rural rusty sad salty scarce secret serious shallow sharp shiny short "
    "shy silent silver simple sleepy slim slow small smooth soft solid sour southern spare spicy square steady "
    "steep stiff straight strange strict strong stubborn sudden sunny sweet swift tall tame tender thick thin "
    "tidy tiny tired tough urban useful vague vast violet warm weak wet white wide wild wise wooden yellow young"
)
_NOUNS = (
    "acorn actor anchor answer apple apron arrow artist atlas baker balcony bamboo banana bank barrel basket "
    "beach bell bench bicycle blanket boat bottle bowl bracelet branch bread brick bridge brush bucket butter "
    "button cabin cake camel camera candle canoe canvas captain carpet carrot castle cat cellar chair chalk "
    "cherry chess chimney circle circus cliff clock cloud coach coat coffee coin comet compass cook copper coral "
    "cotton cousin cow cradle crane creek crown cup curtain daisy dancer desert desk diamond doctor dolphin "
    "donkey door dragon drawer drum duck eagle easel elbow engine envelope falcon farmer feather fence ferry "
    "fiddle field finger fish flag flute forest fork fountain fox friend frog garden garlic gate ginger glacier "
    "glove goat grape guitar hammer harbour harp hat hedge helmet hill honey horse hotel house island ivy jacket "
    "jar jewel jungle kettle key kite kitten ladder lake lamp lantern leaf lemon letter library lily lion lizard "
    "magnet mango map maple market meadow melon mill mirror monkey moon mountain mouse museum mushroom napkin "
    "needle nest novel oak ocean olive onion orchard otter oven owl paddle painter palace panda paper parcel "
    "parrot path peach peanut pebble pencil penguin pepper piano pillow pilot pine pirate planet plum pocket poem "
    "pond pony potato pumpkin puppet rabbit radio rain raven ribbon rice river road robin rocket roof rope rose "
    "sailor salad salmon sand scarf school shell shoe singer sister sofa soup spider spoon squirrel stable star "
    "statue stone storm story street sugar swan table tailor teacher tent theatre thunder ticket tiger tomato "
    "tower town train tree trumpet tulip tunnel turtle valley vase village violin wagon walnut water whale wheat "
    "wheel window winter wolf yard zebra"
)
ADJECTIVES, NOUNS = _ADJECTIVES.split(), _NOUNS.split()
_VERBS = (
    "admires borrows carries describes draws finds follows forgets guards keeps likes mends misses paints sells"
)
_WAYS = (
    "at dawn|after lunch|before the frost|in the rain|near the market|on Sundays|without a word|with great care"
)
_NOISE = "The hills are quiet. The river runs on. The road is long. Snow falls on the roofs. Home is far away."


def draw_keys(random: Random, count: int) -> list[str]:
    """Draw different pairs of words, and with a third word where those do not suffice."""
    key_set: dict[str, None] = {}
    most = len(ADJECTIVES) * len(NOUNS) // 2
    while len(key_set) < count:
        parts = [random.choice(ADJECTIVES), random.choice(NOUNS)]
        if len(key_set) >= most:
            parts.insert(0, random.choice(ADJECTIVES))
        key_set["-".join(parts)] = None
    return list(key_set)


def draw_uuid(random: Random) -> str:
    digits = f"{random.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def draw_number(random: Random, digits: int) -> str:
    return str(random.randrange(10 ** (digits - 1), 10**digits))


def draw_letters(random: Random, count: int, alphabet: str) -> str:
    return "".join(random.choices(alphabet, k=count))


def noise_sentences() -> Iterator[str]:
    """Yield the same few sentences again and again."""
    return cycle(sentence + "." for sentence in _NOISE.rstrip(".").split(". "))


def draw_sentences(random: Random) -> Iterator[str]:
    """Yield sentences without end that have no numbers in them."""
    verbs, ways = _VERBS.split(), _WAYS.split("|")
    while True:
        who, what = (f"{random.choice(ADJECTIVES)} {random.choice(NOUNS)}" for _ in range(2))
        ending = f" {random.choice(ways)}" if random.random() < 0.6 else ""
        start = "A" if who[0] not in "aeiou" else "An"
        yield f"{start} {who} {random.choice(verbs)} the {what}{ending}."
