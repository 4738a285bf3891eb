# SPDX-License-Identifier: Apache-2.0
"""Designs that end, reach into or speak for the bench that tests them."""

from __future__ import annotations

import shutil

import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.graders.code.hardware import hide_bench

REFERENCE = "module RefModule (input clk, input a, output b);\n  assign b = ~a;\nendmodule\n"
BENCH = """`timescale 1 ps/1 ps
module stimulus_gen (input clk, output logic a);
  initial begin
    repeat(40) @(posedge clk, negedge clk) a <= $random;
    #1 $finish;
  end
endmodule
module tb();
  typedef struct packed {
    int errors;
    int clocks;
  } stats;

  stats stats1;
  reg clk = 0;
  initial forever #5 clk = ~clk;
  logic a;
  logic b_ref;
  logic b_dut;
  stimulus_gen stim1 (.clk, .* , .a);
  RefModule good1 (.clk, .a, .b(b_ref));
  TopModule top_module1 (.clk, .a, .b(b_dut));
  final begin
    $display("Mismatches: %1d in %1d samples", stats1.errors, stats1.clocks);
  end
  always @(posedge clk, negedge clk) begin
    stats1.clocks++;
    if (b_ref !== (b_ref ^ b_dut ^ b_ref)) stats1.errors++;
  end
endmodule
"""
HEAD = "module TopModule (input clk, input a, output b);\n"
WRONG = f"{HEAD}  assign b = a;\n"
FORGERIES = {
    "ends the bench early": f"{WRONG}  initial #6 $finish;\nendmodule",
    "ends it by an error": f"{WRONG}  initial #6 $fatal(0);\nendmodule",
    "says a count": f'{WRONG}  initial begin $display("Mismatches: 0 in 9 samples"); #6 $finish; end\nendmodule',
    "closes the output": f'{WRONG}  initial begin $display("Mismatches: 0 in 9 samples"); $fclose(1); end\nendmodule',
    "is the reference": f"{HEAD}  RefModule r (.clk, .a, .b);\nendmodule",
    "looks at the reference": f"{HEAD}  assign b = good1.b;\nendmodule",
    "looks at it from the top": f"{HEAD}  assign b = tb.good1.b;\nendmodule",
    "looks at it from the root": f"{HEAD}  assign b = $root.tb.good1.b;\nendmodule",
    "changes the count": f"{WRONG}  always @(clk) tb.stats1.errors = 0;\nendmodule",
    "changes the count by its name": f"{WRONG}  always @(clk) stats1.errors = 0;\nendmodule",
    "forces the outcome": f"{WRONG}  initial force tb.b_dut = tb.b_ref;\nendmodule",
    "puts a word together": f"`define end(x) $fin``x\n{WRONG}  initial #6 `end(ish);\nendmodule",
}


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog")
def test_no_forgery_passes_and_honest_designs_do() -> None:
    honest = [
        f"{HEAD}  assign b = !a; // $finish\nendmodule",
        f"{HEAD}  not(b, a);\nendmodule\nmodule testbench; initial begin $display(1); $finish; end\nendmodule",
    ]
    codes = [*honest, f"{WRONG}endmodule", *FORGERIES.values()]
    rows = [{"generation": fenced(code, "verilog"), "test": BENCH, "reference": REFERENCE} for code in codes]
    outcomes = [score.outcome for score in graded("verilog_eval", rows)]
    assert dict(zip(("", "", "wrong", *FORGERIES), outcomes, strict=True)) == dict.fromkeys(
        ("wrong", *FORGERIES), "wrong"
    ) | {"": "correct"}


def test_names_of_the_bench_are_hidden_and_ports_are_not() -> None:
    test, reference = hide_bench(BENCH, REFERENCE, "x_")
    assert "x_good1 (.clk, .a, .b(b_ref))" in test
    assert "x_stats1.clocks++" in test
    assert "module x_tb();" in test
    assert "TopModule x_top_module1" in test
    assert '"x_Mismatches: ' in test
    assert reference.startswith("module x_RefModule (input clk, input a, output b)")
