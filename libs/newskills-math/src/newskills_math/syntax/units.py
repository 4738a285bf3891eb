# SPDX-License-Identifier: Apache-2.0
"""Units of measurement: spelling → factor and powers of base units (SI brochure, 9th edition). Data only.

What is not convertible exactly by a factor (money, degrees Celsius) is a base unit of its own.
"""

from __future__ import annotations

SYMBOLS: dict[str, str] = {
    "m": "1 m",
    "g": "0.001 kg",
    "s": "1 s",
    "A": "1 A",
    "K": "1 K",
    "mol": "1 mol",
    "M": "1000 mol m^-3",
    "mM": "1 mol m^-3",
    "Hz": "1 s^-1",
    "N": "1 kg m s^-2",
    "Pa": "1 kg m^-1 s^-2",
    "J": "1 kg m^2 s^-2",
    "W": "1 kg m^2 s^-3",
    "C": "1 A s",
    "V": "1 kg m^2 s^-3 A^-1",
    "F": "1 kg^-1 m^-2 s^4 A^2",
    "Ω": "1 kg m^2 s^-3 A^-2",
    "H": "1 kg m^2 s^-2 A^-2",
    "T": "1 kg s^-2 A^-1",
    "Wb": "1 kg m^2 s^-2 A^-1",
    "L": "0.001 m^3",
    "l": "0.001 m^3",
    "eV": "1 electronvolt",
    "cal": "4.184 kg m^2 s^-2",
    "bar": "100000 kg m^-1 s^-2",
    "atm": "101325 kg m^-1 s^-2",
    "Bq": "1 becquerel",
    "Gy": "1 gray",
    "Sv": "1 sievert",
    "lm": "1 lumen",
    "lx": "1 lux",
    "pc": "1 parsec",
    "ly": "1 lightyear",
    "dB": "1 decibel",
    "rpm": "1 rpm",
    "rad": "1 rad",
    "sr": "1 sr",
    "Å": "1/10000000000 m",
    "Nm": "1 kg m^2 s^-2",
    "kmph": "5/18 m s^-1",
    "kph": "5/18 m s^-1",
    "mph": "0.44704 m s^-1",
    "fps": "0.3048 m s^-1",
    "h": "3600 s",
    "°C": "1 celsius",
    "°F": "1 fahrenheit",
    "°K": "1 K",
    "¢": "0.01 dollar",
    "$": "1 dollar",
    "USD": "1 dollar",
    "EUR": "1 euro",
    "GBP": "1 sterling",
    "INR": "1 rupee",
    "JPY": "1 yen",
    "CNY": "1 yuan",
    "RMB": "1 yuan",
}
"""Case-sensitive."""

NAMES: dict[str, str] = {
    name: meaning
    for names, meaning in {
        "mm millimeter millimetre": "0.001 m",
        "cm centimeter centimetre": "0.01 m",
        "dm decimeter decimetre": "0.1 m",
        "meter metre": "1 m",
        "km kilometer kilometre": "1000 m",
        "in inch": "0.0254 m",
        "ft foot feet": "0.3048 m",
        "yd yard": "0.9144 m",
        "mi mile": "1609.344 m",
        "nanometer nanometre": "1/1000000000 m",
        "angstrom": "1/10000000000 m",
        "mg milligram": "0.000001 kg",
        "gram": "0.001 kg",
        "kg kilogram": "1 kg",
        "lb pound lbs": "0.45359237 kg",
        "oz ounce": "0.028349523125 kg",
        "ton tonne": "1000 kg",
        "ms millisecond": "0.001 s",
        "sec second": "1 s",
        "min minute": "60 s",
        "hr hour": "3600 s",
        "day": "86400 s",
        "week wk": "604800 s",
        "month": "1 month",
        "year yr": "12 month",
        "ml milliliter millilitre": "0.000001 m^3",
        "liter litre": "0.001 m^3",
        "dollar usd buck": "1 dollar",
        "cent": "0.01 dollar",
        "euro": "1 euro",
        "yen": "1 yen",
        "yuan": "1 yuan",
        "rupee": "1 rupee",
        "celsius degreecelsius": "1 celsius",
        "fahrenheit degreefahrenheit": "1 fahrenheit",
        "kelvin": "1 K",
        "radian": "1 rad",
        "newton": "1 kg m s^-2",
        "pascal": "1 kg m^-1 s^-2",
        "joule": "1 kg m^2 s^-2",
        "kj kilojoule": "1000 kg m^2 s^-2",
        "watt": "1 kg m^2 s^-3",
        "kw kilowatt": "1000 kg m^2 s^-3",
        "coulomb": "1 A s",
        "volt": "1 kg m^2 s^-3 A^-1",
        "farad": "1 kg^-1 m^-2 s^4 A^2",
        "ohm": "1 kg m^2 s^-3 A^-2",
        "henry": "1 kg m^2 s^-2 A^-2",
        "tesla": "1 kg s^-2 A^-1",
        "weber": "1 kg m^2 s^-2 A^-1",
        "ampere amp": "1 A",
        "hertz hz": "1 s^-1",
        "mole mol": "1 mol",
        "unit": "1 unit",
    }.items()
    for name in names.split()
}
"""Lower case, singular."""

PREFIXES: dict[str, str] = {
    "k": "1000",
    "M": "1000000",
    "G": "1000000000",
    "T": "1000000000000",
    "h": "100",
    "d": "0.1",
    "c": "0.01",
    "m": "0.001",
    "µ": "0.000001",
    "u": "0.000001",
    "n": "1/1000000000",
    "p": "1/1000000000000",
}

_PREFIXED = "m g s A K mol Hz N Pa J W C V F Ω H T Wb L l eV cal bar Bq Gy Sv pc"
_ELSE = "pm cd hm dm ds hs cs dg hg ps pg mC PT dT dV dA dN dC dF dW dK ns pl nl hl"

PREFIXED = frozenset(_PREFIXED.split())

UNPREFIXED = frozenset(_ELSE.split())
"""Not read as a prefix and a unit: as letters they are more often something else (`pm`, `dV`)."""

SAME_NAME = frozenset(
    [
        frozenset([(("A", 1), ("s", 1)), (("celsius", 1),)]),
        frozenset([(("A", 2), ("kg", -1), ("m", -2), ("s", 4)), (("fahrenheit", 1),)]),
        frozenset([(("kg", 1),), (("sterling", 1),)]),
    ]
)
"""Base units that share a spelling: `100 C`, `77 F`, `5 pounds`."""

CURRENCIES = {
    "euro": "euro",
    "pounds": "sterling",
    "yen": "yen",
    "rupee": "rupee",
    "textdollar": "dollar",
    "$": "dollar",
}
