# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time

import pytest

from newskills.base.errors import ConfigError
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy

DEFAULT = ExtractionPolicy(extract_regex=r"The final answer is (.+)$")
RELAXED = ExtractionPolicy(extract_regex=r"The final answer is (.+)$", relaxed_extraction=True)
REGEX = ExtractionPolicy(extract_from_boxed=False, extract_regex=r"The final answer is (.+)$")


@pytest.mark.parametrize(
    ("text", "answer", "how"),
    [
        (r"so \boxed{5}", "5", "box"),
        (r"first \boxed{4}, then after more work \boxed{5}.", "5", "box"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "box"),
        (r"\boxed {5}", "5", "box"),
        (r"\boxed 5", "5", "box"),
        (r"$\boxed 5$", "5", "box"),
        (r"\fbox{7}", "7", "box"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}", "box"),
        (r"\boxed{\left\{1\right\}} and so on", r"\left\{1\right\}", "box"),
        (r"\boxed{1}, \boxed{2}", "1, 2", "boxes"),
        (r"\boxed{5} or \boxed{6}", "5, 6", "boxes"),
        (r"$\boxed{5}$ and $\boxed{5}$", "5", "box"),
        (r"\boxed{5}" + "\n\n" + r"\boxed{6}", "5, 6", "boxes"),
        ("<think>maybe \\boxed{3}</think> \\boxed{4}", "4", "box"),
        ("a</think>b</think>\\boxed{4}", "4", "box"),
        ("blah\n#### 1,234", "1,234", "hashes"),
        ("<answer>42</answer>", "42", "tag"),
        ("<answer>\\boxed{42}</answer> done", "42", "box"),
        ("The answer is 42.", "42", "phrase"),
        ("The final answer is $\\frac{1}{2}$.", r"\frac{1}{2}", "phrase"),
        ("**Answer:** 3.5", "3.5", "phrase"),
        ("答案是 42。", "42", "phrase"),
        ("Die Antwort ist 7.", "7", "phrase"),
        ("#### Final Answer\nThe answer is 16.", "16", "phrase"),
        ("#### Final Answer\n16", "16", "heading"),
        ("#### Final Answer: 16", "16", "hashes"),
        ("#### The final answer is **16**.", "16", "hashes"),
        ("#### 16\n\n#### Explanation\nSince 4 * 4 = 16.", "16", "hashes"),
        ("#### Step 2: divide by 3\nThis gives 16. The answer is 16.", "16", "phrase"),
        ("#### 3. Divide\n\n#### 16", "16", "hashes"),
        ("#### Evelyn", "Evelyn", "hashes"),
        ("### Final Answer\n\n$$16$$", "16", "heading"),
        ("**Final Answer**\n\\[ 16 \\]", "16", "heading"),
        ("## **Answer:**\n\n**16 cats**", "16 cats", "heading"),
        ("**Answer:**\n\n16", "16", "heading"),
        (r"\boxed{5} is it.\n\n(Format: \boxed{...})", "5", "box"),
        (r"\boxed{5}, and not \boxed{your answer}", "5", "box"),
        (r"\boxed{5} in the form \boxed{\text{answer}}", "5", "box"),
        (r"\boxed{5} fills the \boxed{}", "5", "box"),
        (r"I write \boxed{answer}. The answer is 5.", "5", "phrase"),
        (r"$x=\boxed{3}$ and $y=\boxed{4}$", "x=3, y=4", "boxes"),
        (r"- $x_1 = \boxed{3}$" + "\n" + r"- $x_2 = \boxed{4}$", "x_1=3, x_2=4", "boxes"),
        (r"$x=\boxed{3}$ or $x=\boxed{4}$", "3, 4", "boxes"),
        (r"$x=\boxed{3}$", "3", "box"),
        (r"$m=\boxed{3}$, $n=\boxed{4}$, so $m+n=\boxed{7}$", "7", "box"),
        (r"\boxed{5}. Alternatively, it could be \boxed{6}.", "5, 6", "boxes"),
        (r"\boxed{5} or maybe the answer is \boxed{6}", "5, 6", "boxes"),
        (r"\boxed{5}. The answer is \boxed{6}", "6", "box"),
        (r"\boxed{5}? No, I forgot one: \boxed{6}", "6", "box"),
        (r"\boxed{*}", "*", "box"),
        ('{"answer": 5}', "5", "json"),
        ('{"reasoning": "2 + 3", "final_answer": "\\\\frac{1}{2}", "answer": 7}', r"\frac{1}{2}", "json"),
        ('{"answer": "\\frac{1}{2}"}', r"\frac{1}{2}", "json"),
        ('```json\n{\n  "answer": -2.50\n}\n```', "-2.50", "json"),
        ('{"answer": [1, 2]}', "1, 2", "json"),
        ('{"answer": {"x": 3, "y": 4}}', "x=3, y=4", "json"),
        ("{'answer': 'even'}", "even", "json"),
        ('{"answer": "..."}, that is {"answer": 5}', "5", "json"),
        ('{"answer": 5, "answer": 6}', "5, 6", "json"),
        ('[{"answer": 5}, {"answer": 6}]', "5, 6", "json"),
        ('[{"answer": 5, "why": "as in a proof"}, {"answer": 6}]', "5, 6", "json"),
        ('```json\n{"answer": 5}\n```\n```json\n{"answer": 6}\n```', "5, 6", "json"),
        ('{"answer": 5} or perhaps {"answer": 6}', "5, 6", "json"),
        ('{"answer": 5}\n\nI forgot one, so:\n{"answer": 6}', "6", "json"),
        ('{"answer": null}', None, "none"),
        ("**Final Answer**: 16", "16", "phrase"),
    ],
)
def test_final_answers(text: str, answer: str | None, how: str) -> None:
    assert extract_by_policy(text, DEFAULT) == (answer, how)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", "none"),
        ("I believe it could be 42 or so.", "none"),
        ("<think>so \\boxed{5}", "thinking"),
        (r"the box \boxed{\frac{1}{2}", "unclosed"),
        (r"\boxed{5} but then \boxed{", "unclosed"),
        (r"\boxed{}", "none"),
        ("<think>\\boxed{5}</think>", "none"),
        ("<answer>4", "unclosed"),
    ],
)
def test_no_final_answer(text: str, how: str) -> None:
    assert extract_by_policy(text, DEFAULT) == (None, how)


