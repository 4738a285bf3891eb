# SPDX-License-Identifier: Apache-2.0
"""What the applications in `apps/` may import beyond the public modules.

They are released with newskills and require its exact version, so these may change from one version to the next; but
who changes one of them has to look at the applications, and an application that wants another one adds it here.
"""

FOR_APPLICATIONS = frozenset(
    {
        "newskills.base.aio",
        "newskills.base.callbacks",
        "newskills.base.store",
        "newskills.base.tables",
        "newskills.base.terminal",
        "newskills.benchmarks",
        "newskills.benchmarks.data",
        "newskills.benchmarks.downloads.readers",
        "newskills.cli",
        "newskills.commands.command",
        "newskills.commands.loading",
        "newskills.config.command_line",
        "newskills.config.fields",
        "newskills.config.layers",
        "newskills.config.settings_file",
        "newskills.graders.math.extraction",
        "newskills.graders.voting.values",
        "newskills.models.serving.gpus",
        "newskills.models.serving.weights",
        "newskills.models.tokenizer",
        "newskills.pipelines.arguments",
        "newskills.pipelines.notices",
        "newskills.pipelines.options",
        "newskills.prompts.official.table",
        "newskills.prompts.renderer",
        "newskills.run.engine.sandboxes",
        "newskills.run.grade",
        "newskills.run.planning.config",
        "newskills.run.planning.plan",
        "newskills.run.reporting.summarize",
        "newskills.run.rewarding.graders",
        "newskills.run.rewarding.judge",
        "newskills.run.rewarding.reward",
        "newskills.sandbox.config",
        "newskills.sandbox.make",
        "newskills.solve.code.sessions",
        "newskills.solve.selection.comparing",
        "newskills.solve.selection.config",
        "newskills.solve.selection.votes",
        "newskills.train.backends.cpu.weights",
        "newskills.train.backends.trl.settings",
        "newskills.train.data.card",
        "newskills.train.data.published",
        "newskills.train.loops.schedule",
    }
)
