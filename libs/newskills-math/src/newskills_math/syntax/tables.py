# SPDX-License-Identifier: Apache-2.0
"""The tables behind reading answers: Unicode maths, functions, constants, units, words. Data only."""

from __future__ import annotations

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢₖ", "0123456789+-nik", strict=True))

UNICODE: dict[int, str] = str.maketrans(
    {
        **dict.fromkeys("−–—‐‑‒―﹣－", "-"),
        **dict.fromkeys("×✕✖⨯", r"\times "),
        **dict.fromkeys("·⋅∙•‧", r"\cdot "),
        "÷": "/",
        "∕": "/",
        "⁄": "/",
        "∗": "*",
        "√": r"\sqrt ",
        "∛": r"\sqrt[3] ",
        "∜": r"\sqrt[4] ",
        "∞": r"\infty ",
        "±": r"\pm ",
        "∓": r"\mp ",
        **dict.fromkeys("≤≦⩽", r"\le "),
        **dict.fromkeys("≥≧⩾", r"\ge "),
        "≠": r"\ne ",
        **dict.fromkeys("≈≃≅", r"\approx "),
        "≡": r"\equiv ",
        "∈": r"\in ",
        "∉": r"\notin ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∖": r"\setminus ",
        "⊂": r"\subset ",
        "∅": r"\emptyset ",
        "⌊": r"\lfloor ",
        "⌋": r"\rfloor ",
        "⌈": r"\lceil ",
        "⌉": r"\rceil ",
        "⟨": r"\langle ",
        "⟩": r"\rangle ",
        **dict.fromkeys("°º", r"^\circ "),
        "′": "'",
        "″": "''",
        "’": "'",
        "‘": "'",
        **dict.fromkeys("“”", '"'),
        "…": r"\ldots ",
        "⋯": r"\cdots ",
        "∑": r"\sum ",
        "∏": r"\prod ",
        "∫": r"\int ",
        "∂": r"\partial ",
        "→": r"\to ",
        "⇒": r"\implies ",
        "∠": r"\angle ",
        "△": r"\triangle ",
        "½": r"\frac{1}{2}",
        "⅓": r"\frac{1}{3}",
        "⅔": r"\frac{2}{3}",
        "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}",
        "⅕": r"\frac{1}{5}",
        "⅖": r"\frac{2}{5}",
        "⅗": r"\frac{3}{5}",
        "⅘": r"\frac{4}{5}",
        "⅙": r"\frac{1}{6}",
        "⅚": r"\frac{5}{6}",
        "⅛": r"\frac{1}{8}",
        "⅜": r"\frac{3}{8}",
        "⅝": r"\frac{5}{8}",
        "⅞": r"\frac{7}{8}",
        "π": r"\pi ",
        "α": r"\alpha ",
        "β": r"\beta ",
        "γ": r"\gamma ",
        "δ": r"\delta ",
        "ε": r"\epsilon ",
        "θ": r"\theta ",
        "λ": r"\lambda ",
        "μ": r"\mu ",
        "ρ": r"\rho ",
        "σ": r"\sigma ",
        "τ": r"\tau ",
        **dict.fromkeys("φϕ", r"\phi "),
        "ω": r"\omega ",
        "Δ": r"\Delta ",
        "Ω": r"\Omega ",
        "ℝ": r"\mathbb{R}",
        "ℤ": r"\mathbb{Z}",
        "ℚ": r"\mathbb{Q}",
        "ℕ": r"\mathbb{N}",
        "ℂ": r"\mathbb{C}",
        "ℯ": "e",
        "ⅈ": "i",
        "€": r"\euro ",
        "£": r"\pounds ",
        "¥": r"\yen ",
        "₹": r"\rupee ",
        "￥": r"\yen ",
        "，": ",",
        "、": ",",
        "；": ";",
        "：": ":",
        "。": ".",
        "（": "(",
        "）": ")",
        "【": "[",
        "】": "]",
        "｛": r"\{",
        "｝": r"\}",
        "∣": r"\mid ",
        "｜": "|",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\u3000": " ",
        "\u2061": "",
        "\u2062": "",
        "\u200b": "",
        "\ufeff": "",
        "％": r"\%",
        "＝": "=",
    }
)
"""One code point → LaTeX. What is missing here goes through NFKC afterwards."""

