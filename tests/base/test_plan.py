# SPDX-License-Identifier: Apache-2.0
import pytest

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, Job, Pipeline, Ref, Script


def job(name: str, *needs: str, argv: tuple[str, ...] = ("true",)) -> Job:
    group = CommandGroup(name="g", commands=(Command(name="main", script=Script(argv=argv)),))
    return Job(name=name, groups=(group,), depends_on=needs)


def test_jobs_come_after_what_they_need() -> None:
    pipeline = Pipeline(name="p", jobs=(job("c", "b"), job("a"), job("b", "a")))
    assert [j.name for j in pipeline.order()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ((job("a", "b"), job("b", "a")), "circle: a, b"),
        ((job("a"), job("a")), "Two jobs"),
        ((job("a", "x"),), "depends on 'x'"),
        ((job("a", argv=(Ref("server"),)),), "refers to 'server'"),
    ],
)
def test_what_cannot_run_is_refused(jobs: tuple[Job, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Pipeline(name="p", jobs=jobs).order()
