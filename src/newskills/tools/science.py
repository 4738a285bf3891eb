# SPDX-License-Identifier: Apache-2.0
"""Tables and formulas of the sciences as tools, each over a package of PyPI that needs no network and no key.

Names of tools and arguments are those of NeMo-Skills (`nemo_skills/mcp/servers/*_tool.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec import Meta, structs

from newskills.base.errors import ConfigError, ToolError
from newskills.base.protocols import ToolSpec
from newskills.base.records import Row
from newskills.tools.provider import FunctionTool, ToolProvider

MOST_MATCHES = 10
LEAST_ACTIVITY = 1e-15
"""Becquerel of a nuclide that is listed, where the chain began with 1."""
_SIGNS = {1: "+", -1: "-"}
"""Parities; other numbers of the package stand for none, or an unknown one."""
_HALF_LIFE_UNITS = ("y", "d", "h", "m")


class PackageFunction(NamedTuple):
    """`description`: what the model is told."""

    function: Callable[..., str]
    description: str


class PackageTool(ToolProvider):
    """Functions over one package. `functions`: by the name that the model sees."""

    package: ClassVar[str]
    functions: ClassVar[Mapping[str, PackageFunction]]

    def __init__(self) -> None:
        """Make the tools. Raises ConfigError where the package is not installed."""
        if find_spec(self.package) is None:
            raise ConfigError(f"the package {self.package} is not installed. Run: pip install {self.package}")
        self._tools = {name: FunctionTool(item.function) for name, item in self.functions.items()}

    async def specs(self) -> Sequence[ToolSpec]:
        described = []
        for name, tool in self._tools.items():
            (spec,) = await tool.specs()
            described.append(structs.replace(spec, name=name, description=self.functions[name].description))
        return described

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        return await self._tools[name].execute(name, arguments, request_id)

    async def close(self) -> None:
        for tool in self._tools.values():
            await tool.close()


def _format_values(title: str, values: Mapping[str, object]) -> str:
    """Return a title and a line for each value that is there."""
    return "\n".join([title, *(f"{name}: {value}" for name, value in values.items() if value is not None)])


def _find_element(named: str) -> Any:
    """Return an element by its symbol, name or number. Raises ToolError."""
    import periodictable

    wanted = named.strip()
    for element in periodictable.elements:
        if element.number and wanted.lower() in (
            element.name.lower(),
            element.symbol.lower(),
            str(element.number),
        ):
            return element
    raise ToolError(f"There is no element '{named}'. Give a symbol (Fe), a name (iron) or a number (26).")


def _neutron_values(atom: Any) -> Row:
    """Return how an element or isotope scatters neutrons, as far as that was measured."""
    neutron = atom.neutron
    return {
        "Neutron scattering length b_c [fm]": neutron.b_c,
        "Coherent cross section [barn]": neutron.coherent,
        "Incoherent cross section [barn]": neutron.incoherent,
        "Absorption cross section [barn]": neutron.absorption,
    }


def element_info(
    element: Annotated[str, Meta(description="symbol, name or atomic number: Fe, iron, 26")],
) -> str:
    """Return what is known of an element. Raises ToolError."""
    chosen = _find_element(element)
    isotopes = sorted((chosen[mass] for mass in chosen.isotopes), key=lambda isotope: -isotope.abundance)
    natural = [f"{chosen.symbol}-{item.isotope} ({item.abundance:.4g} %)" for item in isotopes if item.abundance]
    crystal = chosen.crystal_structure
    return _format_values(
        f"{chosen.name} ({chosen.symbol})",
        {
            "Atomic number": chosen.number,
            "Atomic mass [u]": chosen.mass,
            "Density [g/cm^3]": chosen.density,
            "Crystal structure": ", ".join(f"{key} {value}" for key, value in crystal.items())
            if crystal
            else None,
            **_neutron_values(chosen),
            "Natural isotopes": ", ".join(natural) or None,
        },
    )


def isotope_info(
    element: Annotated[str, Meta(description="symbol, name or atomic number of the element")],
    mass_number: Annotated[int, Meta(description="mass number, for example 235 for U-235")],
) -> str:
    """Return what is known of an isotope. Raises ToolError."""
    chosen = _find_element(element)
    if mass_number not in chosen.isotopes:
        raise ToolError(
            f"There is no isotope {chosen.symbol}-{mass_number}: {chosen.isotopes[0]} to {chosen.isotopes[-1]}."
        )
    isotope = chosen[mass_number]
    return _format_values(
        f"{chosen.symbol}-{mass_number}",
        {"Mass [u]": isotope.mass, "Natural abundance [%]": isotope.abundance or None, **_neutron_values(isotope)},
    )


class PeriodictableTool(PackageTool):
    """Elements and isotopes."""

    package = "periodictable"
    functions: ClassVar[Mapping[str, PackageFunction]] = {
        "element-info": PackageFunction(
            element_info,
            "Look up an element: atomic number and mass, density, crystal structure, natural isotopes.",
        ),
        "isotope-info": PackageFunction(
            isotope_info, "Look up an isotope: mass, natural abundance, neutron scattering."
        ),
    }


def fluid_property(
    fluid: Annotated[str, Meta(description="name of the fluid: Water, Nitrogen, R134a, CO2")],
    output_property: Annotated[
        str,
        Meta(
            description="what to calculate, in SI units: D density, C and CVMASS heat capacity, H enthalpy, S entropy, "
            "V viscosity, L thermal conductivity, SPEED_OF_SOUND, PRANDTL"
        ),
    ],
    temperature: Annotated[float, Meta(description="in kelvin", gt=0)],
    pressure: Annotated[float, Meta(description="in pascal", gt=0)],
) -> str:
    """Return a property of a fluid at a temperature and a pressure. Raises ToolError."""
    from CoolProp.CoolProp import PropsSI

    try:
        value = PropsSI(output_property, "T", temperature, "P", pressure, fluid)
    except ValueError as error:
        raise ToolError(f"CoolProp cannot calculate this: {error}") from error
    return f"{output_property} of {fluid} at {temperature:g} K and {pressure:g} Pa: {value:.8g}"


def fluid_list() -> str:
    """List the fluids whose properties can be calculated."""
    from CoolProp.CoolProp import FluidsList

    return ", ".join(sorted(FluidsList()))


class CoolPropTool(PackageTool):
    """Properties of fluids."""

    package = "CoolProp"
    functions: ClassVar[Mapping[str, PackageFunction]] = {
        "fluid-property": PackageFunction(
            fluid_property, "Calculate a property of a fluid at a temperature and a pressure."
        ),
        "fluid-list": PackageFunction(fluid_list, "List the fluids whose properties can be calculated."),
    }


def particle_lookup(
    name_or_id: Annotated[str, Meta(description="name (pi+, K0, J/psi(1S)) or PDG identity as a text (211)")],
) -> str:
    """Return what is known of a particle. Raises ToolError."""
    from particle import InvalidParticle, Particle, ParticleNotFound

    try:
        if name_or_id.strip().lstrip("-").isdecimal():
            chosen = Particle.from_pdgid(int(name_or_id))
        else:
            chosen = Particle.from_name(name_or_id.strip())
    except (ParticleNotFound, InvalidParticle):
        matches = [match.name for match in Particle.findall(name_or_id)][:MOST_MATCHES]
        also = f" Names that hold it: {', '.join(matches)}." if matches else ""
        raise ToolError(f"There is no particle '{name_or_id}'.{also}") from None
    return _format_values(
        f"{chosen.name} (PDG {int(chosen.pdgid)})",
        {
            "Mass [MeV/c^2]": chosen.mass,
            "Width [MeV]": chosen.width,
            "Lifetime [ns]": chosen.lifetime,
            "Charge [e]": chosen.charge,
            "Spin J": chosen.J,
            "Isospin I": chosen.I,
            "Parity P": _SIGNS.get(chosen.P),
            "C-parity": _SIGNS.get(chosen.C),
            "Quarks": chosen.quarks or None,
        },
    )


def particle_search(
    query: Annotated[str, Meta(description="part of a name: K, omega, D*")],
) -> str:
    """Find particles by a part of their names. Raises ToolError."""
    from particle import Particle

    matches = Particle.findall(query)
    if not matches:
        raise ToolError(f"No particle's name holds '{query}'.")
    shown = [
        f"{match.name} (PDG {int(match.pdgid)}): mass {match.mass} MeV/c^2, charge {match.charge}"
        for match in matches[:MOST_MATCHES]
    ]
    return "\n".join([f"{len(matches)} particles, the first {len(shown)}:", *shown])


class ParticleTool(PackageTool):
    """Particles, as the Particle Data Group lists them."""

    package = "particle"
    functions: ClassVar[Mapping[str, PackageFunction]] = {
        "particle-lookup": PackageFunction(
            particle_lookup, "Look up a particle: mass, width, lifetime, charge, spin and quantum numbers."
        ),
        "particle-search": PackageFunction(particle_search, "Search for particles by a part of their names."),
    }


def _find_nuclide(named: str) -> Any:
    """Return a nuclide. Raises ToolError."""
    import radioactivedecay

    try:
        return radioactivedecay.Nuclide(named)
    except ValueError as error:
        raise ToolError(f"There is no data of '{named}': {error}") from error


def nuclide_info(
    nuclide: Annotated[str, Meta(description="for example H-3, U-238, Co-60")],
) -> str:
    """Return what is known of a nuclide. Raises ToolError."""
    chosen = _find_nuclide(nuclide)
    progeny = [
        f"{child} ({fraction:.6g})"
        for child, fraction in zip(chosen.progeny(), chosen.branching_fractions(), strict=True)
    ]
    return _format_values(
        chosen.nuclide,
        {
            "Protons": chosen.Z,
            "Nucleons": chosen.A,
            "Half-life": _half_life(chosen),
            "Decay modes": ", ".join(map(str, chosen.decay_modes())) or None,
            "Progeny (branching fraction)": ", ".join(progeny) or None,
        },
    )


def _half_life(nuclide: Any) -> str:
    if math.isinf(nuclide.half_life()):
        return "stable"
    for unit in _HALF_LIFE_UNITS:
        if (length := nuclide.half_life(unit)) >= 1:
            return f"{length:.6g} {unit}"
    return f"{nuclide.half_life():.6g} s"


def decay_chain(
    nuclide: Annotated[str, Meta(description="the nuclide at the beginning, with an activity of 1 Bq")],
    time: Annotated[float, Meta(description="how long it decays", ge=0)],
    time_unit: Annotated[str, Meta(description="s, m, h, d, y, ky, My, Gy, ms, us, ns, ps")] = "s",
) -> str:
    """Return the activities of a decay chain after a time. Raises ToolError."""
    import radioactivedecay

    inventory = radioactivedecay.Inventory({_find_nuclide(nuclide).nuclide: 1.0}, "Bq")
    try:
        activities = inventory.decay(time, time_unit).activities("Bq")
    except ValueError as error:
        raise ToolError(str(error)) from error
    ordered = sorted(activities.items(), key=lambda pair: -pair[1])
    shown = {f"{name} [Bq]": f"{activity:.6g}" for name, activity in ordered if activity > LEAST_ACTIVITY}
    return _format_values(f"{nuclide} after {time:g} {time_unit}", shown)


class RadioactivedecayTool(PackageTool):
    """Nuclides and their decay chains."""

    package = "radioactivedecay"
    functions: ClassVar[Mapping[str, PackageFunction]] = {
        "nuclide-info": PackageFunction(
            nuclide_info, "Look up a nuclide: half-life, decay modes, and what it decays to."
        ),
        "decay-chain": PackageFunction(
            decay_chain, "Calculate the activities of a decay chain after a time, beginning with 1 Bq."
        ),
    }