SCRIPTS: dict[str, tuple[str, str]] = {
    **{k: ("^", v) for k, v in _SUPERSCRIPTS.items()},
    **{k: ("_", v) for k, v in _SUBSCRIPTS.items()},
}

GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "varrho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
        "hbar",
        "partial",
        "nabla",
        "aleph",
        "Re",
        "Im",
    ]
)
"""Commands that are symbols."""

FUNCTIONS: dict[str, str] = {
    **{
        name: name
        for name in [
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "sinh",
            "cosh",
            "tanh",
            "coth",
            "sech",
            "csch",
            "ln",
            "log",
            "lg",
            "exp",
            "gcd",
            "lcm",
            "max",
            "min",
            "arg",
            "det",
        ]
    },
    **{f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
    **{f"a{n}": f"a{n}" for n in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
    "arctg": "atan",
    "tg": "tan",
    "ctg": "cot",
    **{name: name for name in ("abs", "floor", "ceil", "sgn", "factorial", "cis")},
}
"""Names of functions, as commands or as plain words → canonical name."""

RELATIONS: dict[str, str] = {
    "=": "=",
    "==": "=",
    "<": "<",
    ">": ">",
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    r"\le": "≤",
    r"\leq": "≤",
    r"\leqslant": "≤",
    r"\leqq": "≤",
    r"\ge": "≥",
    r"\geq": "≥",
    r"\geqslant": "≥",
    r"\geqq": "≥",
    r"\lt": "<",
    r"\gt": ">",
    r"\ne": "≠",
    r"\neq": "≠",
    r"\approx": "≈",
    r"\approxeq": "≈",
    r"\simeq": "≈",
    r"\doteq": "≈",
    r"\in": "∈",
    r"\equiv": "≡",
    r"\perp": "⊥",
    r"\parallel": "∥",
    r"\sim": "~",
    r"\cong": "≅",
    r"\propto": "∝",
    r"\subset": "⊂",
    r"\subseteq": "⊆",
    r"\supset": "⊃",
    r"\supseteq": "⊇",
    r"\notin": "∉",
}

FLIPPED: dict[str, str] = {
    "<": ">",
    ">": "<",
    "≤": "≥",
    "≥": "≤",
    "=": "=",
    "≠": "≠",
    "≈": "≈",
    "~": "~",
    "≡": "≡",
    "≅": "≅",
    "⊂": "⊃",
    "⊃": "⊂",
    "⊆": "⊇",
    "⊇": "⊆",
    "⊥": "⊥",
    "∥": "∥",
}

NUMBER_WORDS: dict[str, int] = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
}

_UNITS: dict[str, tuple[str, str, str]] = {
    # name: (dimension, factor to the dimension's base, spellings)
    "mm": ("length", "0.001", "mm millimeter millimetre"),
    "cm": ("length", "0.01", "cm centimeter centimetre cms"),
    "dm": ("length", "0.1", "decimeter decimetre"),
    "m": ("length", "1", "m meter metre"),
    "km": ("length", "1000", "km kilometer kilometre kms"),
    "in": ("length", "0.0254", "inch inches in"),
    "ft": ("length", "0.3048", "ft foot feet"),
    "yd": ("length", "0.9144", "yd yard"),
    "mi": ("length", "1609.344", "mi mile"),
    "mg": ("mass", "0.000001", "mg milligram"),
    "g": ("mass", "0.001", "g gram"),
    "kg": ("mass", "1", "kg kilogram kgs"),
    "lb": ("mass", "0.45359237", "lb pound lbs"),
    "oz": ("mass", "0.028349523125", "oz ounce"),
    "ton": ("mass", "1000", "ton tonne"),
    "ms": ("time", "0.001", "ms millisecond"),
    "s": ("time", "1", "s sec second"),
    "min": ("time", "60", "min minute mins"),
    "h": ("time", "3600", "h hr hour hrs"),
    "day": ("time", "86400", "day"),
    "week": ("time", "604800", "week wk"),
    "month": ("month", "1", "month mo"),
    "year": ("month", "12", "year yr"),
    "ml": ("volume", "0.001", "ml milliliter millilitre"),
    "l": ("volume", "1", "l liter litre"),
    "dollar": ("money", "1", "dollar usd buck $"),
    "cent": ("money", "0.01", "cent ¢"),
    "euro": ("euro", "1", "euro eur"),
    "pound sterling": ("sterling", "1", "gbp"),
    "yen": ("yen", "1", "yen jpy yuan rmb"),
    "mph": ("speed", "1", "mph mile/hour mi/h mile/h mi/hr mileperhour"),
    "km/h": ("speed km", "1", "kmh km/h kmph km/hr kilometer/hour kilometerperhour"),
    "m/s": ("speed m", "1", "m/s meter/second meterpersecond"),
    "°C": ("celsius", "1", "celsius degreecelsius"),
    "°F": ("fahrenheit", "1", "fahrenheit degreefahrenheit"),
    "rad": ("angle", "1", "rad radian"),
}

UNITS: dict[str, tuple[str, str]] = {
    spelling: (dimension, factor) for dimension, factor, names in _UNITS.values() for spelling in names.split()
}
"""Spelling (lower case, singular) → (dimension, decimal factor to its base)."""

PLAIN_UNITS = frozenset(
    s
    for names in _UNITS.values()
    for s in names[2].split()
    if len(s) > 1 and s.isalpha() and s not in ("mi", "mo", "wk")
) | {"mL"}
"""Units that count as such when they stand as plain letters in maths (`22.1cm^{2}`)."""

_SHORT_WORDS = "yes no odd one two six ten all and or the is are not for any if of by day may set none per"
SHORT_WORDS = frozenset(_SHORT_WORDS.split())
"""Words of two or three letters; other short runs of letters are products of variables."""

SEPARATORS = frozenset({"and", "or", "&", "und", "oder", "et", "ou", "y", "和", "或", "and also"})

HEDGES = frozenset(
    {"or", "more", "less", "fewer", "least", "most", "to", "not", "maybe", "perhaps", "if", "only", "except"}
)
"""Words behind a value that make it another statement."""

FILLERS = frozenset(
    {"the", "a", "an", "of", "in", "to", "is", "are", "be", "total", "different", "distinct", "altogether"}
)
"""Words behind a value that say nothing."""

LAST_WORDS = frozenset(
    {
        "maximum",
        "minimum",
        "even",
        "odd",
        "prime",
        "composite",
        "positive",
        "negative",
        "square",
        "squared",
        "right",
        "left",
    }
)
"""Words that speak of the value only where no noun follows (`5 odd numbers` are 5)."""

_VALUE_WORDS = """
even odd prime composite positive negative square squared cubed factorial hundred half third quarter dozen base minus
plus north south east west left right up down upward downward am pm bc ad bce ce ago later before after
clockwise counterclockwise anticlockwise modulo mod not inverse reciprocal below above short maximum minimum max
min tops gross score fifth sixth seventh eighth ninth tenth hundredth thousandth reams
"""

VALUE_WORDS = frozenset(_VALUE_WORDS.split())
"""Words behind a value that make it another one."""

LEAD_INS = (
    "the final answer is",
    "final answer is",
    "the answer is",
    "the final answer",
    "final answer",
    "the correct answer is",
    "answer is",
    "answer",
    "ans",
    "the value is",
    "result",
    "the result is",
    "solution",
    "the solution is",
    "solution is",
    "therefore",
    "thus",
    "hence",
    "so",
    "we get",
    "approximately",
    "approx",
    "about",
    "exactly",
    "roughly",
    "equals",
    "equal to",
    "is",
    "it is",
    "a total of",
    "total",
    "only",
    "all",
)
"""Prose before an answer that says nothing about its value."""

SYNONYMS: dict[str, str] = {
    "no solution": "∅",
    "no solutions": "∅",
    "no real solution": "∅",
    "no real solutions": "∅",
    "there is no solution": "∅",
    "there are no solutions": "∅",
    "no such solution": "∅",
    "empty set": "∅",
    "the empty set": "∅",
    "emptyset": "∅",
    "does not exist": "undefined",
    "dne": "undefined",
    "doesnt exist": "undefined",
    "not defined": "undefined",
    "undefined": "undefined",
    "infinitely many": "infinite",
    "infinity": "infinite",
    "infinite": "infinite",
    "infinitely many solutions": "infinite",
    "infinite solutions": "infinite",
    "all real numbers": "ℝ",
    "all reals": "ℝ",
    "any real number": "ℝ",
    "all real": "ℝ",
    "real numbers": "ℝ",
    "all real number": "ℝ",
    "yes": "true",
    "no": "false",
}
