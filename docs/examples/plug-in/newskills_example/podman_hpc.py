"""Engine `podman-hpc` (https://github.com/NERSC/podman-hpc): podman with images that all nodes of a cluster share."""

from __future__ import annotations

from newskills.environments.engines import EngineProperties
from newskills.environments.engines.docker import Podman


class PodmanHpc(Podman):
    """Podman's command lines, by another program."""

    properties = EngineProperties(like_docker=True, daemonless=True)

    def image_hint(self) -> str:
        return "Is the image there? podman-hpc pull downloads one, podman-hpc migrate shows it to all nodes."