def test_relaxed_takes_the_expression_first_and_a_number_last() -> None:
    assert extract_by_policy(r"The final answer is 7" + "\n" + r"\boxed{8}", RELAXED) == ("7", "regex")
    assert extract_by_policy(r"\boxed{8}", RELAXED) == ("8", "box")
    assert extract_by_policy("there are 12 cats, or rather 13", RELAXED) == ("13", "closing")
    assert extract_by_policy("I hope that 13 is fine.", RELAXED) == ("13", "number")


def test_the_expression_alone() -> None:
    assert extract_by_policy("The final answer is 7.\nThe final answer is 8.", REGEX) == ("8", "regex")
    assert extract_by_policy(r"\boxed{8}", REGEX) == (None, "none")
    assert extract_by_policy(r"The final answer is \boxed{8}", REGEX) == ("8", "regex")


def test_a_broken_expression_is_a_mistake_of_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"\(unclosed"):
        extract_by_policy("x", ExtractionPolicy(extract_from_boxed=False, extract_regex="(unclosed"))


@pytest.mark.parametrize(
    "text",
    [
        *(r"\boxed{1}" * 50_000, "{" * 10**6, "<answer>" * 10**5, "answer is " * 10**5, "$" * 10**6),
        *('{"answer": [' * 10**5, '"answer": "' + "\\" * 10**6, "#### Answer\n" * 10**5, r"x=\boxed{5}, " * 10**5),
        *(r"\boxed{...} or " * 10**5, "\n#### Q: answer is " * 10**5, "<|im_end|>" * 10**5, "<reasoning>" * 10**5),
    ],
)
@pytest.mark.parametrize("policy", [DEFAULT, RELAXED])
def test_long_texts_are_read_in_linear_time(text: str, policy: ExtractionPolicy) -> None:
    began = time.process_time()
    extract_by_policy(text, policy)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So it is <|begin_of_box|>42<|end_of_box|>", "42"),
        (r"First $\boxed{5}$. No: <|begin_of_box|>\frac{1}{2}<|end_of_box|>.", r"\frac{1}{2}"),
        ("<|begin_of_box|>4", None),
    ],
)
def test_the_box_of_glm_is_one(text: str, answer: str | None) -> None:
    assert extract_by_policy(text, ExtractionPolicy()).answer == answer
